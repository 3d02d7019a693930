"""torch.compile with open sizes: one graph for every number of steps and rows, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import gatedrnn
from tests.conformance.cases import CELL_CASES, Case, as_argument, as_tuple, random_state, spread
from tests.layers.tolerances import REGROUPED, assert_close

I, H = 3, 4  # noqa: E741
# The first sizes differ from each other and from I: torch takes equal ones for one and the same.
LENGTHS = [7, 2, 3, 4, *range(5, 37, 3), 64, 65, 128, 150, 200]
ROWS = [2, 3, 5, 8, 13]
KERNELS = [Case("lstm", "fast"), *(pytest.param(case, marks=pytest.mark.slow) for case in CELL_CASES)]
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own use of what it deprecates
    pytest.mark.filterwarnings("ignore::FutureWarning:torch.*"),
]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch.compiler.reset()


def compilations() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


class Model(nn.Module):
    """A layer inside a larger model, with lengths and a carried state."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.before, self.layer = nn.Linear(I, I, dtype=torch.float64), layer
        self.after = nn.Linear(H, 2, dtype=torch.float64)

    def forward(self, x: Tensor, state: Any, lengths: Tensor) -> Any:
        output, state = self.layer(torch.tanh(self.before(x)), state, lengths=lengths)
        return self.after(output), state


def made(case: Case, **keywords: Any) -> Model:
    model = Model(case.layer(I, H, engine="auto", **keywords))
    spread(model)
    return model


def sizes() -> list[tuple[int, int]]:
    """Each length once and each number of rows with several lengths, all combined over the first two."""
    return [(steps, rows) for k, steps in enumerate(LENGTHS) for rows in (ROWS if k < 2 else [ROWS[k % len(ROWS)]])]


def arguments(model: Model, steps: int, rows: int) -> tuple[Any, ...]:
    x = torch.randn(steps, rows, I, dtype=torch.float64, requires_grad=True)
    return x, as_argument(random_state(model.layer, rows)), torch.randint(1, steps + 1, (rows,))


def value_and_gradients(model: Any, parameters: list[Tensor], given: tuple[Any, ...]) -> list[Tensor]:
    output, state = model(*given)
    loss = output.pow(2).sum() + sum(s.sum() for s in as_tuple(state))
    return [output, *as_tuple(state), *torch.autograd.grad(loss, [given[0], *parameters])]


@pytest.mark.parametrize("recompute", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_training_compiles_at_most_three_times(case: Case, recompute: bool) -> None:
    model = made(case, recompute=recompute)
    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend="aot_eager")
    parameters = list(model.parameters())
    assert len(LENGTHS) == 20 and len({steps for steps, _ in sizes()}) == 20
    for steps, rows in sizes():
        given = arguments(model, steps, rows)
        found, expected = (value_and_gradients(m, parameters, given) for m in (compiled, model))
        assert_close(found, expected, REGROUPED, torch.float64)
    assert compilations() <= 3
    assert not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case("lstm", "fast"), Case("gru", "sigmoid")], ids=str)
def test_training_by_inductor(case: Case) -> None:
    model = made(case)
    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend="inductor")
    for steps, rows in sizes():
        given = arguments(model, steps, rows)
        found, expected = (value_and_gradients(m, list(model.parameters()), given) for m in (compiled, model))
        assert_close(found, expected, REGROUPED, torch.float64)
    assert compilations() <= 3


class Erf(gatedrnn.gates.SigmoidOf):
    """Has no native program: erf is not one of the instructions."""

    def alpha(self, z: Tensor) -> Tensor:
        return torch.erf(z) + z**3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1.1283791670955126 * torch.exp(-z * z) + 3.0 * z * z


def test_without_a_kernel_inference_is_one_graph() -> None:
    """One graph for every length, by torch's own scan; with gradients it is the unrolled loop, a graph per length."""
    model = Model(gatedrnn.MGU(I, H, forget_gate=Erf(), dtype=torch.float64))
    spread(model)
    compiled = torch.compile(model, dynamic=True, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        for steps in (5, 7, 20):
            given = arguments(model, steps, 2)
            assert_close(compiled(*given), model(*given), REGROUPED, torch.float64)
    assert compilations() == 1
    given = arguments(model, 3, 2)
    found, expected = (value_and_gradients(m, list(model.parameters()), given) for m in (compiled, model))
    assert_close(found, expected, REGROUPED, torch.float64)


@dataclass(frozen=True)
class ScaledErf(gatedrnn.gates.SigmoidOf):
    scale: float = 3.0

    def alpha(self, z: Tensor) -> Tensor:
        return torch.erf(z) + self.scale * z

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1.1283791670955126 * torch.exp(-z * z) + self.scale


def test_numbers_of_a_gate_without_a_kernel_are_specialised() -> None:
    """With open sizes torch makes them inputs of the graph, and loses them inside of an autograd.Function."""
    model = Model(gatedrnn.MGU(I, H, forget_gate=ScaledErf(), dtype=torch.float64))
    spread(model)
    given = arguments(model, 3, 2)
    with torch._dynamo.config.patch(specialize_float=True):
        compiled = torch.compile(model, dynamic=True, fullgraph=True, backend="aot_eager")
        found, expected = (value_and_gradients(m, list(model.parameters()), given) for m in (compiled, model))
    assert_close(found, expected, REGROUPED, torch.float64)


@dataclass(frozen=True)
class Powered(gatedrnn.gates.SigmoidOf):
    power: float = 3.0

    def alpha(self, z: Tensor) -> Tensor:
        return z + z.sign() * z.abs() ** self.power

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1.0 + self.power * z.abs() ** (self.power - 1)


def test_an_assigned_gate_is_compiled_anew() -> None:
    layer = gatedrnn.LSTM(I, H, forget_gate=Powered(3.0), dtype=torch.float64)
    x = torch.randn(5, 2, I, dtype=torch.float64)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for power in (3.0, 1.5, 3.0):
        layer.forget_gate = Powered(power)
        assert_close(compiled(x)[0], layer(x)[0], REGROUPED, torch.float64)


def test_packed_sequences_are_refused_by_name() -> None:
    layer = gatedrnn.LSTM(I, H)
    packed = pack_sequence([torch.randn(3, I), torch.randn(2, I)])
    with pytest.raises(Exception, match="pass the padded tensor and lengths="):
        torch.compile(layer, fullgraph=True, backend="eager")(packed)

    class Packing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor, lengths: Tensor) -> Any:
            return self.layer(nn.utils.rnn.pack_padded_sequence(x, lengths))[1]

    with pytest.raises(RuntimeError, match="LSTM: a PackedSequence cannot be compiled or exported"):
        torch.export.export(Packing(), (torch.randn(3, 2, I), torch.tensor([3, 2])))


def test_packed_sequences_run_where_a_graph_may_break() -> None:
    layer = gatedrnn.LSTM(I, H)
    packed = pack_sequence([torch.randn(3, I), torch.randn(2, I)])
    found = torch.compile(layer, backend="eager")(packed)
    assert_close(found[0].data, layer(packed)[0].data, REGROUPED, torch.float32)


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_single_steps_compile_into_one_graph(case: Case) -> None:
    step = case.step(I, H, engine="auto")
    spread(step)
    x = torch.randn(2, I, dtype=torch.float64)

    def twice(x: Tensor) -> Any:
        return step(x, step(x))

    found = torch.compile(twice, fullgraph=True, backend="eager")(x)
    assert compilations() == 1
    torch.testing.assert_close(found, twice(x))
