"""Tracing of a gate's methods into its program: α and α′ are run once on a small tensor, and the torch operations are
recorded. The same run checks the methods, so that a wrong one raises an error that names it, on every engine.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gatedrnn.gates.base import Gate, SigmoidOf
from gatedrnn.gates.program import LARGEST_POWER, LOGICAL, MOST_INSTRUCTIONS, Operand, Program

#: What a traced gate may define; the rest of SigmoidOf is what the native engines compute.
_OWN = frozenset(("alpha", "alpha_derivative", "alpha_inverse", "saturation"))
_METHODS = ("alpha", "alpha_derivative")
# Of these, identity is as good as a value.
_UNCHANGING = (NoneType, type, FunctionType, BuiltinFunctionType, torch.dtype, torch.device, torch.layout)
#: Programs and reasons that are remembered.
_REMEMBERED = 256

_lock = threading.Lock()
_known: OrderedDict[Any, Program | str] = OrderedDict()


def program_of(gate: Gate, dtype: torch.dtype) -> Program | str:
    """The program of a gate for tensors of a dtype, or why there is none.

    RuntimeError, naming gate and method, if a method raises, returns a tensor of a different shape, dtype or device, or
    different results for the same input.
    """
    if not isinstance(gate, SigmoidOf):
        return "it is not of the form σ(α(z))"
    key = _key(gate, dtype)
    found = _remembered(key, lambda: _traced(gate, dtype))
    if key is None and isinstance(found, Program):
        return "a field of it cannot be compared by value"
    return found


def check_methods(gate: SigmoidOf, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raise RuntimeError as ``program_of`` does, for pre-activations of this shape: a gate that uses tensors of its own
    may fit some shapes only."""
    key = _key(gate, dtype)

    def check() -> str:
        z = torch.linspace(-2, 2, math.prod(shape), dtype=dtype, device=device).reshape(shape)
        for method in _METHODS:
            _checked(gate, method, z)
        return "checked"

    _remembered(None if key is None else (key, shape, device), check)


def _remembered(key: Any, make: Callable[[], Program | str]) -> Program | str:
    """What was made for this key before, or now; not remembered if the key is None."""
    if key is None:
        return alone(make)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    found = alone(make)
    with _lock:
        _known[key] = found
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return found


def _key(gate: Gate, dtype: torch.dtype) -> Any:
    """Equal for gates with the same methods and fields, None if a field cannot be hashed or compared by value.

    The fields are compared one by one: the gate's own ``==`` may leave some out. The text tells 0.0 from −0.0 and 1
    from True. A number without a dtype has torch's default dtype.
    """
    fields = [(name, type(value), _text(value), value) for name, value in sorted(_fields(gate).items())]
    if any(_is_compared_by_identity(value) for _, _, _, value in fields):
        return None
    methods = [getattr(type(gate), method) for method in _METHODS]
    key = (type(gate), *methods, *fields, dtype, torch.get_default_dtype())
    try:
        hash(key)
    except Exception:  # whatever the __hash__ of a field raises
        return None
    return key


def _fields(gate: Gate) -> dict[str, Any]:
    fields = dict(vars(gate))  # Gate itself has no __slots__, so there is always a __dict__
    for kind in type(gate).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            fields[name] = getattr(gate, name, None)
    return fields


def _is_compared_by_identity(value: object) -> bool:
    """Whether it, or an entry of it, stays equal to itself when its attributes change."""
    if isinstance(value, tuple | frozenset):
        return any(map(_is_compared_by_identity, value))
    if isinstance(value, Tensor | MethodType):
        return True
    return type(value).__hash__ is object.__hash__ and not isinstance(value, _UNCHANGING)


def _text(value: object) -> str:
    return repr(value) if isinstance(value, (int, float, complex, tuple, frozenset)) else ""


T = TypeVar("T")


def alone(function: Callable[[], T]) -> T:
    """The function in a thread of its own, which has none of the caller's modes: autocast, vmap, compile, default
    device, fake tensors, gradients."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with torch.no_grad():
                results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="gatedrnn gate tracing")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class _NotTracedError(Exception):
    """Why a method has no program."""


class _CapturedTensorError(_NotTracedError):
    """It uses a tensor of its own."""


def _traced(gate: SigmoidOf, dtype: torch.dtype) -> Program | str:
    recorder, grid = _Recorder(dtype), grid_of(dtype)
    try:
        results = [recorder.record(gate, method) for method in _METHODS]
    except _CapturedTensorError as reason:
        return str(reason)  # it may fit some shapes only, so there is nothing that the methods can be tried on
    except _NotTracedError as reason:
        for method in _METHODS:
            _checked(gate, method, grid)
        return str(reason)
    expected = [_checked(gate, method, grid) for method in _METHODS]
    if name := _overridden(type(gate)) or next((name for name in vars(gate) if name in _overridable()), None):
        return f"it overrides {name}"
    program = recorder.program(results)
    if len(program.instructions) > MOST_INSTRUCTIONS:
        return f"it takes {len(program.instructions)} instructions, more than {MOST_INSTRUCTIONS}"
    for method, right, found in zip(_METHODS, expected, program.run(grid), strict=True):
        if not agree(found, right):
            return f"its program does not reproduce {method}"
    return program


def _overridable() -> set[str]:
    members = {**vars(Gate), **vars(SigmoidOf)}
    functions = {name for name, member in members.items() if callable(member) and not name.startswith("__")}
    return (functions | {"preactivations"}) - _OWN


def _overridden(kind: type[Gate]) -> str | None:
    return next((n for n in sorted(_overridable()) if getattr(kind, n, None) is not getattr(SigmoidOf, n, None)), None)


def grid_of(dtype: torch.dtype) -> Tensor:
    """Where a program is compared with the methods: dense about 0, to the largest numbers, infinities and NaN."""
    largest = torch.finfo(dtype).max
    near, far = torch.linspace(0, 12, 241, dtype=dtype), torch.logspace(-30, 30, 61, dtype=dtype)
    positive = torch.cat([near, far, torch.tensor([largest, torch.inf], dtype=dtype)])
    return torch.cat([positive, -positive, torch.tensor([torch.nan], dtype=dtype)])


def agree(found: Tensor, right: Tensor) -> bool:
    """But for a few roundings: torch's own functions differ by as much between the middle and the end of a tensor. An
    error of s that is small beside 1 is one of σ(s) that is small beside its value."""
    slack = 64 * torch.finfo(right.dtype).eps
    return torch.allclose(found, right, rtol=slack, atol=slack, equal_nan=True)


def _checked(gate: SigmoidOf, method: str, z: Tensor) -> Tensor:
    first, second = (_called(gate, method, z) for _ in range(2))
    if not torch.allclose(first, second, rtol=0, atol=0, equal_nan=True):
        raise RuntimeError(
            f"{gate!r}: {method} gives different results for the same input; it must be a function of z alone"
        )
    return first


def _called(gate: SigmoidOf, method: str, z: Tensor) -> Tensor:
    try:
        result = getattr(gate, method)(z)
    except _NotTracedError:
        raise
    except Exception as error:
        raise RuntimeError(f"{gate!r}: {method} raised {type(error).__name__}: {error}") from error
    if not isinstance(result, Tensor):
        raise RuntimeError(f"{gate!r}: {method} must return a tensor, got {type(result).__name__}")
    for what, given, right in (
        ("shape", tuple(result.shape), tuple(z.shape)),
        ("dtype", result.dtype, z.dtype),
        ("device", result.device, z.device),
    ):
        if given != right:
            raise RuntimeError(f"{gate!r}: {method} must keep the {what} of z, {right}, got {given}")
    return result


class _Recorder(TorchDispatchMode):
    """Runs methods and writes down their instructions; what was computed before is not computed again."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.z = torch.linspace(-2, 2, 5, dtype=dtype)
        self.instructions: list[tuple[str, tuple[Operand, ...]]] = []
        #: The register or constant of a tensor; the tensors are kept, or their identities would be lost.
        self.operands: dict[int, Operand] = {id(self.z): 0}
        self.alive: list[Tensor] = [self.z]

    def record(self, gate: SigmoidOf, method: str) -> Operand:
        self.method = method
        with self:
            result = _called(gate, method, self.z)
        if id(result) not in self.operands:
            raise _CapturedTensorError(f"{method} returns a tensor that it did not compute from z")
        return self.operands[id(result)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = self._given(func, args, kwargs)
        result = func(*args, **kwargs)
        if not isinstance(result, Tensor):
            raise self._refused(func)
        constant = all(isinstance(operand, float) for operand in given)
        if constant:  # also of factories, which have no operands at all
            if func.overloadpacket.__name__ not in (*_FACTORIES, *_RULES):
                raise self._refused(func)
            if len({repr(value) for value in result.flatten().tolist()}) != 1:
                raise _CapturedTensorError(f"{self.method} uses a tensor that it did not compute from z")
            return self._remember(result, float(result.flatten()[0]))
        if result.dtype not in (self.z.dtype, torch.bool):
            raise _NotTracedError(f"{self.method} uses {func}, which changes the dtype to {result.dtype}")
        rule = _RULES.get(func.overloadpacket.__name__)
        if rule is None or result.shape != self.z.shape:
            raise self._refused(func)
        operand = rule(self, *self._operands(args), **{name: self._operand(value) for name, value in kwargs.items()})
        if operand is None:
            raise self._refused(func)
        if result.dtype == torch.bool and not self.is_logical(operand):
            raise _NotTracedError(f"{self.method} uses {func} on boolean tensors")
        return self._remember(result, operand)

    def _refused(self, func: Any) -> _NotTracedError:
        if func.overloadpacket.__name__ == "_local_scalar_dense":
            return _NotTracedError(f"{self.method} depends on values (an if, float() or .item())")
        return _NotTracedError(f"{self.method} uses {func}, which is not an instruction of gate programs")

    def _given(self, func: Any, args: Any, kwargs: Any) -> list[Operand]:
        """The operands of the tensors among the arguments."""
        found = []
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                if id(value) not in self.operands:
                    if func.overloadpacket.__name__ != "lift_fresh":  # a number, made a tensor by the method itself
                        raise _CapturedTensorError(f"{self.method} uses a tensor that it did not compute from z")
                    continue
                found.append(self.operands[id(value)])
            elif isinstance(value, (list, tuple)) and any(isinstance(entry, Tensor) for entry in value):
                raise self._refused(func)
        return found if func.overloadpacket.__name__ not in _FACTORIES else []

    def _remember(self, tensor: Tensor, operand: Operand) -> Tensor:
        self.operands[id(tensor)] = operand
        self.alive.append(tensor)
        return tensor

    def _operands(self, values: Any) -> list[Any]:
        return [self._operand(value) for value in values]

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.operands[id(value)]
        # Rounded as torch does: beyond the largest number of the dtype it is infinite.
        return torch.tensor(float(value), dtype=self.z.dtype).item() if isinstance(value, (int, float)) else value

    def is_logical(self, operand: Operand) -> bool:
        """Whether it is 1 or 0 for every z."""
        if isinstance(operand, float):
            return operand in (0.0, 1.0)
        if operand == 0:
            return False
        name, operands = self.instructions[operand - 1]
        return name in LOGICAL or (name == "where" and all(self.is_logical(o) for o in operands[1:]))

    def emit(self, name: str, *operands: Operand) -> int:
        """The register of this instruction's result."""
        instruction = (name, operands)
        # −0.0 equals 0.0 and NaN nothing, so the text decides whether two instructions are the same.
        for register, known in enumerate(self.instructions, 1):
            if repr(known) == repr(instruction):
                return register
        self.instructions.append(instruction)
        return len(self.instructions)

    def program(self, results: list[Operand]) -> Program:
        """Only what the results need, in the order in which it was computed."""
        value, slope = (self.emit("copy", r) if isinstance(r, float) else r for r in results)
        needed, pending = {0}, [value, slope]
        while pending:
            register = pending.pop()
            if register not in needed:
                needed.add(register)
                pending += [o for o in self.instructions[register - 1][1] if isinstance(o, int)]
        number = {register: place for place, register in enumerate(sorted(needed))}
        kept = [self.instructions[register - 1] for register in sorted(needed) if register]
        renumbered = [(name, tuple(number[o] if isinstance(o, int) else o for o in ops)) for name, ops in kept]
        return Program(tuple(renumbered), number[value], number[slope])


def _plain(name: str) -> Callable[..., Operand]:
    return lambda recorder, *operands: recorder.emit(name, *operands)


def _scaled(r: _Recorder, factor: float, x: Operand) -> Operand:
    return x if factor == 1 else r.emit("mul", x, factor)


def _add(r: _Recorder, a: Operand, b: Operand, alpha: float = 1.0) -> Operand:
    return r.emit("add", a, _scaled(r, alpha, b))


def _sub(r: _Recorder, a: Operand, b: Operand, alpha: float = 1.0) -> Operand:
    return r.emit("sub", a, _scaled(r, alpha, b))


def _rsub(r: _Recorder, a: Operand, b: Operand, alpha: float = 1.0) -> Operand:
    return r.emit("sub", b, _scaled(r, alpha, a))


def _mul(r: _Recorder, a: Operand, b: Operand) -> Operand:
    if b == 1.0 and isinstance(b, float):  # torch writes 1/x as a product with 1
        return a
    masks = isinstance(a, int) and isinstance(b, int) and r.is_logical(a) and r.is_logical(b)
    return r.emit("and" if masks else "mul", a, b)


def _div(r: _Recorder, a: Operand, b: Operand, rounding_mode: str | None = None) -> Operand | None:
    return r.emit("div", a, b) if rounding_mode is None else None


def _pow(r: _Recorder, x: Operand, y: Operand) -> Operand:
    """torch's own special cases, then whole powers, then any."""
    if isinstance(y, float):
        if y in (2.0, 3.0):
            square = r.emit("mul", x, x)
            return square if y == 2.0 else r.emit("mul", square, x)
        if y == 1.0:
            return x
        simple = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}.get(y)
        if simple:
            return r.emit(simple, x)
        if y.is_integer() and 0 < abs(y) <= LARGEST_POWER:
            return r.emit("powi", x, y)
    return r.emit("pow", x, y)


def _clamp(r: _Recorder, x: Operand, min: Operand | None = None, max: Operand | None = None) -> Operand:
    x = x if min is None else r.emit("maximum", x, min)
    return x if max is None else r.emit("minimum", x, max)


def _softplus(r: _Recorder, x: Operand, beta: float = 1.0, threshold: float = 20.0) -> Operand:
    scaled = _scaled(r, beta, x)
    # Bounded, because the derivative of a branch that is not taken must be a number too.
    logarithm = r.emit("log1p", r.emit("exp", r.emit("minimum", scaled, threshold)))
    logarithm = logarithm if beta == 1 else r.emit("div", logarithm, beta)
    return r.emit("where", r.emit("gt", scaled, threshold), x, logarithm)


def _same(r: _Recorder, x: Operand, **_: object) -> Operand:
    return x


#: How torch makes a tensor of a number.
_NUMBERS = ("scalar_tensor", "lift_fresh")
#: Operations of ATen that return a constant for any tensor argument.
_FACTORIES = frozenset(
    ("full", "full_like", "new_full", "ones", "ones_like", "new_ones", "zeros", "zeros_like", "new_zeros", *_NUMBERS)
)
#: How the others become instructions: (recorder, operands, keywords) -> register, or None if that form is not known.
_RULES: dict[str, Callable[..., Operand | None]] = {
    **{name: _plain(name) for name in ("neg", "abs", "sign", "reciprocal", "sqrt", "rsqrt", "exp", "expm1", "log")},
    **{
        name: _plain(name)
        for name in ("log1p", "sinh", "cosh", "tanh", "asinh", "sigmoid", "minimum", "maximum", "where")
    },
    **{name: _plain(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{kind}_{name}": _plain(name) for kind in ("logical", "bitwise") for name in ("and", "or", "xor", "not")},
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "div": _div,
    "square": lambda r, x: r.emit("mul", x, x),
    "pow": _pow,
    "clamp": _clamp,
    "clamp_min": lambda r, x, bound: r.emit("maximum", x, bound),
    "clamp_max": lambda r, x, bound: r.emit("minimum", x, bound),
    "softplus": _softplus,
    "detach": _same,
    "alias": _same,
    "clone": _same,
}
