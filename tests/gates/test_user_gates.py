"""A custom gate of ten lines supports everything; a wrong one is refused with the property and the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import gatedrnn
from gatedrnn.gates import GATES, Gate, Polynomial, SigmoidOf, check_gate
from gatedrnn.gates.stable import solve_increasing


@dataclass(frozen=True)
class Cubic(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z + z**3 / 3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + z**2


@dataclass(frozen=True)
class Slow(SigmoidOf):
    """Grows like a logarithm: 1−φ = 1e-300 needs z = 1e300."""

    def alpha(self, z: Tensor) -> Tensor:
        return torch.sign(z) * torch.log1p(z.abs())

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 / (1 + z.abs())


@dataclass(frozen=True)
class Steep(SigmoidOf):
    """α and α′ overflow soon, and Newton's method creeps down by 1/1000 a step."""

    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(1000 * z) / 1000

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.cosh(1000 * z)


@dataclass(frozen=True)
class Tower(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(torch.sinh(torch.sinh(z)))

    def alpha_derivative(self, z: Tensor) -> Tensor:
        w = torch.sinh(z)
        return torch.cosh(torch.sinh(w)) * torch.cosh(w) * torch.cosh(z)


AWKWARD: list[SigmoidOf] = [Cubic(), Slow(), Steep(), Tower()]


@pytest.mark.parametrize("gate", AWKWARD, ids=repr)
def test_inverse_is_solved(gate: SigmoidOf) -> None:
    y = torch.tensor([1e-300, 1e-100, 1e-30, 1e-9, 0.1, 0.4999999, 0.5, 0.75, 0.999999], dtype=torch.float64)
    z = gate.inverse_complement(y)
    s = torch.log1p(-y) - torch.log(y)
    torch.testing.assert_close(gate.alpha(z), s, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(gate.inverse(y), -z, rtol=1e-12, atol=0)
    tiny = torch.finfo(torch.float64).tiny
    end = gate.inverse_complement(torch.tensor([tiny], dtype=torch.float64))
    torch.testing.assert_close(
        gate.alpha(end), torch.tensor([708.3964185322641], dtype=torch.float64), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("gate", AWKWARD, ids=repr)
def test_derivatives_of_the_solved_inverse(gate: SigmoidOf) -> None:
    s = torch.tensor([-300.0, -2.0, -0.1, 1e-3, 0.5, 3.0, 300.0], dtype=torch.float64, requires_grad=True)
    root = gate.alpha_inverse(s)
    (first,) = torch.autograd.grad(root.sum(), s, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), s)
    z = root.detach().requires_grad_()
    slope = gate.alpha_derivative(z)
    (curvature,) = torch.autograd.grad(slope.sum(), z)
    torch.testing.assert_close(first, 1 / slope, rtol=1e-14, atol=0)
    torch.testing.assert_close(second, -curvature / slope / slope / slope, rtol=1e-13, atol=1e-15)
    ends = torch.tensor([-torch.inf, torch.inf], dtype=torch.float64, requires_grad=True)
    (none,) = torch.autograd.grad(gate.alpha_inverse(ends).sum(), ends)
    assert torch.equal(none, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("gate", AWKWARD, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_finite_everywhere(gate: SigmoidOf, dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    z = torch.tensor([-torch.inf, -largest, -60.0, -2.0, 0.0, 0.01, 2.0, 60.0, largest, torch.inf], dtype=dtype)
    z.requires_grad_()
    value, complement = gate.value(z), gate.complement(z)
    torch.testing.assert_close(value + complement, torch.ones_like(z))
    assert bool((value.diff() >= 0).all())
    for result in (value, complement, gate.derivative(z)):
        assert result.isfinite().all()
        (first,) = torch.autograd.grad(result.sum(), z, create_graph=True)
        assert not first.isnan().any()
        assert result is not value or first.isfinite().all()
        (second,) = torch.autograd.grad(first.sum(), z)
        assert not second.isnan().any()
    for result in (gate.log_value(z), gate.log_complement(z), gate.time_scale(z)):
        assert not result.isnan().any()
        assert not torch.autograd.grad(result.sum(), z)[0].isnan().any()


@pytest.mark.parametrize("gate", AWKWARD, ids=repr)
def test_values(gate: SigmoidOf) -> None:
    z = torch.tensor([-0.005, -0.002, 0.0, 0.003, 0.004], dtype=torch.float64, requires_grad=True)
    s = gate.alpha(z)
    torch.testing.assert_close(gate.value(z), torch.sigmoid(s))
    torch.testing.assert_close(gate.complement(z), torch.sigmoid(-s))
    torch.testing.assert_close(gate.log_value(z), torch.nn.functional.logsigmoid(s))
    torch.testing.assert_close(gate.time_scale(z), -1 / torch.nn.functional.logsigmoid(s))
    plain = torch.sigmoid(s) * torch.sigmoid(-s) * gate.alpha_derivative(z)
    torch.testing.assert_close(gate.derivative(z), plain)
    check_gate(gate)


def test_slope_where_sigma_prime_alone_underflows() -> None:
    gate = Polynomial(coefficients=(1e12,))
    z = torch.tensor([4.55e-4], dtype=torch.float32)  # α = 94.2, σ′ = 1e-41, α′ = 6e5
    s = z.double() + 1e12 * z.double() ** 3
    exact = torch.exp(-s) * (1 + 3e12 * z.double() ** 2)
    assert 1e-37 < exact.item() < 1e-34
    torch.testing.assert_close(gate.derivative(z).double(), exact, rtol=3e-5, atol=0)
    torch.testing.assert_close(gate.derivative(z), gate.derivative(z.double()).float(), rtol=3e-5, atol=0)


def test_polynomial_coefficients() -> None:
    z = torch.tensor([-1.2, -0.1, 0.0, 0.3, 1.1], dtype=torch.float64)
    for coefficients in [(), (0.0,), (0.5,), (0.0, 2.0), (1 / 6, 1 / 120), (0.0, 0.0, 3.0, 0.0)]:
        gate = Polynomial(coefficients)
        s = z + sum(c * z ** (2 * k + 3) for k, c in enumerate(coefficients))
        torch.testing.assert_close(gate.value(z), torch.sigmoid(s), rtol=1e-14, atol=0)
        torch.testing.assert_close(gate.inverse(gate.value(z)), z, rtol=1e-12, atol=1e-15)
        check_gate(gate)
    assert Polynomial((0.0, 1.0, 0.0)).coefficients == (0.0, 1.0)
    assert Polynomial([2]) == Polynomial((2.0,))
    assert Polynomial(()) == Polynomial((0.0,))


@pytest.mark.parametrize("coefficient", [1e-300, 1e-60, 1e-40, 1e30, 1e60, 1e300])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_polynomial_with_extreme_coefficients(coefficient: float, dtype: torch.dtype) -> None:
    gate, largest = Polynomial((coefficient,)), torch.finfo(dtype).max
    z = torch.tensor([-torch.inf, -largest, -1.0, 0.0, 1.0, largest, torch.inf], dtype=dtype)
    value, slope = gate.value(z), gate.derivative(z)
    one = torch.sigmoid(torch.tensor(1.0 + coefficient)).to(dtype)
    assert value[[0, 1, 3, 5, 6]].tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    torch.testing.assert_close(value[4], one)
    assert slope[3] == 0.25
    assert slope.isfinite().all()


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 1e308])
def test_polynomial_refuses(bad: float) -> None:
    with pytest.raises(ValueError, match=r"coefficients of Polynomial must be finite and at least 0, got"):
        Polynomial((1.0, bad))


@pytest.mark.parametrize("name", GATES)
def test_the_librarys_gates_pass(name: str) -> None:
    check_gate(GATES[name]())


@pytest.mark.parametrize("corner", [0.11, 1.0, 1.37])
@pytest.mark.parametrize("slope_is_wrong", [False, True])
def test_a_gate_whose_second_derivative_jumps(corner: float, slope_is_wrong: bool) -> None:
    """z up to the corner, and a parabola beyond. A derivative that is wrong by 1e-5 is still found."""

    @dataclass(frozen=True)
    class Piecewise(SigmoidOf):
        def alpha(self, z: Tensor) -> Tensor:
            return z + torch.sign(z) * (z.abs() - corner).clamp(min=0) ** 2

        def alpha_derivative(self, z: Tensor) -> Tensor:
            return 1 + 2 * (z.abs() - corner).clamp(min=0) + (1e-5 if slope_is_wrong else 0.0)

    if not slope_is_wrong:
        check_gate(Piecewise())
        return
    with pytest.raises(ValueError, match="the derivative does not agree with the function, at z = "):
        check_gate(Piecewise())


def broken(alpha: Callable[[Tensor], Tensor], slope: Callable[[Tensor], Tensor]) -> Gate:
    class Broken(SigmoidOf):
        def alpha(self, z: Tensor) -> Tensor:
            return alpha(z)

        def alpha_derivative(self, z: Tensor) -> Tensor:
            return slope(z)

    return Broken()


ONE = torch.ones_like
REFUSED = {
    "decreasing": (broken(lambda z: -z, lambda z: -ONE(z)), r"not increasing, at z = 1\.\d+e-06"),
    "decreasing later": (broken(lambda z: torch.sin(z), lambda z: torch.cos(z)), r"not increasing, at z = 1\.5[78]"),
    "even part": (broken(lambda z: z + z**2, lambda z: 1 + 2 * z), r"not odd, α\(−z\) ≠ −α\(z\), at z = 1e-06"),
    "shifted": (broken(lambda z: z + 1, ONE), r"not odd.*at z = "),
    "steep at 0": (broken(lambda z: 2 * z, lambda z: 2 * ONE(z)), r"α′\(0\) ≠ 1, at z = 0"),
    "wrong slope": (broken(torch.sinh, lambda z: torch.cosh(0.5 * z)), r"derivative does not agree.*, at z = "),
    "wrong slope below 0": (
        broken(lambda z: z + z**3, lambda z: 1 + 3 * torch.relu(z) ** 2),
        r"derivative does not agree.*, at z = -",
    ),
    "NaN below 0": (broken(lambda z: z + z**3.5, lambda z: 1 + 3.5 * z**2.5), r"α is NaN, at z = -1e-06"),
    "NaN later": (
        broken(lambda z: z + 0 * torch.sqrt(5 - z.abs()), ONE),
        r"α is NaN, at z = 5\.0",
    ),
    "NaN slope": (broken(lambda z: z, lambda z: ONE(z) * torch.nan), r"derivative does not agree"),
    "NaN at infinity": (
        broken(lambda z: z + z**3 / (1 + z**2) * 0, lambda z: ONE(z)),
        r"is NaN \(torch\.float\d\d\), at z = ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    gate, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        check_gate(gate)


def test_wrong_inverse_is_refused() -> None:
    class WrongInverse(Cubic):
        def alpha_inverse(self, s: Tensor) -> Tensor:
            return 1.001 * solve_increasing(self.alpha, self.alpha_derivative, s)

    with pytest.raises(ValueError, match="the inverse does not invert the function, at z = "):
        check_gate(WrongInverse())


@dataclass(frozen=True, eq=False)
class Learnt(SigmoidOf):
    c: Tensor

    def alpha(self, z: Tensor) -> Tensor:
        return z + self.c * z**3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + 3 * self.c * z**2


class AsModule(SigmoidOf, torch.nn.Module):
    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    alpha = Cubic.alpha
    alpha_derivative = Cubic.alpha_derivative


def test_a_gate_that_would_not_be_trained_is_refused() -> None:
    message = "Learnt: its field c requires a gradient, but the fields of a gate are not trained"
    with pytest.raises(TypeError, match=message):
        gatedrnn.LSTM(2, 3, forget_gate=Learnt(torch.nn.Parameter(torch.ones(()))))
    gatedrnn.LSTM(2, 3, forget_gate=Learnt(torch.ones(())))
    with pytest.raises(TypeError, match=r"AsModule: a gate must not be an nn\.Module"):
        gatedrnn.LSTM(2, 3, forget_gate=AsModule())
    layer = gatedrnn.LSTM(2, 3)
    with pytest.raises(TypeError, match=r"AsModule: a gate must not be an nn\.Module"):
        layer.forget_gate = AsModule()  # type: ignore[assignment]
