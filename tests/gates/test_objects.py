"""Gates as objects and as torch functions: identity, arguments, transforms, compilation."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
import torch

from gatedrnn import gates
from gatedrnn.gates import GATES, Fast, Gate, IteratedFast, Polynomial, Refine, Sigmoid, Softsign
from tests.gates.points import ONE_PREACTIVATION

# torch.func and gradcheck still import torch.jit modules.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

METHODS = ["value", "complement", "log_value", "log_complement", "derivative", "time_scale"]
WORDS: dict[str, type[Gate]] = {"Sigmoid": Sigmoid, "Softsign": Softsign, "Fast": Fast, "IteratedFast": IteratedFast}
WORDS |= {"Polynomial": Polynomial, "Refine": Refine}


def total(result: Any) -> torch.Tensor:
    return sum(result) if isinstance(result, tuple) else result  # type: ignore[return-value]


def arguments(gate: Gate, *shape: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return [2 * torch.randn(shape, generator=generator, dtype=dtype) for _ in range(gate.preactivations)]


def test_registry() -> None:
    assert list(GATES) == ["sigmoid", "softsign", "fast", "iterated_fast", "polynomial", "refine"]
    for name in GATES:
        assert gates.resolve(name) == GATES[name]()
        assert gates.name_of(GATES[name]()) == name
        assert GATES[name].saturation.startswith("O(")
    assert GATES["refine"].preactivations == 2
    assert len(ONE_PREACTIVATION) == 5
    gate = Polynomial((2.0,))
    assert gates.resolve(gate) is gate
    assert gates.name_of(gate) == "Polynomial(coefficients=(2.0,))"


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="unknown gate 'sigmoidal'; known gates: " + ", ".join(GATES)):
        gates.resolve("sigmoidal")
    with pytest.raises(TypeError, match="a name or a Gate object"):
        gates.resolve(Fast)  # type: ignore[arg-type]


@pytest.mark.parametrize("gate", [*(kind() for kind in GATES.values()), Polynomial((0.5, 0.0, 2.0))], ids=repr)
def test_values_not_identities(gate: Gate) -> None:
    for twin in (eval(repr(gate), WORDS), copy.copy(gate), copy.deepcopy(gate), pickle.loads(pickle.dumps(gate))):
        assert twin == gate
        assert hash(twin) == hash(gate)
        assert type(twin) is type(gate)
        assert repr(twin) == repr(gate)
    assert sum(gate == kind() for kind in GATES.values()) == (0 if gate == Polynomial((0.5, 0.0, 2.0)) else 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        gate.coefficients = (3.0,)  # type: ignore[attr-defined]
    assert Polynomial((1.0,)) != Polynomial((2.0,))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("method", METHODS)
def test_any_shape_number_and_dtype(name: str, method: str) -> None:
    gate = GATES[name]()
    call = getattr(gate, method)
    for shape in [(), (0,), (3, 0), (2, 1, 3)]:
        z = arguments(gate, *shape)
        result = total(call(*z))
        assert result.shape == shape
        flat = total(call(*(x.reshape(-1) for x in z)))
        torch.testing.assert_close(result.reshape(-1), flat, rtol=1e-15, atol=0)
    number = total(call(*[0.75] * gate.preactivations))
    assert number.dtype == torch.float64
    assert number == total(call(*[torch.tensor(0.75, dtype=torch.float64)] * gate.preactivations))
    whole = total(call(*[torch.tensor([2, -1])] * gate.preactivations))
    assert whole.dtype == torch.get_default_dtype()
    assert torch.equal(whole, total(call(*[torch.tensor([2.0, -1.0])] * gate.preactivations)))
    assert total(call(*[torch.tensor([True])] * gate.preactivations)).dtype == torch.get_default_dtype()
    with pytest.raises(TypeError, match="real functions"):
        call(*[torch.tensor([1j])] * gate.preactivations)
    with pytest.raises(TypeError, match=rf"takes {gate.preactivations} pre-activation\(s\), got 3"):
        call(1.0, 1.0, 1.0)
    assert total(call(*[torch.empty(4, device="meta")] * gate.preactivations)).is_meta


def test_refine_broadcasts_and_promotes() -> None:
    gate = Refine()
    z, z_r = torch.linspace(-3, 3, 4)[:, None], torch.linspace(-2, 2, 3)
    table = gate.value(z, z_r)
    assert table.shape == (4, 3)
    assert table[1, 2] == gate.value(z[1, 0], z_r[2])
    torch.testing.assert_close(gate.value(z, 0.0), torch.sigmoid(z))
    assert gate.value(z.double(), z_r).dtype == torch.float64
    assert gate.value(z.half(), z_r.bfloat16()).dtype == torch.float32
    along, across = gate.derivative(z, z_r)
    assert along.shape == across.shape == (4, 3)
    with pytest.raises(RuntimeError, match="must match the size"):
        gate.value(torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("method", METHODS)
def test_gradcheck(name: str, method: str) -> None:
    gate = GATES[name]()
    z = [torch.cat([0.3 * x, torch.zeros(1, dtype=x.dtype)]).requires_grad_() for x in arguments(gate, 7)]
    call = getattr(gate, method)
    kinked = name == "softsign"  # φ″ jumps at 0
    z_first = [x.detach()[:-1].requires_grad_() for x in z] if kinked and method == "derivative" else z
    assert torch.autograd.gradcheck(call, z_first, check_forward_ad=True)
    z_second = [x.detach()[:-1].requires_grad_() for x in z] if kinked else z
    assert torch.autograd.gradgradcheck(call, z_second)


@pytest.mark.parametrize("name", GATES)
def test_forward_mode_vmap_and_hessian(name: str) -> None:
    gate = GATES[name]()
    z = arguments(gate, 6)
    every = tuple(range(len(z)))
    for method in ("value", "complement", "derivative"):
        call = getattr(gate, method)

        def summed(*x: torch.Tensor, call: Any = call) -> torch.Tensor:
            return total(call(*x)).sum()

        torch.testing.assert_close(torch.func.vmap(lambda *x, call=call: total(call(*x)))(*z), total(call(*z)))
        backward = torch.func.grad(summed, argnums=every)(*z)
        tangents = tuple(torch.ones_like(x) for x in z)
        forward: Any = torch.func.jvp(summed, tuple(z), tangents)[1]
        torch.testing.assert_close(forward, sum(g.sum() for g in backward))
        hessian = torch.func.hessian(summed, argnums=every)(*z)
        reverse = torch.func.jacrev(torch.func.jacrev(summed, argnums=every), argnums=every)(*z)
        for i in every:
            for j in every:
                torch.testing.assert_close(hessian[i][j], reverse[i][j], rtol=1e-12, atol=1e-14)
        each = torch.func.vmap(torch.func.grad(summed, argnums=every))(*z)
        torch.testing.assert_close(each, backward)
        if method == "derivative" and name == "softsign":  # a formula that torch differentiates itself
            nested = torch.func.jacfwd(torch.func.jacfwd(summed))(*z)
            torch.testing.assert_close(nested, reverse[0][0], rtol=1e-12, atol=1e-14)
        else:  # torch would leave out a term
            with pytest.raises(NotImplementedError, match=r"as in jacfwd\(jacfwd\(f\)\); use torch.func.hessian"):
                torch.func.jacfwd(torch.func.jacfwd(summed))(*z)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # torch's own, while tracing
@pytest.mark.parametrize(
    "methods",
    [pytest.param(["value"], id="value"), pytest.param(METHODS, id="all", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compile_and_export(name: str, methods: list[str], dtype: torch.dtype) -> None:
    gate = GATES[name]()

    class Traced(torch.nn.Module):
        def forward(self, *z: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(total(getattr(gate, method)(*z)) for method in methods)

    torch.compiler.reset()
    z = [x.requires_grad_() for x in arguments(gate, 5, dtype=dtype)]
    plain = Traced()(*z)
    compiled = torch.compile(Traced(), fullgraph=True, backend="aot_eager")(*z)
    for a, b in zip(plain, compiled, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)
        for x, y in zip(
            torch.autograd.grad(a.sum(), z, retain_graph=True),
            torch.autograd.grad(b.sum(), z, retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-7)
    inputs = tuple(x.detach() for x in z)
    torch.compiler.reset()
    inference = torch.compile(Traced(), fullgraph=True, backend="aot_eager")(*inputs)
    for a, b in zip(plain, inference, strict=True):
        torch.testing.assert_close(a.detach(), b, rtol=1e-6, atol=0)
    exported = torch.export.export(Traced(), inputs).module()(*inputs)
    for a, b in zip(plain, exported, strict=True):
        torch.testing.assert_close(a.detach(), b, rtol=1e-6, atol=0)


def test_fast_gate_is_alive_at_five() -> None:
    z = torch.tensor([3.6, 5.0, 1e38, torch.inf, -1e38, -torch.inf], requires_grad=True)
    (gradient,) = torch.autograd.grad(Fast().value(z).sum(), z)
    s = torch.sinh(z[:2].detach().double())
    torch.testing.assert_close(
        gradient[:2].double(), torch.exp(-s) * torch.cosh(z[:2].detach().double()) / (1 + torch.exp(-s)) ** 2,
        rtol=3e-5, atol=0,
    )  # fmt: skip
    assert gradient[1] > 1e-31
    assert gradient[2:].tolist() == [0.0] * 4


@pytest.mark.parametrize("name", GATES)
def test_with_denormals_flushed(name: str) -> None:
    gate = GATES[name]()
    z = [torch.linspace(-120, 120, 9601) / (1 if name in ("sigmoid", "refine", "softsign") else 20)]
    z += [torch.zeros_like(z[0])] * (gate.preactivations - 1)
    plain = [gate.value(*z), gate.complement(*z), total(gate.derivative(*z))]
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        flushed = [gate.value(*z), gate.complement(*z), total(gate.derivative(*z))]
        scale = gate.time_scale(*z)
    finally:
        torch.set_flush_denormal(False)
    for a, b in zip(plain, flushed, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-6, atol=1.2e-38)
    assert not scale.isnan().any()


@pytest.mark.parametrize("name", ["softsign", "fast", "iterated_fast", "polynomial", "sigmoid"])
def test_the_default_dtype_does_not_matter(name: str) -> None:
    gate: Any = GATES[name]()
    z = torch.tensor([-2.0, -0.0, 0.5])
    expected = [gate.alpha(z), gate.alpha_inverse(z), gate.alpha_derivative(z)]
    torch.set_default_dtype(torch.float64)
    try:
        found = [gate.alpha(z), gate.alpha_inverse(z), gate.alpha_derivative(z)]
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
