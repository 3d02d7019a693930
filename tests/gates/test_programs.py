"""Gate programs: what is traced and what is not, and that a program gives what the methods do."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

import gatedrnn
from gatedrnn.gates import SigmoidOf, Softsign, program_of, tracing
from gatedrnn.gates.program import OPERATIONS, Program, ProgramGate
from tests.gates.own import OWN, Cubic, Scaled

DTYPES = [torch.float32, torch.float64]


def gate_of(
    alpha: Callable[[Tensor], Any], derivative: Callable[[Tensor], Any] = torch.ones_like, name: str = "Mine"
) -> SigmoidOf:
    """A gate with these methods, of a class of its own."""
    members = {"alpha": lambda self, z: alpha(z), "alpha_derivative": lambda self, z: derivative(z)}
    made: SigmoidOf = type(name, (SigmoidOf,), members)()
    return made


def traced(gate: SigmoidOf, dtype: torch.dtype = torch.float32) -> Program:
    program = program_of(gate, dtype)
    assert isinstance(program, Program), program
    return program


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gate", OWN, ids=repr)
def test_a_program_gives_what_the_methods_do(gate: SigmoidOf, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    z = torch.cat([torch.randn(999, dtype=dtype) * 3, torch.tensor([0.0, -0.0, torch.inf, -torch.inf], dtype=dtype)])
    value, slope = traced(gate, dtype).run(z)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(value, gate.alpha(z), rtol=16 * eps, atol=0, equal_nan=True)
    torch.testing.assert_close(slope, gate.alpha_derivative(z), rtol=16 * eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("gate", OWN, ids=repr)
def test_the_text_is_the_program(gate: SigmoidOf) -> None:
    program = traced(gate)
    assert str(Program.parse(str(program))) == str(program)
    z = torch.linspace(-3, 3, 50, dtype=torch.float64, requires_grad=True)
    other = ProgramGate(str(traced(gate, torch.float64)))
    for method in ("value", "complement", "derivative"):
        expected, found = getattr(gate, method)(z), getattr(other, method)(z)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(torch.autograd.grad(r.sum(), z)[0] for r in (found, expected)))


def test_subexpressions_are_shared_and_constants_exact() -> None:
    assert str(traced(Cubic())) == (
        "mul,0,0;mul,1,0;div,2,#4008000000000000;add,0,3;add,1,#3ff0000000000000;=,4,5"
    )  # z² stands once
    for constant in (0.1, -0.0, 1e-300, float("inf"), float("nan")):
        text = str(Program((("add", (0, constant)),), 1, 0))
        ((_, (_, read)),) = Program.parse(text).instructions
        assert repr(read) == repr(constant)


FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "add with alpha": lambda z: torch.add(z, z.exp(), alpha=3),
    "sub with alpha": lambda z: torch.sub(z, z.exp(), alpha=0.5),
    "number minus tensor": lambda z: 2 - z,
    "number over tensor": lambda z: 2 / z,
    "powers": lambda z: z**2 + z**3 + z**-1 + z**-2 + z**7 + z.abs() ** 0.5 + z.abs() ** -0.5 + z.abs() ** 1.7 + z**1,
    "power of a number": lambda z: 2.0**z + 0.5**z,
    "power of tensors": lambda z: z.abs() ** z,
    "roots": lambda z: z.abs().sqrt() + z.abs().rsqrt() + z.reciprocal(),
    "exponentials": lambda z: z.exp() + z.expm1() + z.abs().log() + z.abs().log1p(),
    "hyperbolic": lambda z: z.sinh() + z.cosh() + z.tanh() + z.asinh(),
    "sigmoid": lambda z: z.sigmoid() + torch.square(z) - z.neg(),
    "softplus": lambda z: torch.nn.functional.softplus(z),
    "softplus with numbers": lambda z: torch.nn.functional.softplus(z, beta=2, threshold=5),
    "minimum": lambda z: torch.minimum(z, z.sinh()) + torch.maximum(-z, z) + torch.max(z, z * z),
    "clamp": lambda z: z.clamp(-1, 2) + z.clamp(min=0) + z.clamp(max=1) + torch.clamp(z, -z.abs(), z.abs()),
    "clamp_min": lambda z: torch.clamp_min(z, 0.5) - torch.clamp_max(z, 0.5),
    "comparisons": lambda z: torch.where((z > 1) | (z <= -1) & ~(z == -2), z, 0.0) + torch.where(z != 1, z, z * z),
    "logical": lambda z: torch.where(torch.logical_xor(z >= 0, torch.logical_not(z < 2)), z, -z),
    "masks as numbers": lambda z: (z > 0) * z + (z > 0) * (z < 1) * z,
    "masks in arithmetic": lambda z: (z > 0) * 1.0 * z + (1 - (z > 0) * 1.0) * z.sinh() - -((z < 1) * 1.0),
    "sums of masks": lambda z: (z > 0) * 1.0 + (z > 1) * 1.0,
    "a number beyond the dtype": lambda z: torch.where(z.abs() < 1e39, z, 2 * z),
    "where of numbers": lambda z: torch.where(z > 0, 1.0, -1.0) * z,
    "constants": lambda z: z + torch.full_like(z, 2.0) * torch.ones_like(z) + torch.zeros_like(z) + z.new_ones(z.shape),
    "constants without a tensor": lambda z: z * torch.full((), 2.0) + torch.tensor(0.5) + torch.ones(z.shape) * 3,
    "no operations": lambda z: z,
    "a constant": lambda z: torch.full_like(z, 3.0),
    "detached": lambda z: z.detach().clone() * 2,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_the_instructions(form: str) -> None:
    function = FORMS[form]
    program = traced(gate_of(function, function, name=f"Form{list(FORMS).index(form)}"))
    assert program.value == program.slope
    torch.manual_seed(0)
    z = torch.cat([torch.randn(500) * 2, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])])
    torch.testing.assert_close(program.run(z)[0], function(z), rtol=2e-6, atol=1e-6, equal_nan=True)


CAPTURED = torch.tensor(2.0)
REFUSED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "another operation": (torch.erf, "alpha uses aten.erf.default, which is not an instruction"),
    "a sum": (lambda z: z + z.sum(), "alpha uses aten.sum"),
    "an operation in place": (lambda z: z.clone().mul_(2), "alpha uses aten.mul_.Tensor"),
    "floor division": (lambda z: torch.div(z, 2, rounding_mode="floor"), "alpha uses aten.div.Tensor_mode"),
    "a dtype cast": (lambda z: torch.sinh(z.double()).to(z.dtype), "which changes the dtype to torch.float64"),
    "a cast of a mask": (lambda z: (z > 0).to(z.dtype) * z, "alpha uses aten._to_copy"),
    "an if": (
        lambda z: z if z.abs().max() < 100 else z * 2,
        "alpha uses aten.amax|alpha uses aten.max|alpha depends on",
    ),
    "a branch on one value": (
        lambda z: z if z.flatten()[0] < 100 else z * 2,
        "alpha uses aten.select|alpha depends on",
    ),
    "a captured tensor": (lambda z: z * CAPTURED, "alpha uses a tensor that it did not compute from z"),
    "several numbers": (
        lambda z: z * torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "alpha uses a tensor that it did not compute",
    ),
    "as many numbers": (lambda z: z * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), "alpha uses a tensor"),
    "no number": (lambda z: z * torch.tensor([]), "alpha uses a tensor that it did not compute"),
    "by position": (lambda z: z + torch.arange(z.numel()).to(z.dtype) * 0, "alpha uses aten.arange"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_traced(what: str) -> None:
    function, reason = REFUSED[what]
    found = program_of(gate_of(function), torch.float32)
    assert isinstance(found, str)
    assert any(part in found for part in reason.split("|")), found


def test_a_method_that_knows_the_size_is_refused() -> None:
    """What torch was asked for was right for the tensor it was traced on only."""
    gate = gate_of(lambda z: z * z.numel())
    assert program_of(gate, torch.float32) == "its program does not reproduce alpha"


def test_only_alpha_may_be_defined() -> None:
    class Own(SigmoidOf):
        def alpha(self, z: Tensor) -> Tensor:
            return z * 2

        def alpha_derivative(self, z: Tensor) -> Tensor:
            return torch.full_like(z, 2.0)

    class Free(Own):
        saturation = "O(e^-2z)"

        def alpha_inverse(self, s: Tensor) -> Tensor:
            return s / 2

    class Clipped(Own):
        def _value(self, z: Tensor) -> Tensor:
            return super()._value(z).clamp(min=0.1)

    class Rewritten(Softsign):
        pass

    traced(Free())
    assert program_of(Clipped(), torch.float32) == "it overrides _value"
    assert program_of(Rewritten(), torch.float32) == "it overrides _complement"
    shadowed = Free()
    shadowed.__dict__["derivative"] = lambda z: z
    assert program_of(shadowed, torch.float32) == "it overrides derivative"


@dataclass(frozen=True)
class WithList(SigmoidOf):
    coefficients: list[float] = field(default_factory=lambda: [1.0])

    def alpha(self, z: Tensor) -> Tensor:
        return z * self.coefficients[0]

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.full_like(z, self.coefficients[0])


def test_an_unhashable_field() -> None:
    assert program_of(WithList(), torch.float32) == "a field of it cannot be compared by value"


class Multiple(SigmoidOf):
    """α(z) = kz; the subclasses hide k in different ways."""

    _k: float

    def alpha(self, z: Tensor) -> Tensor:
        return z * self._k

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.full_like(z, self._k)


@dataclass(frozen=True)
class OfInitVar(Multiple):
    k: InitVar[float]

    def __post_init__(self, k: float) -> None:
        object.__setattr__(self, "_k", k)


@dataclass(frozen=True)
class NotCompared(Multiple):
    _k: float = field(compare=False, repr=False)


class InSlots(Multiple):
    __slots__ = ("_k",)

    def __init__(self, k: float) -> None:
        self._k = k

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InSlots)

    def __hash__(self) -> int:
        return 0


@dataclass  # neither frozen nor hashable
class Plain(Multiple):
    _k: float


@pytest.mark.parametrize("kind", [OfInitVar, NotCompared, InSlots, Plain])
def test_the_fields_tell_gates_apart_and_not_their_equality(kind: Any) -> None:
    z = torch.linspace(-3, 3, 11)
    for k in (1.5, 5.0, -0.0, 0.0):
        torch.testing.assert_close(traced(kind(k)).run(z)[0], z * k, rtol=0, atol=0)
    changed = kind(2.0)
    traced(changed)
    object.__setattr__(changed, "_k", 3.0)
    torch.testing.assert_close(traced(changed).run(z)[0], z * 3)


def test_a_field_whose_hash_raises() -> None:
    class Angry:
        def __hash__(self) -> int:
            raise ZeroDivisionError

    gate = gate_of(lambda z: z)
    gate.__dict__["field"] = Angry()
    assert program_of(gate, torch.float32) == "a field of it cannot be compared by value"


def test_the_default_dtype_is_part_of_a_gate() -> None:
    """Numbers without a dtype have it, and then α has another one than z."""
    gate = gate_of(lambda z: torch.where(z > 0, 1.0, -1.0))
    traced(gate)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(RuntimeError, match="alpha must keep the dtype of z"):
            program_of(gate, torch.float32)
    finally:
        torch.set_default_dtype(torch.float32)


def test_softplus_has_a_second_derivative_everywhere() -> None:
    softplus = torch.nn.functional.softplus
    z = torch.tensor([-200.0, -1.0, 0.0, 1.0, 30.0, 100.0, 200.0], requires_grad=True)
    found = traced(gate_of(lambda z: softplus(z), torch.sigmoid, name="Softplus")).run(z)[0]
    (slope,) = torch.autograd.grad(found.sum(), z, create_graph=True)
    torch.testing.assert_close(slope, torch.sigmoid(z))
    (bend,) = torch.autograd.grad(slope.sum(), z)
    torch.testing.assert_close(bend, torch.sigmoid(z) * torch.sigmoid(-z), rtol=1e-5, atol=1e-8)


@dataclass(frozen=True)
class Counted(SigmoidOf):
    """Counts its calls."""

    scale: float = 1.0
    calls = 0

    def alpha(self, z: Tensor) -> Tensor:
        type(self).calls += 1
        return z * self.scale

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.full_like(z, self.scale)


def test_traced_once_for_each_value_and_dtype() -> None:
    Counted.calls = 0
    traced(Counted(3.0))
    once = Counted.calls
    for gate in (Counted(3.0), Counted(3.0)):
        traced(gate)
    assert Counted.calls == once
    traced(Counted(3.0), torch.float64)
    assert Counted.calls == 2 * once
    assert str(traced(Counted(0.0))) != str(traced(Counted(-0.0)))
    for scale in range(2 * tracing._REMEMBERED):
        program_of(Counted(1.0 + scale), torch.float32)
    assert len(tracing._known) <= tracing._REMEMBERED


def test_many_threads_trace_at_once() -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.extend(str(traced(Scaled(float(s)))) for s in range(2, 40)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * 38 and len(set(found)) == 38


def fresh() -> Scaled:
    """A gate that was never traced."""
    return Scaled(random.uniform(1.0, 2.0))


def test_traced_outside_of_every_mode() -> None:
    gates = {}

    def look(name: str) -> None:
        gates[name] = gate = fresh()
        assert isinstance(program_of(gate, torch.float32), Program), name

    with torch.autocast("cpu", dtype=torch.bfloat16):
        look("autocast")
    with torch.device("meta"):
        look("default device")
    with FakeTensorMode():
        look("fake tensors")
    with torch.inference_mode():
        look("inference")
    torch.vmap(lambda x: look("vmap") or x)(torch.zeros(2))
    torch.func.grad(lambda x: look("grad") or x)(torch.zeros(()))
    for name, gate in gates.items():
        z = torch.linspace(-1, 1, 7)
        torch.testing.assert_close(traced(gate).run(z)[0], gate.alpha(z), msg=name)


TURNS = itertools.cycle([0.0, torch.nan])
WRONG: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "shape": (lambda z: z[:1], r"alpha must keep the shape of z, \(\d+,\), got \(1,\)"),
    "no tensor": (lambda z: 1.0, "alpha must return a tensor, got float"),
    "dtype": (lambda z: z.double(), "alpha must keep the dtype of z, torch.float32, got torch.float64"),
    "device": (lambda z: z.to("meta"), "alpha must keep the device of z, cpu, got meta"),
    "raises": (lambda z: z + torch.ones(7, 3), r"alpha raised RuntimeError: The size of tensor"),
    "raises in Python": (lambda z: [][0], "alpha raised IndexError: list index out of range"),
    "random numbers of torch": (lambda z: z + torch.rand_like(z), "alpha gives different results for the same input"),
    "now and then no number": (
        lambda z: torch.where(z > 9, next(TURNS), z),
        "alpha gives different results for the same input",
    ),
    "random numbers of Python": (lambda z: z * random.random(), "alpha gives different results for the same input"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_methods_are_errors(what: str) -> None:
    function, message = WRONG[what]
    for _ in range(2):  # not only the first time
        with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message):
            program_of(gate_of(function), torch.float32)
    with pytest.raises(RuntimeError, match=r"^Mine\(\): " + message.replace("alpha", "alpha_derivative")):
        program_of(gate_of(lambda z: z, function), torch.float32)


def test_damaged_texts() -> None:
    for text in ("", "=", "=,0", "mul,0,0", "mul,0,5;=,1,1", "boo,0;=,1,1", "exp,#12;=,1,1", "exp,x;=,1,1", "=,1,0"):
        with pytest.raises(ValueError):  # noqa: PT011 - several texts
            Program.parse(text)
    assert set(OPERATIONS) >= {"where", "pow", "copy"}


class Knob:
    """Equal to itself only, whatever its value."""

    k = 1.0


class Called(Knob):
    def __call__(self) -> None: ...


@dataclass(frozen=True)
class Turned(SigmoidOf):
    knob: Knob

    def alpha(self, z: Tensor) -> Tensor:
        return z * self.knob.k

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.full_like(z, self.knob.k)


def test_an_object_that_can_change_is_read_at_every_call() -> None:
    gate = Turned(Knob())
    layer, x = gatedrnn.LSTM(2, 3, forget_gate=gate), torch.randn(4, 1, 2)
    before = layer(x)[0]
    gate.knob.k = 3.0
    assert (layer(x)[0] - before).abs().max() > 1e-3
    for other in (gate.knob, (gate.knob,), Called(), Called().__call__, torch.ones(1), (torch.ones(1),)):
        gate.__dict__["other"] = other
        assert program_of(gate, torch.float32) == "a field of it cannot be compared by value"
    gate.__dict__.update(knob=None, other=(len, Knob, None, torch.float32))
    assert tracing._key(gate, torch.float32) is not None
