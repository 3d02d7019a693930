"""Every engine × cell × gate against the equations written a second time; derivatives of first and second order."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from gatedrnn.cells import CELLS
from gatedrnn.gates import GATES
from gatedrnn.layers import LAYERS, STEPS
from tests.cells.equations import EQUATIONS, PHI, run_layer
from tests.conformance.cases import (
    ALL_CASES,
    AUX_CASES,
    CELL_CASES,
    EAGER,
    OWN_CASES,
    Case,
    as_argument,
    as_tuple,
    by_layer,
    on_engines,
    spread,
)
from tests.conformance.cases import random_state as state_of
from tests.layers.tolerances import EQUATIONS as CLOSE
from tests.layers.tolerances import assert_close

I, H, T, B = 3, 4, 5, 3  # noqa: E741


def test_every_registry_entry_has_a_second_implementation() -> None:
    assert set(CELLS) == set(LAYERS) == set(STEPS) == set(EQUATIONS)
    assert set(GATES) == set(PHI)
    assert {case.cell for case in ALL_CASES} == set(CELLS)
    for name, cell in CELLS.items():
        gates = {case.gate for case in ALL_CASES if case.cell == name}
        assert gates == (set(GATES) if cell.takes_gate else {None})


@pytest.mark.parametrize("engine", EAGER)
def test_every_engine_is_covered(engine: str) -> None:
    """Each serves something; what it does not serve, it refuses by name when it is asked for."""
    assert any(case.engine == engine for case in on_engines(CELL_CASES))
    for case in (replace(case, engine=engine) for case in ALL_CASES):
        if reason := case.refused():
            with pytest.raises(RuntimeError, match=f"the engine '{engine}' cannot run this") as caught:
                case.layer(2, 2)(torch.zeros(1, 1, 2, dtype=torch.float64))
            assert reason in str(caught.value)


def test_the_native_engine_refuses_no_case() -> None:
    assert [str(case) for case in ALL_CASES + OWN_CASES if replace(case, engine="cpu").refused()] == []


@pytest.mark.parametrize("name", CELLS)
def test_takes_gate_is_what_the_layer_and_its_step_accept(name: str) -> None:
    for kind in (LAYERS[name], STEPS[name]):
        arguments = inspect.signature(kind).parameters
        assert {"forget_gate", "forget_init"} <= set(arguments) or not CELLS[name].takes_gate
        assert not {"forget_gate", "forget_init"} & set(arguments) or CELLS[name].takes_gate


def compare(layer: Any, case: Case, x: Tensor, state: tuple[Tensor, ...], lengths: list[int] | None = None) -> None:
    """Output, final states, all states, all gates, and the gradients of a function of all of them."""
    leaves = [x.requires_grad_(), *(s.requires_grad_() for s in state), *layer.parameters()]
    output, final, collected = layer(x, as_argument(state), lengths=lengths, return_states="gates")
    actual = (output, as_tuple(final), collected)
    expected = run_layer(case.equation(), case.states, by_layer(layer), x, state, lengths)
    assert_close(actual, expected, CLOSE, torch.float64)

    def gradients(result: Any) -> Any:
        tensors = [result[0], *result[1], *(result[2][name] for name in sorted(result[2]))]
        generator = torch.Generator().manual_seed(7)
        loss = sum((t * torch.randn(t.shape, generator=generator, dtype=t.dtype)).sum() for t in tensors)
        return torch.autograd.grad(loss, leaves)

    assert_close(gradients(actual), gradients(expected), CLOSE, torch.float64)


@pytest.mark.parametrize("case", on_engines(ALL_CASES + OWN_CASES), ids=str)
def test_values_and_gradients(case: Case) -> None:
    layer = case.layer(I, H)
    spread(layer)
    torch.manual_seed(0)
    compare(layer, case, torch.randn(T, B, I, dtype=torch.float64), state_of(layer, B))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", on_engines(AUX_CASES), ids=str)
def test_layers_directions_and_lengths(case: Case, bias: bool) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=True, bias=bias)
    spread(layer)
    torch.manual_seed(0)
    compare(layer, case, torch.randn(T, B, I, dtype=torch.float64), state_of(layer, B), [3, 5, 1])


@pytest.mark.parametrize("engine", EAGER)
@pytest.mark.parametrize("gate", ["sigmoid", "refine"])
@pytest.mark.parametrize("tied", [False, True])
def test_projection(gate: str, tied: bool, engine: str) -> None:
    case = Case("lstm", gate, (("tied", tied),), engine)
    layer = case.layer(I, H, num_layers=2, bidirectional=True, proj_size=2)
    spread(layer)
    torch.manual_seed(0)
    compare(layer, case, torch.randn(T, B, I, dtype=torch.float64), state_of(layer, B), [5, 2, 4])


@pytest.mark.parametrize("case", on_engines(ALL_CASES + OWN_CASES), ids=str)
def test_single_step(case: Case) -> None:
    """The …Cell module, batched and not, with its gradients."""
    step = case.step(I, H)
    spread(step)
    torch.manual_seed(0)
    x = torch.randn(B, I, dtype=torch.float64, requires_grad=True)
    sizes = step.cell.state_sizes(H)
    state = tuple(torch.randn(B, size, dtype=torch.float64, requires_grad=True) for size in sizes)
    w = dict(step.named_parameters())
    equation = case.equation()
    rows = [equation(w, x[b], *(s[b] for s in state))[0] for b in range(B)]
    expected = tuple(torch.stack([row[k] for row in rows]) for k in range(len(state)))
    actual = as_tuple(step(x, as_argument(state)))
    assert_close(actual, expected, CLOSE, torch.float64)
    leaves = [x, *state, *w.values()]
    first, second = (torch.autograd.grad(torch.cat(result, -1).pow(2).sum(), leaves) for result in (actual, expected))
    assert_close(first, second, CLOSE, torch.float64)

    unbatched = as_tuple(step(x[1], as_argument(tuple(s[1] for s in state))))
    assert_close(unbatched, tuple(e[1] for e in expected), CLOSE, torch.float64)
    zeros = tuple(torch.zeros(B, size, dtype=torch.float64) for size in sizes)
    assert_close(step(x), step(x, as_argument(zeros)), CLOSE, torch.float64)


def as_function(layer: Any) -> Any:
    """The layer as a function of input, state and parameters, for gradcheck."""
    names = [name for name, _ in layer.named_parameters()]
    entries = len(layer.cell.states)

    def function(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        parameters = dict(zip(names, rest[entries:], strict=True))
        output, final = functional_call(layer, parameters, (x, as_argument(rest[:entries])))
        return output, *as_tuple(final)

    return function


def leaves_of(layer: Any, steps: int, batch: int, seed: int = 0) -> list[Tensor]:
    torch.manual_seed(seed)
    x = torch.randn(steps, batch, layer.input_size, dtype=torch.float64)
    tensors = [x, *state_of(layer, batch), *(p.detach().clone() for p in layer.parameters())]
    return [t.requires_grad_() for t in tensors]


@pytest.mark.parametrize("case", on_engines(ALL_CASES + OWN_CASES), ids=str)
def test_gradcheck(case: Case) -> None:
    layer = case.layer(2, 2)
    spread(layer)
    assert torch.autograd.gradcheck(as_function(layer), leaves_of(layer, 2, 1))


@pytest.mark.parametrize("case", on_engines(ALL_CASES + OWN_CASES), ids=str)
def test_gradgradcheck(case: Case) -> None:
    """In a random direction (fast_mode): the full Hessian of every case would take minutes."""
    layer = case.layer(1, 2)
    spread(layer)
    assert torch.autograd.gradgradcheck(as_function(layer), leaves_of(layer, 2, 1), fast_mode=True)


@pytest.mark.parametrize("case", on_engines(CELL_CASES), ids=str)
def test_double_backward_against_the_equations(case: Case) -> None:
    """The gradient of a gradient norm, as in a gradient penalty."""
    layer = case.layer(I, H)
    spread(layer)
    torch.manual_seed(0)
    x, state = torch.randn(T, B, I, dtype=torch.float64, requires_grad=True), state_of(layer, B)

    def penalty(output: Tensor) -> Tensor:
        (slope,) = torch.autograd.grad(output.pow(2).sum(), x, create_graph=True)
        return slope.pow(2).sum()

    expected = run_layer(case.equation(), case.states, by_layer(layer), x, state)[0]
    first, second = (
        torch.autograd.grad(penalty(o), list(layer.parameters()), allow_unused=True)
        for o in (layer(x, as_argument(state))[0], expected)
    )
    assert sum(g is not None for g in first) >= 2
    for a, e in zip(first, second, strict=True):
        assert (a is None) == (e is None)
        if a is not None:
            torch.testing.assert_close(a, e, rtol=1e-9, atol=1e-9)
