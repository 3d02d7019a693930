"""Tensors whose memory does not hold their values: resolved by torch's dispatcher, or refused, never read as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_map

import gatedrnn
from gatedrnn import cells, gates
from gatedrnn.engines.cpu.engine import CPUEngine
from gatedrnn.engines.interface import Scan
from gatedrnn.engines.reference import ReferenceEngine
from tests.engines.cpu.test_engine import CELLS, make

ENGINE, REFERENCE = CPUEngine(), ReferenceEngine()
TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}  # float64, six steps

# Each makes a tensor of the same values, or of zeros, whose memory holds something else.
UNUSUAL: dict[str, Callable[[Tensor], Tensor]] = {
    "negative view": lambda t: torch._neg_view(-t),
    "imaginary part of a conjugate": lambda t: torch.complex(torch.zeros_like(t), -t).conj().imag,
    "imaginary part of an adjoint": lambda t: (
        torch.complex(torch.zeros_like(t), -t).transpose(-1, -2).contiguous().mH.imag
        if t.dim() > 1
        else torch.complex(torch.zeros_like(t), -t).conj().imag
    ),
    "zero tensor": lambda t: torch._efficientzerotensor(t.shape, dtype=t.dtype),
}


def plain(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor).copy_(tensor)


def results(engine: Any, scan: Scan) -> dict[str, Tensor]:
    found = engine.run(scan)
    return {"output": found.output, **{f"state {i}": s for i, s in enumerate(found.state)}, **found.collected}


def variants(scan: Scan, unusual: Callable[[Tensor], Tensor]) -> dict[str, tuple[Scan, Scan]]:
    """The scan with one tensor after the other made unusual, and the same with a plain copy of it."""
    found = {"input": [replace(scan, input=change(unusual(scan.input))) for change in (lambda t: t, plain)]}
    for i, state in enumerate(scan.state):
        found[f"state {i}"] = [
            replace(scan, state=(*scan.state[:i], change(unusual(state)), *scan.state[i + 1 :]))
            for change in (lambda t: t, plain)
        ]
    for name, weight in scan.weights.items():
        found[name] = [
            replace(scan, weights={**scan.weights, name: change(unusual(weight))}) for change in (lambda t: t, plain)
        ]
    return found


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_values_without_gradient(cell: cells.Cell, kind: str) -> None:
    scan = make(cell, gates.Refine(), collect="gates")
    detached = replace(
        scan,
        input=scan.input.detach(),
        state=tuple(s.detach() for s in scan.state),
        weights={n: w.detach() for n, w in scan.weights.items()},
    )
    for enabled in (False, True):
        with torch.set_grad_enabled(enabled):
            for name, (unusual, usual) in variants(detached, UNUSUAL[kind]).items():
                assert ENGINE.refuses(unusual) is None
                found, expected = results(ENGINE, unusual), results(REFERENCE, usual)
                torch.testing.assert_close(found, expected, **TOLERANCE, msg=lambda m, n=name: f"{n}: {m}")
    with torch.inference_mode():
        unusual, usual = variants(detached, UNUSUAL[kind])["input"]
        torch.testing.assert_close(results(ENGINE, unusual), results(REFERENCE, usual), **TOLERANCE)


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_gradients(cell: cells.Cell, kind: str) -> None:
    """Of the unusual tensor and of all others, with an unusual incoming gradient."""
    scan = make(cell, gates.Refine(), collect=True)
    for name, pair in variants(replace(scan), UNUSUAL[kind]).items():
        slopes = []
        for engine, some in zip((ENGINE, REFERENCE), pair, strict=True):
            leaves = [scan.input, *scan.state, *scan.weights.values()]
            found = list(results(engine, some).values())
            grads = [UNUSUAL["negative view"](torch.cos(torch.arange(v.numel()).view(v.shape).double())) for v in found]
            slopes.append(torch.autograd.grad(found, leaves, grads, allow_unused=True, materialize_grads=True))
        torch.testing.assert_close(slopes[0], slopes[1], **TOLERANCE, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kind", [gatedrnn.LSTM, gatedrnn.GRU, gatedrnn.JANET])
def test_layers_with_negative_views(kind: Any) -> None:
    """As users meet them: the input from a spectrum, a state, and weights by functional_call; float32 against float64."""
    torch.manual_seed(0)
    layer, exact = (
        kind(5, 4, bidirectional=True),
        kind(5, 4, bidirectional=True, engine="reference", dtype=torch.float64),
    )
    exact.load_state_dict(layer.state_dict())
    spectrum = torch.stft(torch.randn(3, 40), 8, 4, window=torch.ones(8), return_complex=True)  # (3, 5, frames)
    x = spectrum.mH.imag.transpose(0, 1)
    assert x.is_neg()
    with torch.no_grad():
        expected = exact(plain(x).double())
        torch.testing.assert_close(layer(x)[0].double(), expected[0], rtol=1e-5, atol=1e-5)
        parameters = {n: UNUSUAL["negative view"](p.detach()) for n, p in layer.named_parameters()}
        torch.testing.assert_close(functional_call(layer, parameters, (x,))[0], layer(x)[0])
        lengths = UNUSUAL["negative view"](torch.tensor([11, 4, 7]))
        found = layer(x, lengths=lengths)[0].double()
        torch.testing.assert_close(found, exact(plain(x).double(), lengths=plain(lengths))[0], rtol=1e-5, atol=1e-5)
        half = kind(5, 4, bidirectional=True, dtype=torch.bfloat16)
        torch.testing.assert_close(half(x.bfloat16())[0], half(plain(x.bfloat16()))[0], rtol=0, atol=0)
        torch.testing.assert_close(
            half(UNUSUAL["negative view"](plain(x).bfloat16()))[0], half(plain(x).bfloat16())[0], rtol=0, atol=0
        )


class Doubled(torch.Tensor):
    """Twice what its memory holds, by __torch_function__."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def value(t: Any) -> Any:
            return 2 * t.as_subclass(Tensor) if isinstance(t, cls) else t

        if func in (Tensor.requires_grad.__get__, Tensor.as_subclass):
            return super().__torch_function__(func, types, args, kwargs or {})
        with torch._C.DisableTorchFunctionSubclass():
            return func(*tree_map(value, args), **tree_map(value, kwargs or {}))


class Wrapped(torch.Tensor):
    """No memory of its own, as a DTensor has none: __torch_dispatch__ works on what it holds."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, requires_grad=held.requires_grad)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inside = tree_map(lambda t: t.held if isinstance(t, cls) else t, (args, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, Tensor) else t, func(*inside[0], **inside[1]))


class Mine(nn.Parameter):
    pass


@pytest.mark.parametrize("kind", [gatedrnn.LSTM, gatedrnn.GRU, gatedrnn.JANET])
def test_subclasses(kind: Any) -> None:
    """Subclasses keep their meaning for input, state and weights: the reference engine runs, and the layer says so."""
    torch.manual_seed(0)
    layer, x = kind(3, 4), torch.randn(5, 2, 3)
    with torch.no_grad():
        expected = layer(x)[0]
        found = layer(Wrapped(x))[0]
        torch.testing.assert_close(found.held, expected)
        weights = {n: Wrapped(p.detach()) for n, p in layer.named_parameters()}
        torch.testing.assert_close(functional_call(layer, weights, (x,))[0].held, expected)
        torch.testing.assert_close(layer((0.5 * x).as_subclass(Doubled))[0], expected)
        assert "not cpu: it does not take the tensor subclass Wrapped" in gatedrnn.explain(layer, Wrapped(x))
    layer.weight_hh_l0 = Mine(layer.weight_hh_l0.detach())
    torch.testing.assert_close(layer(x)[0], expected)


def test_wrappers_that_outlive_their_transform() -> None:
    layer, x = gatedrnn.GRU(3, 4), torch.randn(5, 2, 3)
    left: list[Tensor] = []
    for transform in (torch.vmap, torch.func.grad, torch.func.functionalize):
        transform(lambda t: left.append(t) or t.sum())(x[None] if transform is torch.vmap else x)
    with torch.no_grad():
        with pytest.raises(RuntimeError, match="functorch|Batching rule"):  # torch says so
            layer(left[0])
        for tensor in left[1:]:
            torch.testing.assert_close(torch.as_tensor(layer(tensor)[0]), layer(x)[0])


def test_fake_tensors_have_shapes_only() -> None:
    layer, x = gatedrnn.LSTM(3, 4), torch.randn(5, 2, 3)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = mode.from_tensor(x)
        for enabled in (False, True):
            with torch.set_grad_enabled(enabled):
                found = layer(fake)[0]
                assert type(found) is type(fake) and found.shape == (5, 2, 4)


def test_batched_gradients() -> None:
    """Several incoming gradients at once, by torch's own vmap over the backward pass."""
    layer: Any = gatedrnn.GRU(3, 4, dtype=torch.float64)
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    output = layer(x)[0]
    several = torch.randn(3, *output.shape, dtype=torch.float64)
    one_by_one = torch.stack([torch.autograd.grad(output, x, g, retain_graph=True)[0] for g in several])
    (found,) = torch.autograd.grad(output, x, several, is_grads_batched=True)
    torch.testing.assert_close(found, one_by_one)
