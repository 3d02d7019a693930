"""Safe numerics shared by the gates: σ and its relatives where they saturate.

The complement 1−σ(s) is always σ(−s), never a subtraction, and the slope σ′(s) is never formed from a rounded σ(s):
both stay right, relative to their own size, until they leave the normal numbers of their dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd import Function

# |s| up to which e^−|s|/2 is a normal number. Beyond it σ(−|s|) is zero in the dtype, and so is σ′(s)·α′ for every
# α′ that the dtype holds: value and gradient are constants, and s may stop growing.
SATURATED = {torch.float32: 174.0, torch.float64: 1416.0}

# From here on softplus(x) = x to the last bit of float64; torch's own switch at 20 loses digits.
SOFTPLUS_THRESHOLD = 40.0


def is_tracer(x: Tensor) -> bool:
    """Whether torch itself put the subclass there, to trace a program: a fake tensor, say."""
    return type(x).__module__.startswith("torch._subclasses.")


def has_no_values(x: Tensor) -> bool:
    """Whether it is a tensor without memory: on the meta device, or one of torch's fake tensors."""
    return x.is_meta or is_tracer(x)


def _limit(dtype: torch.dtype) -> float:
    return SATURATED[dtype]


def _threshold() -> float:
    return SOFTPLUS_THRESHOLD


# torch.compile calls these: with dynamic=True a global number that it sees becomes an argument of the graph.
_limit._dynamo_marked_constant = True  # type: ignore[attr-defined]
_threshold._dynamo_marked_constant = True  # type: ignore[attr-defined]


def widen(*tensors: Tensor | float) -> tuple[tuple[Tensor, ...], torch.dtype]:
    """Bring the arguments to one shape and to the dtype to compute in; return them and the dtype of the result.

    16-bit numbers are computed in float32. Integers become the default dtype, as in torch.sigmoid; Python numbers
    become float64 if there is no tensor among the arguments, so that nothing is lost.
    """
    given = [x for x in tensors if isinstance(x, Tensor)]
    if given:
        result = given[0].dtype
        for x in given[1:]:
            result = torch.promote_types(result, x.dtype)
        if result.is_complex:
            raise TypeError(f"gates are real functions, got a tensor of {result}")
        if not result.is_floating_point:
            result = torch.get_default_dtype()
    else:
        result = torch.float64
    compute = result if result in SATURATED else torch.float32
    device = given[0].device if given else None
    wide = [x.to(compute) if isinstance(x, Tensor) else torch.tensor(x, dtype=compute, device=device) for x in tensors]
    return (tuple(torch.broadcast_tensors(*wide)) if len(wide) > 1 else tuple(wide)), result


def widest(x: Tensor) -> Tensor:
    """x in the widest dtype of its device: float64, which Metal does not have."""
    return x if x.device.type == "mps" else x.double()


def flush(x: Tensor) -> Tensor:
    """x with numbers below the normal ones set to 0: digits are lost there, and native kernels flush too.

    The margin of 2⁻¹⁰ leaves a number alone that only its rounding error took below the smallest normal one.
    """
    return torch.where(x < torch.finfo(x.dtype).tiny * (1 - 2**-10), 0.0, x)


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), exact to the dtype for every x."""
    return torch.nn.functional.softplus(x, threshold=_threshold())


def log_sigmoid(s: Tensor) -> Tensor:
    """log σ(s)."""
    return -softplus(-s)


def logit(f: Tensor) -> Tensor:
    """σ⁻¹(f), relatively exact at both ends and at ½, where log(f/(1−f)) cancels."""
    centre = (f - 0.5).abs() <= 0.25
    # 2f−1 is exact here; the argument is moved away from ±1 where the other branch is taken, whose gradient
    # would otherwise be 0·inf.
    near = 2.0 * torch.atanh(2.0 * torch.where(centre, f, 0.5) - 1.0)
    far = torch.where(centre, 0.25, f)
    return torch.where(centre, near, torch.log(far) - torch.log1p(-far))


def sigmoid_parts(s: Tensor) -> tuple[Tensor, Tensor]:
    """(σ(s), σ(−s)), each relatively exact, from one exponential."""
    e = torch.exp(-s.abs())
    large, small = 1.0 / (1.0 + e), e / (1.0 + e)
    positive = s >= 0
    return torch.where(positive, large, small), torch.where(positive, small, large)


class _Slope(Function):
    """σ′(s)·factor, with the derivatives −tanh(s/2)·σ′(s)·factor and σ′(s): 1−2σ(s) = −tanh(s/2) does not cancel."""

    generate_vmap_rule = True

    @staticmethod
    def forward(s: Tensor, factor: Tensor) -> Tensor:
        a = s.abs()
        tail = a > _threshold()  # where σ′ = e^−a to the last digit, and e^a may overflow
        growth = torch.exp(torch.where(tail, 0.0, a))
        root = torch.exp(torch.where(tail, -0.5 * a, 0.0))
        # In two halves: where the factor is large, the product is a normal number long after e^−a has left them.
        return torch.where(tail, (factor * root) * root, factor / (growth + (2.0 + 1.0 / growth)))

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        s, factor = ctx.saved_tensors
        return grad * (-torch.tanh(0.5 * s) * sigmoid_slope(s, factor)), sigmoid_slope(s, grad)


class _SlopeWithForwardMode(_Slope):
    @staticmethod
    def jvp(ctx, s_tangent, factor_tangent):  # type: ignore[no-untyped-def]
        s, factor = ctx.saved_tensors
        return s_tangent * (-torch.tanh(0.5 * s) * sigmoid_slope(s, factor)) + sigmoid_slope(s, factor_tangent)


class _Gated(Function):
    """φ or 1−φ of a gate, with the gate's own derivative as gradient: autograd of the formula would lose it.

    For σ(s) torch forms f(1−f) from the rounded f, which is 0 as soon as f rounds to 1; for σ(sinh z) it meets
    0·inf. The gate's derivative is written with the complement, and is itself differentiable.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(gate, complement: bool, *z: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        return flush(gate._complement(*z) if complement else gate._value(*z))

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.gate, ctx.complement, *z = inputs
        ctx.save_for_backward(*z)
        ctx.save_for_forward(*z)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        slopes = ctx.gate._slopes(*ctx.saved_tensors)
        if ctx.complement:
            grad = -grad
        return None, None, *(grad * slope for slope in slopes)


class _GatedWithForwardMode(_Gated):
    @staticmethod
    def jvp(ctx, _gate, _complement, *tangents):  # type: ignore[no-untyped-def]
        slopes = ctx.gate._slopes(*ctx.saved_tensors)
        change = sum(t * slope for t, slope in zip(tangents, slopes, strict=True) if t is not None)
        return -change if ctx.complement else change


def _refuse_nested_forward_mode() -> None:
    """torch takes the result of a Function's jvp for a constant of the forward mode around it: a term would be lost."""
    levels = torch._C._functorch.get_interpreter_stack() or ()
    if sum(level.key() == torch._C._functorch.TransformType.Jvp for level in levels) > 1:
        raise NotImplementedError(
            "gates have no forward-mode derivative inside another one, as in jacfwd(jacfwd(f)); "
            "use torch.func.hessian, or reverse mode for one of the two"
        )


# torch.compile cannot trace a Function that defines jvp, and a compiled graph has no forward mode: hence two of each.
# Nor does it keep to `setup_context` where nothing needs a gradient: there the forward formula stands alone.


def _without_gradient(*tensors: Tensor) -> bool:
    return not (torch.is_grad_enabled() and any(x.requires_grad for x in tensors))


def sigmoid_slope(s: Tensor, factor: Tensor) -> Tensor:
    """σ′(s)·factor, differentiable any number of times without losing its digits."""
    if torch.compiler.is_compiling() and _without_gradient(s, factor):
        return _Slope.forward(s, factor)
    if torch.compiler.is_compiling():
        return _Slope.apply(s, factor)  # type: ignore[no-any-return,no-untyped-call]
    _refuse_nested_forward_mode()
    return _SlopeWithForwardMode.apply(s, factor)  # type: ignore[no-any-return,no-untyped-call]


def gated(gate: object, complement: bool, z: Sequence[Tensor]) -> Tensor:
    """φ(z), or 1−φ(z), carrying the gate's own derivative into autograd."""
    if torch.compiler.is_compiling() and _without_gradient(*z):
        return _Gated.forward(gate, complement, *z)
    if torch.compiler.is_compiling():
        return _Gated.apply(gate, complement, *z)  # type: ignore[no-any-return,no-untyped-call]
    _refuse_nested_forward_mode()
    return _GatedWithForwardMode.apply(gate, complement, *z)  # type: ignore[no-any-return,no-untyped-call]


def within_saturation(alpha: Callable[[Tensor], Tensor], z: Tensor) -> tuple[Tensor, Tensor]:
    """(mask, z with the rest set to 0): where σ(α(z)) still moves. Keeps α′ = inf away from the zero it multiplies.

    A NaN counts as alive, and so stays a NaN.
    """
    with torch.no_grad():
        alive = ~(alpha(z.detach()).abs() > _limit(z.dtype))
    return alive, torch.where(alive, z, 0.0)


def product_error(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(p, e) with p + e = a·b exactly (Dekker), as long as nothing overflows."""
    p = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def sum_error(a: Tensor, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """(s, e) with s + e = a + b exactly (Knuth)."""
    s = a + b
    b_in_s = s - a
    return s, (a - (s - b_in_s)) + (b - b_in_s)


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    """a as the sum of two numbers of half its digits (Veltkamp)."""
    digits = 1 - round(math.log2(torch.finfo(a.dtype).eps))
    scaled = a * (2.0 ** ((digits + 1) // 2) + 1.0)
    high = scaled - (scaled - a)
    return high, a - high


def solve_increasing(
    function: Callable[[Tensor], Tensor], derivative: Callable[[Tensor], Tensor], target: Tensor
) -> Tensor:
    """Solve function(z) = target for an odd increasing function: Newton's method kept inside a shrinking bracket.

    Computed in float64. Differentiable in the target, twice if the derivative is differentiable.
    """
    if has_no_values(target):
        return torch.empty_like(target)
    goal = target.detach().abs().double()
    with torch.no_grad():
        low, high = torch.zeros_like(goal), torch.ones_like(goal)
        largest = torch.finfo(torch.float64).max
        while bool(((short := function(high) < goal) & (high < largest)).any()):
            low = torch.where(short, high, low)
            high = torch.where(short, (2.0 * high).clamp(max=largest), high)
        if bool((beyond := short & torch.isfinite(goal)).any()):
            reached = function(high)[beyond].flatten()[0].item()
            raise ValueError(
                f"no pre-activation z has α(z) = {goal[beyond].flatten()[0].item():g}: α does not exceed {reached:g}"
            )
        # α(z) ≈ z near 0, where a bracket alone would lose relative accuracy
        z, stride = torch.clamp(goal, low, high), high - low
        for _ in range(400):
            miss = function(z) - goal
            low, high = torch.where(miss < 0, z, low), torch.where(miss > 0, z, high)
            newton = z - miss / derivative(z)
            # Newton creeps where α grows much faster than a line: then halve the bracket instead.
            usable = (newton > low) & (newton < high) & ((newton - z).abs() <= 0.5 * stride)
            step = torch.where(usable, newton, 0.5 * low + 0.5 * high)
            stride = (step - z).abs()
            done = (miss == 0) | (step == z)
            z = torch.where(done, z, step)
            if bool(done.all()):
                break
        z = torch.where(torch.isinf(goal), torch.inf, z).copysign(target.detach().double())
        inner = torch.where(torch.isinf(z), 0.0, z)
        half_pace = 0.5 / derivative(inner)
    # Adds zero, and carries dz/dtarget = 1/α′(z) and its derivative: a step of the midpoint rule for this equation.
    change = torch.where(torch.isfinite(target), target.double() - target.detach().double(), 0.0)
    return (z + change / derivative(inner + half_pace * change)).to(target.dtype)
