"""Exported programs: two forms, any number of steps, saved and run in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gatedrnn
from tests.conformance.cases import ALL_CASES, CELL_CASES, Case, as_argument, random_state, spread
from tests.gates.own import Logarithm
from tests.layers.tolerances import REGROUPED, assert_close

I, H = 3, 4  # noqa: E741
# torch's own use of what it deprecates.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:torch.*"),
]
QUICK = Case("lstm", "fast")
PLAIN = [case if case == QUICK else pytest.param(case, marks=pytest.mark.slow) for case in ALL_CASES]
SLOWLY_PLAIN = pytest.mark.parametrize("plain", [False, pytest.param(True, marks=pytest.mark.slow)])
SLOWLY_OURS = pytest.mark.parametrize("plain", [pytest.param(False, marks=pytest.mark.slow), True])


def made(case: Case, **keywords: Any) -> Any:
    layer = case.layer(I, H, engine="auto", **keywords)
    spread(layer)
    return layer.eval()


def targets(program: torch.export.ExportedProgram) -> set[str]:
    return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_plain_programs_run_at_any_length(case: Case) -> None:
    layer = made(case)
    program = gatedrnn.export.program(layer, (torch.randn(3, 2, I, dtype=torch.float64),), plain=True)
    assert layer.engine == "auto"
    assert "scan" in targets(program) and not any("gatedrnn" in target for target in targets(program))
    for steps, batch in ((2, 5), (37, 1)):
        x = torch.randn(steps, batch, I, dtype=torch.float64)
        with torch.no_grad():
            assert_close(program.module()(x), layer(x), REGROUPED, torch.float64)


@SLOWLY_PLAIN
def test_both_forms_with_everything(plain: bool) -> None:
    """Two layers, two directions, a state, lengths; other steps and rows than the example's."""
    layer = made(Case("lstm", "fast"), num_layers=2, bidirectional=True, batch_first=True)

    def arguments(steps: int, batch: int) -> tuple[Any, ...]:
        x = torch.randn(batch, steps, I, dtype=torch.float64)
        lengths = torch.arange(batch) % steps + 1
        return x, as_argument(random_state(layer, batch)), lengths

    program = gatedrnn.export.program(layer, arguments(4, 3), plain=plain)
    assert ("gatedrnn.scan.default" in targets(program)) is not plain
    for steps, batch in ((2, 6), (19, 2)):
        given = arguments(steps, batch)
        with torch.no_grad():
            assert_close(program.module()(*given), layer(*given), REGROUPED, torch.float64)


@pytest.mark.parametrize("cell", ["minimal_rnn", "fastgrnn", "nru"])
def test_lengths_do_not_fix_the_number_of_steps(cell: str) -> None:
    layer = made(next(case for case in CELL_CASES if case.cell == cell))

    def arguments(steps: int, batch: int) -> tuple[Any, ...]:
        return torch.randn(steps, batch, I, dtype=torch.float64), None, torch.arange(batch) % steps + 1

    program = gatedrnn.export.program(layer, arguments(5, 2))
    for steps, batch in ((2, 6), (7, 3)):
        given = arguments(steps, batch)
        with torch.no_grad():
            assert_close(program.module()(*given), layer(*given), REGROUPED, torch.float64)


def test_the_plain_form_keeps_the_complement() -> None:
    """Time scales of 1e6 and 1e9 steps in float32: 1−f would be 0 by subtraction, and nothing would be written."""
    layer = gatedrnn.LSTM(1, 2, forget_gate="fast", tied=True).eval()
    complement = torch.tensor([1e-6, 1e-9])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_ih_l0[:2] = gatedrnn.gates.Fast().inverse_complement(complement.double())
        layer.bias_ih_l0[2:] = 20.0  # candidate and output gate are 1
    program = gatedrnn.export.program(layer, (torch.zeros(3, 2, 1),), plain=True)
    with torch.no_grad():
        _, (_, c) = program.module()(torch.zeros(100, 2, 1))
    # The bias is rounded to float32, which changes 1−f by its logit times eps.
    torch.testing.assert_close(c[0, 0] / (100 * complement), torch.ones(2), rtol=1e-4, atol=0)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = gatedrnn.GRU(I, H, forget_gate=Logarithm(), dtype=torch.float64)
        self.head = nn.Linear(H, 2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x)[0])  # type: ignore[no-any-return]


LOAD = """
import sys, torch
if {without}:
    sys.modules["gatedrnn"] = None  # makes its import fail
else:
    import gatedrnn
program = torch.export.load({path!r}).module()
with torch.no_grad():
    torch.save([program(x) for x in torch.load({inputs!r})], {outputs!r})
try:
    import gatedrnn
except ImportError:
    print("alone")
"""


@SLOWLY_OURS
def test_saved_programs_run_in_another_process(plain: bool, tmp_path: Path) -> None:
    """A model with a gate of the user's own; of plain operations, where gatedrnn cannot be imported."""
    model = Model().eval()
    path, inputs, outputs = (str(tmp_path / name) for name in ("model.pt2", "inputs.pt", "outputs.pt"))
    program = gatedrnn.export.program(model, (torch.randn(3, 2, I, dtype=torch.float64),), plain=plain)
    torch.export.save(program, path)
    given = [torch.randn(steps, batch, I, dtype=torch.float64) for steps, batch in ((2, 4), (50, 3))]
    torch.save(given, inputs)
    code = LOAD.format(path=path, inputs=inputs, outputs=outputs, without=plain)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ("alone\n" if plain else "")
    with torch.no_grad():
        assert_close(torch.load(outputs), [model(x) for x in given], REGROUPED, torch.float64)


def test_a_program_for_inference_keeps_nothing() -> None:
    layer = made(Case("lstm", "fast"))
    program = gatedrnn.export.program(layer, (torch.randn(3, 2, I, dtype=torch.float64),))
    output = program.module()(torch.randn(3, 2, I, dtype=torch.float64))[0]
    with pytest.raises(RuntimeError, match="export a program for training with gradients enabled"):
        output.sum().backward()


class Branching(gatedrnn.gates.SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z if bool((z > 0).all()) else z * 1.0

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)


def test_what_cannot_be_exported_is_named() -> None:
    x = torch.randn(3, 2, I)
    model = nn.ModuleDict({"first": gatedrnn.GRU(I, H), "second": gatedrnn.GRU(H, H, forget_gate=Branching())})
    model.forward = lambda x: model["second"](model["first"](x)[0])  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match=r"^second: GRU\(4, 4, forget_gate=Branching\(\)\) cannot be exported: "):
        gatedrnn.export.program(model, (x,), plain=True)
    assert model["first"].engine == "auto" and not model["second"]._forward_hooks
    with pytest.raises(RuntimeError, match=r"^the model: LSTM\(3, 4\) cannot be exported: .*input tensor at cpu"):
        gatedrnn.export.program(gatedrnn.LSTM(I, H, device="meta"), (x,))
    with pytest.raises(TypeError, match="args must be a tuple of the model's arguments, got Tensor"):
        gatedrnn.export.program(gatedrnn.LSTM(I, H), x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="program takes a torch.nn.Module, got int"):
        gatedrnn.export.program(3, (x,))  # type: ignore[arg-type]


@SLOWLY_PLAIN
def test_one_tensor_for_both_states(plain: bool) -> None:
    """(zeros, zeros) as the example: torch.export alone would read the second state from the first."""
    layer = made(QUICK)
    zeros = torch.zeros(1, 2, H, dtype=torch.float64)
    program = gatedrnn.export.program(layer, (torch.randn(3, 2, I, dtype=torch.float64), (zeros, zeros)), plain=plain)
    x, state = torch.randn(4, 3, I, dtype=torch.float64), as_argument(random_state(layer, 3))
    with torch.no_grad():
        assert_close(program.module()(x, state), layer(x, state), REGROUPED, torch.float64)


def test_the_reference_engine_is_exported_at_any_length() -> None:
    layer = made(QUICK)
    layer.engine = "reference"
    program = gatedrnn.export.program(layer, (torch.randn(3, 2, I, dtype=torch.float64),))
    assert layer.engine == "reference"
    x = torch.randn(9, 4, I, dtype=torch.float64)
    with torch.no_grad():
        assert_close(program.module()(x), layer(x), REGROUPED, torch.float64)
