"""No speed for a wrong result: values and gradients against the reference engine in float64."""

from __future__ import annotations

import functools
from dataclasses import replace

import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from gatedrnn.bench.contestants import Contestant
from gatedrnn.bench.work import Data, Loss, Work, step

#: Largest error of float32, relative to the largest entry of the tensor: rounding of 1e-7 over 500 steps and the sum of
#: weight gradients over all steps and rows. A wrong formula is off by 1e-2 and more.
TOLERANCE = {"output": 1e-4, "gradient": 1e-3}


class WrongResultError(RuntimeError):
    """A contestant computes a wrong result."""


def check(contestant: Contestant, work: Work) -> float:
    """The largest relative error, for a dense and a last-step gradient; WrongResultError if it is too large."""
    if work.loss == "last" and work.shortest is None:
        work = replace(work, loss="dense")  # both are checked for either
    return _checked(contestant, work)


@functools.cache
def _checked(contestant: Contestant, work: Work) -> float:
    worst = 0.0
    losses: tuple[Loss, ...] = ("none",) if work.loss == "none" else ("dense", "last")
    if work.shortest is not None:  # the last step is padding for most rows
        losses = (work.loss,)
    for loss in losses:
        short = replace(work, loss=loss, repeats=1).cut(contestant.checked_steps)
        data, wide = contestant.prepare(Data.draw(short)), Data.draw(short, torch.float64)
        layer = contestant.build(short.shape)
        truth, names = contestant.truth(layer, short.shape)
        output = contestant.run(layer, data)
        lengths = short.lengths()
        expected = step(truth, wide, **({} if lengths is None else {"lengths": lengths}))
        if lengths is not None and isinstance(data.input, PackedSequence):
            expected = pack_padded_sequence(expected, lengths).data
        pairs = {"output": (output, expected)}
        if loss != "none":
            given, right = dict(layer.named_parameters()), dict(truth.named_parameters())
            pairs |= {name: (given[name].grad, right[ours].grad) for name, ours in names.items()}  # type: ignore[misc]
        for name, (value, answer) in pairs.items():
            scale = answer.abs().max().clamp(min=1e-30)
            error = ((value.double() - answer).abs().max() / scale).item()
            limit = TOLERANCE["output" if name == "output" else "gradient"]
            if not error <= limit:
                raise WrongResultError(
                    f"{contestant.name} at {short.shape}, {loss}: {name} is off by {error:.1e} of its largest entry "
                    f"(allowed {limit:.0e}); the benchmark was stopped"
                )
            worst = max(worst, error)
    return worst
