"""Calls like one before take a short way: with the same results, and only where they are of the same kind."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

import gatedrnn
from gatedrnn import engines
from gatedrnn.engines import Scan, ScanResult
from gatedrnn.engines.reference import ReferenceEngine

I, H, B = 3, 5, 2  # noqa: E741
TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}  # float32, one or three steps of numbers of order 1


class _Repeating(ReferenceEngine):
    """An engine with a short way, which counts how often it is taken and marks what came over it."""

    taken = 0

    def repeat(self, scan: Scan) -> Any:
        def again(input: Tensor, state: Any, weights: Any) -> Any:
            self.taken += 1
            named = dict(zip(scan.weights, weights, strict=True))
            x = input if input.dim() == 3 else input.unsqueeze(0)
            state = state or [torch.zeros(*(1,) * (input.dim() - 2), *s.shape) for s in scan.state]
            rows = tuple(s.reshape(s.shape[-2:]) for s in state)
            found: ScanResult = self.run(Scan(scan.cell, scan.gate, x, rows, named))
            finals = tuple(s.view_as(given) for s, given in zip(found.state, state, strict=True))
            return found.output if input.dim() == 3 else None, finals

        return again


@pytest.fixture
def repeating(monkeypatch: pytest.MonkeyPatch) -> _Repeating:
    engine = _Repeating()
    monkeypatch.setattr(engines, "ENGINES", {"repeating": engine, "reference": ReferenceEngine()})
    return engine


def test_the_cpu_as_default_device_changes_nothing(repeating: _Repeating) -> None:
    cell, x = gatedrnn.GRUCell(I, H), torch.randn(B, I)
    expected = cell(x)
    for device, taken in (("cpu", 1), ("meta", 1)):  # the factory functions of a short way would make meta tensors
        with torch.device(device):
            assert torch.equal(cell(x), expected)
        assert repeating.taken == taken
    with torch.device("cpu"), torch.device("cpu"):  # one of them could be anything
        cell(x)
    assert repeating.taken == 1


def state_of(module: Any, *shape: int) -> Any:
    state = tuple(torch.randn(*shape, size) for size in module.cell.state_sizes(H))
    return state if len(state) > 1 else state[0]


def gradients_of(module: Any, x: Tensor, state: Any) -> list[Tensor]:
    """Those of the input, the given state and the weights, of a sum in which every entry of the results counts."""
    x = x.detach().requires_grad_()
    given = torch.utils._pytree.tree_map(lambda s: s.detach().requires_grad_(), state) if state is not None else None
    results = torch.utils._pytree.tree_leaves(module(x, given))
    loss = sum((r * torch.arange(1.0, r.numel() + 1).view_as(r)).sum() for r in results)
    wanted = [x, *(given if isinstance(given, tuple) else [given] * (given is not None)), *module.parameters()]
    return list(torch.autograd.grad(loss, wanted))


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "JANET", "MGU", "UGRNN", "LSTMCell", "GRUCell", "JANETCell"])
def test_gradients(kind: str, with_state: bool) -> None:
    """The first call, those after it, and the reference engine's."""
    module = getattr(gatedrnn, kind)(I, H).double()
    shape = (B,) if kind.endswith("Cell") else (1, B)
    x = torch.randn(*(shape if kind.endswith("Cell") else (3, B)), I, dtype=torch.float64)
    state = torch.utils._pytree.tree_map(Tensor.double, state_of(module, *shape)) if with_state else None
    engines.repeats._known.clear()
    first, *others = [gradients_of(module, x, state) for _ in range(3)]
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)
    module.engine = "reference"
    torch.testing.assert_close(first, gradients_of(module, x, state), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_stacks(kind: str, batch_first: bool, with_state: bool) -> None:
    """Three layers, the first call and those after it, with and without gradients."""
    layer = getattr(gatedrnn, kind)(I, H, 3, batch_first=batch_first).double()
    x = torch.randn(*((B, 4) if batch_first else (4, B)), I, dtype=torch.float64)
    state = torch.utils._pytree.tree_map(Tensor.double, state_of(layer, 3, B)) if with_state else None
    engines.repeats._known.clear()
    first, *others = [gradients_of(layer, x, state) for _ in range(3)]
    assert len(engines.repeats._known) == 2  # the second and the third layer are of one kind
    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=0)
    with torch.no_grad():
        found = [layer(x, state) for _ in range(2)]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    layer.engine = "reference"
    torch.testing.assert_close(first, gradients_of(layer, x, state), rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(found[1], layer(x, state), rtol=1e-12, atol=1e-12)


def test_a_graph_is_recorded_as_ever() -> None:
    """Second derivatives, hooks for saved tensors and frozen weights, in a call like one before."""
    layer, x = gatedrnn.LSTM(I, H).double(), torch.randn(2, B, I, dtype=torch.float64)
    layer.weight_ih_l0.requires_grad_(False)
    seen = []
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t.clone(), lambda t: t):
            output = layer(x)[0]
        (first,) = torch.autograd.grad(output.square().sum(), layer.weight_hh_l0, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), layer.weight_hh_l0)
    assert seen
    layer.engine = "reference"
    (first,) = torch.autograd.grad(layer(x)[0].square().sum(), layer.weight_hh_l0, create_graph=True)
    (expected,) = torch.autograd.grad(first.square().sum(), layer.weight_hh_l0)
    torch.testing.assert_close(second, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", [gatedrnn.LSTM, gatedrnn.GRU, gatedrnn.JANET, gatedrnn.UGRNN, gatedrnn.FastGRNN])
@pytest.mark.parametrize("steps", [1, 3])
def test_layers(kind: Any, steps: int, batch_first: bool) -> None:
    layer, x = kind(I, H, batch_first=batch_first), torch.randn(*((B, steps) if batch_first else (steps, B)), I)
    state = state_of(layer, 1, B)
    expected = layer(x, state)
    for _ in range(3):
        with torch.no_grad():
            found = layer(x, state)
        torch.testing.assert_close(found, tuple(torch.utils._pytree.tree_map(Tensor.detach, expected)), **TOLERANCE)
    strided = torch.randn(*x.shape[:-1], 2 * I)[..., ::2]
    with torch.no_grad():
        torch.testing.assert_close(layer(strided, state), layer(strided.clone(), state), rtol=0, atol=0)
        turned = torch.utils._pytree.tree_map(lambda s: s.mT.contiguous().mT, state)
        torch.testing.assert_close(layer(x, turned), layer(x, state), rtol=0, atol=0)


def test_who_takes_the_short_way(repeating: _Repeating) -> None:
    layer, x = gatedrnn.GRU(I, H), torch.randn(1, B, I)
    state = torch.randn(1, B, H)

    def taken(*arguments: Any, module: Any = layer, **keywords: Any) -> int:
        before = repeating.taken
        module(*arguments, **keywords)
        return repeating.taken - before

    assert [taken(x, state) for _ in range(3)] == [0, 1, 1]  # gradients are recorded: another kind
    with torch.no_grad():
        assert [taken(x, state) for _ in range(3)] == [0, 1, 1]
        assert [taken(x) for _ in range(3)] == [0, 1, 1]
        assert [taken(x, state, lengths=[1, 1]) for _ in range(2)] == [0, 0]
        assert [taken(x, state, return_states=True) for _ in range(2)] == [0, 0]
        assert taken(torch._neg_view(-x), state) == 0
        assert taken(x.as_subclass(type("Mine", (Tensor,), {})), state) == 0
        assert [taken(torch.randn(1, 3, I), torch.randn(1, 3, H)) for _ in range(2)] == [0, 1]
        assert taken(x, state, module=gatedrnn.GRU(I, H)) == 1  # another of the same kind
        assert taken(x, state, module=gatedrnn.GRU(I, H, forget_gate="fast")) == 0
        assert taken(x, state, module=gatedrnn.GRU(I, H, engine="reference")) == 0
        for dropping in (gatedrnn.GRU(I, H, weight_dropout=0.5), gatedrnn.GRU(I, H, 2, dropout=0.5)):
            assert [taken(x, module=dropping) for _ in range(2)] == [0, 0]
            assert [taken(x, module=dropping.eval()) for _ in range(2)][1] == dropping.num_layers
        assert [taken(x, module=gatedrnn.GRU(I, H, bidirectional=True)) for _ in range(2)] == [0, 0]
        with torch.overrides.BaseTorchFunctionMode():
            assert taken(x, state) == 0
    with torch.inference_mode():
        assert taken(x, state) == 1


@pytest.mark.usefixtures("repeating")
def test_what_is_wrong_is_still_an_error() -> None:
    """After a call that went well, the same module gives its own errors."""
    step, x, state = gatedrnn.GRUCell(I, H), torch.randn(B, I), torch.randn(B, H)
    with torch.no_grad():
        for _ in range(2):
            step(x, state)
        with pytest.raises(RuntimeError, match="inconsistent input_size: got 4 expected 3"):
            step(torch.randn(B, 4), state)
        with pytest.raises(RuntimeError, match="must have the same dtype"):
            step(x.double(), state)
        with pytest.raises(RuntimeError, match=r"Expected hidden size \(2, 5\)"):
            step(x, torch.randn(3, H))
        for wrong in ((state, state), (state,), [state]):
            with pytest.raises(TypeError, match="hx must be one tensor"):
                step(x, wrong)
        other = gatedrnn.GRUCell(I + 1, H)
        with pytest.raises(RuntimeError, match="size mismatch for weight_ih"):
            functional_call(other, dict(step.named_parameters()), (x, state))


@pytest.mark.usefixtures("repeating")
def test_a_state_of_another_number_of_layers_is_an_error() -> None:
    layer, x = gatedrnn.GRU(I, H, 2), torch.randn(1, B, I)
    for _ in range(2):
        layer(x, torch.randn(2, B, H))
    with pytest.raises(TypeError, match="hx must be one tensor"):
        layer(x, [torch.randn(2, B, H)])
    for layers in (1, 3):
        with pytest.raises(RuntimeError, match=rf"Expected hidden size \(2, 2, 5\) for h_0, got \[{layers}, 2, 5\]"):
            layer(x, torch.randn(layers, B, H))


def test_native_steps_of_unusual_tensors() -> None:
    layer: Any = gatedrnn.LSTM(I, H)
    x, state = torch.randn(1, B, I), state_of(layer, 1, B)
    with torch.no_grad():
        expected = layer(x, state)
        torch.testing.assert_close(layer(x, state), expected, **TOLERANCE)
        torch.testing.assert_close(layer(torch._neg_view(-x), state), expected, **TOLERANCE)
        weights = {name: torch._neg_view(-p) for name, p in layer.named_parameters()}
        torch.testing.assert_close(functional_call(layer, weights, (x, state)), expected, **TOLERANCE)
        emptied = {name: p.clone() for name, p in layer.named_parameters()}
        emptied["weight_hh_l0"].untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match="has no memory: its storage was resized to 0 bytes"):
            functional_call(layer, emptied, (x, state))
    assert layer(x, state)[0].requires_grad
    assert layer(x[:, :0], tuple(s[:, :0] for s in state))[0].shape == (1, 0, H)


def test_large_zero_states_are_not_kept() -> None:
    """A call of another batch size is of another kind, and a thousand kinds are remembered."""

    def elements() -> int:
        gc.collect()
        return sum(found.numel() for found in gc.get_objects() if type(found) is Tensor)

    layer = gatedrnn.GRU(1, 64)
    with torch.no_grad():
        layer(torch.zeros(1, 2, 1))
        before = elements()
        for batch in range(500, 530):
            expected = layer(torch.zeros(1, batch, 1))[0]
            assert torch.equal(layer(torch.zeros(1, batch, 1))[0], expected)  # the short way
        del expected
    assert elements() - before < 30 * 500
