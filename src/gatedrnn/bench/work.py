"""What is timed: shapes, and one training or inference step on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

Loss = Literal["dense", "last", "none"]


@dataclass(frozen=True)
class Shape:
    """Steps, batch, input and hidden size of one layer."""

    T: int
    B: int
    I: int  # noqa: E741 - the letter of shapes.py
    H: int

    def __str__(self) -> str:
        return f"{self.T}×{self.B}×{self.I}×{self.H}"


#: The paper's experiments, by what they are.
PAPER = {
    "adding": Shape(5000, 64, 2, 128),
    "copy": Shape(520, 64, 10, 128),
    "psmnist": Shape(784, 50, 1, 512),
    "psmnist_small": Shape(784, 100, 1, 128),
    "ptb": Shape(70, 20, 1150, 1150),
    "speech": Shape(16000, 50, 256, 256),
}


@dataclass(frozen=True)
class Work:
    """One step: forward, and backward from a dense gradient or from the last step; "none" is inference."""

    shape: Shape
    loss: Loss = "dense"
    #: The shortest row of a ragged batch; rows are spread evenly from here to T. None: all rows have T steps.
    shortest: int | None = None
    #: How often it is done for one time: what takes microseconds cannot be timed alone.
    repeats: int = 1

    def cut(self, steps: int) -> Work:
        """The same work with at most so many steps."""
        shortest = None if self.shortest is None else min(self.shortest, steps)
        return replace(self, shape=replace(self.shape, T=min(self.shape.T, steps)), shortest=shortest)

    def lengths(self) -> Tensor | None:
        if self.shortest is None:
            return None
        return torch.linspace(self.shortest, self.shape.T, self.shape.B).round().long().flip(0)

    def useful_steps(self) -> int:
        """Steps times rows that are not padding."""
        lengths = self.lengths()
        return self.shape.T * self.shape.B if lengths is None else int(lengths.sum())


@dataclass(frozen=True)
class Data:
    """The input and the gradient of the output, drawn once and used by all contestants."""

    work: Work
    input: Tensor | PackedSequence
    gradient: Tensor

    @classmethod
    def draw(cls, work: Work, dtype: torch.dtype = torch.float32) -> Data:
        generator, shape = torch.Generator().manual_seed(0), work.shape
        x = torch.randn(shape.T, shape.B, shape.I, generator=generator).to(dtype)
        rows = shape.T if work.loss == "dense" else 1
        gradient = torch.randn(rows, shape.B, shape.H, generator=generator).to(dtype) / (shape.B * rows)
        lengths = work.lengths()
        if lengths is not None and work.loss == "dense":
            gradient = gradient * (torch.arange(shape.T).unsqueeze(-1) < lengths).unsqueeze(-1)
        return cls(work, x, gradient)

    def packed(self) -> Data:
        """The same rows and their gradients, packed."""
        lengths = self.work.lengths()
        assert lengths is not None
        assert isinstance(self.input, Tensor)
        packed = pack_padded_sequence(self.input, lengths)
        return Data(self.work, packed, pack_padded_sequence(self.gradient, lengths).data)


def step(layer: nn.Module, data: Data, **arguments: object) -> Tensor:
    """Run the work once; the gradients are in the parameters afterwards."""
    if data.work.loss == "none":
        with torch.no_grad():
            return _output(layer(data.input, **arguments))
    layer.zero_grad(set_to_none=True)
    output = _output(layer(data.input, **arguments))
    if data.work.loss == "dense":
        output.backward(data.gradient)
    else:
        output[-1].backward(data.gradient[0])
    return output.detach()


def _output(result: tuple[Tensor | PackedSequence, ...]) -> Tensor:
    """Packed output as it comes: padding it again is the caller's choice, and costs more than the layer."""
    return result[0].data if isinstance(result[0], PackedSequence) else result[0]
