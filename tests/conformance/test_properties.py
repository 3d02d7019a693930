"""Random options (hypothesis) on every engine: what must hold for any of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import gatedrnn
from tests.cells.equations import run_layer
from tests.conformance.cases import (
    ALL_CASES,
    OWN_CASES,
    Case,
    as_argument,
    as_tuple,
    by_layer,
    on_engines,
    random_state,
    spread,
)
from tests.layers.tolerances import EQUATIONS, REGROUPED, TORCH, assert_close

DOUBLE = torch.float64
SERVED = on_engines(ALL_CASES + OWN_CASES)
small = settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass
class Drawn:
    case: Case
    layer: Any
    x: Tensor
    state: tuple[Tensor, ...]
    lengths: list[int]


@st.composite
def layers(draw: st.DrawFn) -> Drawn:
    case = draw(st.sampled_from(SERVED))
    sizes = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    options: dict[str, Any] = {
        "num_layers": draw(st.integers(1, 3)),
        "bias": draw(st.booleans()),
        "bidirectional": draw(st.booleans()),
        "recompute": draw(st.booleans()),
    }
    if case.cell == "lstm":
        options["proj_size"] = draw(st.integers(0, sizes[1] - 1))
    steps, batch = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, steps), min_size=batch, max_size=batch))
    layer = case.layer(*sizes, **options)
    seed = draw(st.integers(0, 1000))
    spread(layer, seed=seed)
    torch.manual_seed(seed)
    x = torch.randn(steps, batch, sizes[0], dtype=DOUBLE)
    return Drawn(case, layer, x, random_state(layer, batch, seed=seed + 1), lengths)


@small
@given(layers())
def test_equations(d: Drawn) -> None:
    output, state, collected = d.layer(d.x, as_argument(d.state), lengths=d.lengths, return_states="gates")
    expected = run_layer(d.case.equation(), d.case.states, by_layer(d.layer), d.x, d.state, d.lengths)
    assert_close((output, as_tuple(state), collected), expected, EQUATIONS, DOUBLE)


@small
@given(layers())
def test_lengths_packing_and_batch_first_agree(d: Drawn) -> None:
    hx = as_argument(d.state)
    output, state = d.layer(d.x, hx, lengths=d.lengths)
    packed = pack_padded_sequence(d.x, torch.tensor(d.lengths), enforce_sorted=False)
    from_packed, packed_state = d.layer(packed, hx)
    again = pack_padded_sequence(output, torch.tensor(d.lengths), enforce_sorted=False)
    assert_close((from_packed.data, packed_state), (again.data, state), REGROUPED, DOUBLE)
    d.layer.batch_first = True
    other, other_state = d.layer(d.x.transpose(0, 1), hx, lengths=d.lengths)
    torch.testing.assert_close((other.transpose(0, 1), other_state), (output, state), rtol=0, atol=0)


@small
@given(layers(), st.integers(0, 4))
def test_chunks(d: Drawn, cut: int) -> None:
    """With carried state: any cut, any number of layers, one direction."""
    if d.layer.bidirectional or not 0 < cut < len(d.x):
        return
    hx = as_argument(d.state)
    full, end = d.layer(d.x, hx)
    first, middle = d.layer(d.x[:cut], hx)
    second, state = d.layer(d.x[cut:], middle)
    assert_close((torch.cat([first, second]), state), (full, end), REGROUPED, DOUBLE)


@small
@given(layers(), st.randoms(use_true_random=False))
def test_rows_do_not_know_each_other(d: Drawn, random: Any) -> None:
    """Permuting the batch permutes the result."""
    order = list(range(d.x.shape[1]))
    random.shuffle(order)
    output, state = d.layer(d.x, as_argument(d.state), lengths=d.lengths)
    permuted, permuted_state = d.layer(
        d.x[:, order], as_argument(tuple(s[:, order] for s in d.state)), lengths=[d.lengths[k] for k in order]
    )
    expected = as_argument(tuple(s[:, order] for s in as_tuple(state)))
    assert_close((permuted, permuted_state), (output[:, order], expected), REGROUPED, DOUBLE)


@small
@given(
    st.sampled_from(["LSTM", "GRU"]), st.integers(1, 3), st.integers(2, 4), st.integers(1, 3), st.integers(1, 5),
    st.integers(0, 3), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 1000),
)  # fmt: skip
def test_torch(
    kind: str, i: int, h: int, layers: int, steps: int, batch: int, bias: bool, both: bool, first: bool, seed: int
) -> None:
    made = []
    for library in (gatedrnn, nn):
        torch.manual_seed(seed)
        made.append(getattr(library, kind)(i, h, layers, bias, first, 0.0, both, dtype=DOUBLE))
    shape = (batch, steps, i) if first else (steps, batch, i)
    x = torch.randn(shape if batch else (steps, i), dtype=DOUBLE, requires_grad=True)
    results = [module(x) for module in made]
    assert_close(results[0], results[1], TORCH, DOUBLE)
    slopes = [torch.autograd.grad(result[0].pow(2).sum(), x)[0] for result in results]
    assert_close(slopes[0], slopes[1], TORCH, DOUBLE)


@small
@given(layers())
def test_a_state_dict_is_the_whole_layer(d: Drawn) -> None:
    options = {name: getattr(d.layer, name) for name in ("num_layers", "bias", "bidirectional")}
    if d.case.cell == "lstm":
        options["proj_size"] = d.layer.proj_size
    other = d.case.layer(d.layer.input_size, d.layer.hidden_size, **options)
    other.load_state_dict(d.layer.state_dict(), strict=True)
    assert_close(other(d.x), d.layer(d.x), REGROUPED, DOUBLE)
