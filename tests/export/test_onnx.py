"""onnxruntime gives what the layer gives, with gates that saturate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import gatedrnn
from gatedrnn import cells, layers
from tests.conformance.cases import ALL_CASES, Case, as_argument, as_tuple, random_state, spread
from tests.export.running import operators, run, session
from tests.gates.own import OWN, Pieces, Scaled

#: Two layers' roundings, of torch's functions and of onnxruntime's; what they differ by does not grow with the steps.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
#: A cell with two states, one with a number that float32 rounds, one with two products in a step.
QUICK = [
    (case, dtype)
    for case in ALL_CASES
    for dtype in TOLERANCE
    if (str(case), dtype)
    in [("lstm-fast", torch.float64), ("janet-iterated_fast", torch.float64), ("mgu-refine", torch.float32)]
]
ALL = [(case, dtype) for case in ALL_CASES for dtype in TOLERANCE]


def saturated(layer: Any, seed: int = 0) -> Any:
    """Weights of size 1 and biases of size 3: gates from nearly 0 to nearly 1."""
    spread(layer, 1.0, seed)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if parameter.dim() == 1 and "bias" in name:
                parameter.mul_(3.0)
    return layer


def check(layer: Any, running: Any, sizes: list[tuple[int, int]], with_lengths: bool, tolerance: float) -> None:
    dtype = next(layer.parameters()).dtype
    for steps, batch in sizes:
        generator = torch.Generator().manual_seed(steps)
        x = torch.randn(steps, batch, layer.input_size, generator=generator, dtype=dtype)
        state = random_state(layer, batch, dtype=dtype)
        lengths = torch.randint(1, steps + 1, (batch,), generator=generator) if with_lengths else None
        with torch.no_grad():
            output, final = layer(x, as_argument(state), lengths)
        found = run(running, x, *state, *([] if lengths is None else [lengths]))
        for right, result in zip((output, *as_tuple(final)), found, strict=True):
            torch.testing.assert_close(result, right, rtol=tolerance, atol=tolerance)


def exported(layer: Any, path: Path, with_lengths: bool, steps: int = 4, batch: int = 2, **options: Any) -> Any:
    dtype = next(layer.parameters()).dtype
    x = torch.randn(steps, batch, layer.input_size, dtype=dtype)
    lengths = (torch.full((batch,), steps),) if with_lengths else ()
    gatedrnn.export.onnx(layer, (x, as_argument(random_state(layer, batch, dtype=dtype)), *lengths), path, **options)
    return session(path)


@pytest.mark.parametrize(
    ("case", "dtype"),
    [pytest.param(*entry, marks=[] if entry in QUICK else [pytest.mark.slow], id=f"{entry[0]}-{entry[1]}") for entry in ALL],
)  # fmt: skip
def test_every_cell_and_gate(case: Case, dtype: torch.dtype, tmp_path: Path) -> None:
    layer = saturated(case.layer(3, 5, dtype=dtype, engine="auto"))
    running = exported(layer, tmp_path / "layer.onnx", False, exact=True)
    assert "LSTM" not in operators(tmp_path / "layer.onnx")
    if case.takes_gate:
        check(layer, running, [(2, 3), (7, 1), (100, 4), (1000, 2)], False, TOLERANCE[dtype])
    else:
        check(layer, running, [(2, 3), (7, 1)], False, TOLERANCE[dtype])
        for steps, batch in [(100, 4), (1000, 2)]:
            check_growing(layer, running, steps, batch)


def check_growing(layer: Any, running: Any, steps: int, batch: int) -> None:
    """The memory of the NRU has no gate: it grows, and a rounding with it, until two sequences have nothing in common.
    So each step is taken from where the layer itself was, all steps side by side as rows of a batch."""
    dtype = next(layer.parameters()).dtype
    x, first = torch.randn(steps, batch, layer.input_size, dtype=dtype), random_state(layer, batch, dtype=dtype)
    with torch.no_grad():
        _, _, collected = layer(x, as_argument(first), return_states=True)
    after = [sequence[0] for sequence in collected.values()]
    before = [
        torch.cat([start, sequence[:-1]]).flatten(0, 1).unsqueeze(0)
        for start, sequence in zip(first, after, strict=True)
    ]
    found = run(running, x.flatten(0, 1).unsqueeze(0), *before)[1:]
    scale = torch.cat([part.abs() for part in before], -1).amax(-1, keepdim=True).clamp(min=1)
    for right, result in zip(after, found, strict=True):
        torch.testing.assert_close(
            result / scale, right.flatten(0, 1).unsqueeze(0) / scale, rtol=0, atol=TOLERANCE[dtype]
        )


@pytest.mark.parametrize("exact", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_stacked_in_both_directions_with_lengths(kind: str, exact: bool, tmp_path: Path) -> None:
    layer = saturated(getattr(gatedrnn, kind)(3, 5, num_layers=2, bidirectional=True))
    running = exported(layer, tmp_path / "layer.onnx", True, steps=1, batch=1, exact=exact)
    assert operators(tmp_path / "layer.onnx").count("Scan" if exact else kind) == 4
    check(layer, running, [(2, 3), (7, 1), (100, 4)], True, TOLERANCE[torch.float32])
    assert running.get_inputs()[0].shape == ["time", "batch", 3]
    names = [entry.name for entry in (*running.get_inputs(), *running.get_outputs())]
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    assert names == ["input", *(f"{s}_0" for s in states), "lengths", "output", *(f"{s}_n" for s in states)]
    assert layer.engine == "auto" and layer.training


OWN_PARAMETERS = [
    pytest.param(gate, marks=[] if gate == Pieces() else [pytest.mark.slow]) for gate in (*OWN, Scaled(0.7))
]


@pytest.mark.parametrize("gate", OWN_PARAMETERS, ids=lambda gate: type(gate).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)])
def test_a_gate_of_ones_own(gate: Any, dtype: torch.dtype, tmp_path: Path) -> None:
    layer = saturated(gatedrnn.GRU(3, 5, forget_gate=gate, dtype=dtype))
    check(layer, exported(layer, tmp_path / "layer.onnx", False), [(7, 3), (100, 1)], False, TOLERANCE[dtype])


class Numbers(torch.nn.Module):
    """Numbers that float32 rounds, real and complex, a size, a flag and an integer as tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = gatedrnn.JANET(2, 3, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        turned = (x.to(torch.complex128) * 0.1 + (0.3 + 0.7j)).abs()
        steps, flag = torch.scalar_tensor(x.shape[0], dtype=torch.float64), torch.scalar_tensor(True, dtype=torch.bool)
        return torch.cat([self.rnn(x)[0], turned * steps + flag + torch.scalar_tensor(3, dtype=torch.int64)], -1)


def test_numbers_keep_their_digits_in_float64(tmp_path: Path) -> None:
    model = Numbers()
    gatedrnn.export.onnx(model, torch.randn(4, 2, 2, dtype=torch.float64), tmp_path / "numbers.onnx")
    x = torch.randn(7, 3, 2, dtype=torch.float64)
    (found,) = run(session(tmp_path / "numbers.onnx"), x)
    torch.testing.assert_close(found, model(x).detach(), rtol=1e-14, atol=1e-14)


def test_a_model_around_the_layer(tmp_path: Path) -> None:
    class Tagger(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(11, 4)
            self.encoder = gatedrnn.UGRNN(4, 6, batch_first=True, forget_gate="fast", dropout=0.5, num_layers=2)
            self.head = torch.nn.Linear(6, 3)

        def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
            output, _ = self.encoder(self.embedding(words), lengths=lengths)
            return self.head(output)

    model = Tagger()
    path = tmp_path / "model.onnx"
    gatedrnn.export.onnx(model, {"words": torch.ones(2, 5, dtype=torch.int64), "lengths": torch.tensor([3, 5])}, path)
    running = session(path)
    model.eval()
    for batch, steps in ((1, 9), (4, 1)):
        words, lengths = torch.randint(11, (batch, steps)), torch.randint(1, steps + 1, (batch,))
        torch.testing.assert_close(
            run(running, words, lengths)[0], model(words, lengths).detach(), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "MinimalRNN"])
def test_a_layer_alone_with_batch_first(cell: str, tmp_path: Path) -> None:
    layer = getattr(gatedrnn, cell)(3, 4, forget_gate="fast", batch_first=True, bidirectional=True)
    gatedrnn.export.onnx(layer, torch.randn(5, 4, 3), tmp_path / "layer.onnx")
    running = session(tmp_path / "layer.onnx")
    for batch, steps in ((1, 1), (1, 6), (6, 1), (7, 9)):
        x = torch.randn(batch, steps, 3)
        torch.testing.assert_close(run(running, x)[0], layer(x)[0].detach(), rtol=1e-5, atol=1e-6)


def test_the_order_of_keyword_arguments_does_not_matter(tmp_path: Path) -> None:
    cell, x, h = gatedrnn.GRUCell(4, 4), torch.randn(3, 4), torch.randn(3, 4)
    gatedrnn.export.onnx(cell, {"hx": h, "input": x}, tmp_path / "cell.onnx")
    (found,) = session(tmp_path / "cell.onnx").run(None, {"input": x.numpy(), "h_0": h.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), cell(x, h).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", [False, True])
def test_one_tensor_for_both_states(step: bool, tmp_path: Path) -> None:
    layer = saturated(gatedrnn.LSTM(3, 5, forget_gate="fast"))
    zeros, steps = torch.zeros(1, 2, 5), 1 if step else 4
    gatedrnn.export.onnx(layer, (torch.randn(steps, 2, 3), (zeros, zeros)), tmp_path / "layer.onnx", step=step)
    check(layer, session(tmp_path / "layer.onnx"), [(steps, 2)], False, TOLERANCE[torch.float32])


@dataclass(frozen=True)
class Halved(cells.LSTMEquations):
    def update(self, *arguments: Any) -> Any:
        h, c = super().update(*arguments)
        return 0.5 * h, c


def test_a_subclass_of_a_cell_is_not_onnx_s_own(tmp_path: Path) -> None:
    layer = gatedrnn.LSTM(3, 5)
    layer.cell = Halved()
    assert isinstance(layer, layers.RecurrentLayer)
    running = exported(saturated(layer), tmp_path / "layer.onnx", False)
    assert "LSTM" not in operators(tmp_path / "layer.onnx")
    check(layer, running, [(6, 3)], False, TOLERANCE[torch.float32])


def test_sizes_by_position(tmp_path: Path) -> None:
    layer = saturated(gatedrnn.GRU(3, 5, forget_gate="fast"))
    sizes = ({0: torch.export.Dim("t"), 1: torch.export.Dim("b")},)
    gatedrnn.export.onnx(layer, (torch.randn(4, 2, 3),), tmp_path / "layer.onnx", dynamic_shapes=sizes)
    x = torch.randn(7, 3, 3)
    with torch.no_grad():
        output, _ = layer(x)
    torch.testing.assert_close(run(session(tmp_path / "layer.onnx"), x)[0], output, rtol=1e-5, atol=1e-5)
