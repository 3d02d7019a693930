"""What a gate function is, and the base for the family σ∘α to which most of them belong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from gatedrnn.gates import stable

PreActivation = Tensor | float


class Gate(ABC):
    """A gate function φ: R → (0, 1), increasing, with the methods that a recurrent layer needs.

    All methods take as many pre-activations as :attr:`preactivations` says, of any shape and floating dtype, ±inf
    included; 16-bit input is computed in float32 and rounded once. Gates are immutable and compare by value.

    A gate of the form σ(α(z)) derives from :class:`SigmoidOf` and defines only α and α′. Any other gate defines the
    underscored methods below, for float32 and float64 tensors of one shape.
    """

    #: The order of saturation, as text: how fast 1−φ(z) falls as z grows.
    saturation: ClassVar[str]
    #: Number of pre-activations: 1, or 2 for a gate with an auxiliary one.
    preactivations: ClassVar[int] = 1

    @abstractmethod
    def _value(self, *z: Tensor) -> Tensor: ...

    @abstractmethod
    def _complement(self, *z: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_value(self, *z: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_complement(self, *z: Tensor) -> Tensor: ...

    @abstractmethod
    def _derivatives(self, *z: Tensor) -> tuple[Tensor, ...]:
        """∂φ for each pre-activation; differentiable by autograd."""

    @abstractmethod
    def _inverse(self, small: Tensor, above: Tensor) -> tuple[Tensor, ...]:
        """The pre-activations at which the smaller of φ and 1−φ is small; it is 1−φ where above (a mask) holds."""

    def _reciprocal_complement(self, *z: Tensor) -> Tensor:
        """1/(1−φ) where 1−φ is small, also where it has left the normal numbers."""
        return torch.exp(-self._log_complement(*z))

    def value(self, *z: PreActivation) -> Tensor:
        """φ(z)."""
        wide, dtype = self._arguments(z)
        return stable.gated(self, False, wide).to(dtype)

    def complement(self, *z: PreActivation) -> Tensor:
        """1−φ(z), computed directly: accurate also where φ(z) rounds to 1."""
        wide, dtype = self._arguments(z)
        return stable.gated(self, True, wide).to(dtype)

    def log_value(self, *z: PreActivation) -> Tensor:
        """log φ(z)."""
        wide, dtype = self._arguments(z)
        return self._log_value(*wide).to(dtype)

    def log_complement(self, *z: PreActivation) -> Tensor:
        """log(1−φ(z)), also where 1−φ(z) is too small for the dtype."""
        wide, dtype = self._arguments(z)
        return self._log_complement(*wide).to(dtype)

    def derivative(self, *z: PreActivation) -> Any:
        """φ′(z); a tuple of the partial derivatives where there are two pre-activations."""
        wide, dtype = self._arguments(z)
        slopes = tuple(slope.to(dtype) for slope in self._slopes(*wide))
        return slopes[0] if self.preactivations == 1 else slopes

    def time_scale(self, *z: PreActivation) -> Tensor:
        """−1/log φ(z), the number of steps in which a memory falls to 1/e. In float32 at least."""
        wide, _ = self._arguments(z)
        fixed = tuple(x.detach() for x in wide)
        # For q < e^−40, −1/log f = 1/q to the last digit, and 1/q still exists where q has left the normal numbers.
        long = self._log_complement(*fixed) < -stable.SOFTPLUS_THRESHOLD
        none, endless = self._log_value(*fixed) == -torch.inf, long & self._reciprocal_complement(*fixed).isinf()
        # Each formula sees only the z it is meant for: elsewhere its gradient would be 0·inf.
        log_f = self._log_value(*(torch.where(long | none, 0.0, x) for x in wide))
        reciprocal = self._reciprocal_complement(*(torch.where(long & ~endless, x, 0.0) for x in wide))
        scale = torch.where(long, reciprocal, -1.0 / log_f)
        return torch.where(none, 0.0, torch.where(endless, torch.inf, scale))

    def inverse(self, f: PreActivation) -> Any:
        """The pre-activation z with φ(z) = f, for 0 < f < 1; a tuple where there are two pre-activations."""
        return self._solve("f", f, complement=False)

    def inverse_complement(self, y: PreActivation) -> Any:
        """The pre-activation z with 1−φ(z) = y, exact for y down to the smallest normal number."""
        return self._solve("y", y, complement=True)

    def from_logit(self, s: Tensor) -> tuple[Tensor, ...]:
        """The pre-activations at which logit φ = s, one tensor each: the sigmoid's value at s."""
        return self._inverse(stable.sigmoid_parts(-s.abs())[0], s >= 0)

    def _slopes(self, *z: Tensor) -> tuple[Tensor, ...]:
        return tuple(stable.flush(slope) for slope in self._derivatives(*z))

    def _arguments(self, z: tuple[PreActivation, ...]) -> tuple[tuple[Tensor, ...], torch.dtype]:
        if len(z) != self.preactivations:
            raise TypeError(f"{self!r} takes {self.preactivations} pre-activation(s), got {len(z)}")
        return stable.widen(*z)

    def _solve(self, name: str, probability: PreActivation, complement: bool) -> Any:
        (p,), dtype = stable.widen(probability)
        if not (stable.has_no_values(p) or torch.compiler.is_compiling()):
            outside = ~((p > 0) & (p < 1))
            if bool(outside.any()):
                raise ValueError(
                    f"{self!r} takes values in the open interval (0, 1): "
                    f"no pre-activation belongs to {name} = {p[outside].flatten()[0].item()}"
                )
        lower = p <= 0.5
        small = torch.where(lower, p, 1.0 - p)  # exact: above ½ the subtraction has no rounding
        roots = tuple(root.to(dtype) for root in self._inverse(small, lower if complement else ~lower))
        return roots[0] if self.preactivations == 1 else roots

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class SigmoidOf(Gate):
    """φ(z) = σ(α(z)) with α odd, increasing and α′(0) = 1. A custom gate defines α and α′:

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from gatedrnn.gates import SigmoidOf, check_gate
    >>> @dataclass(frozen=True)
    ... class Cubic(SigmoidOf):
    ...     saturation = "O(e^-z³)"
    ...
    ...     def alpha(self, z):
    ...         return z + z**3 / 3
    ...
    ...     def alpha_derivative(self, z):
    ...         return 1 + z**2
    >>> check_gate(Cubic())
    >>> Cubic().inverse(torch.tensor(0.731058578630005, dtype=torch.float64))
    tensor(0.8177, dtype=torch.float64)

    Its inverse is solved numerically unless :meth:`alpha_inverse` is defined too. Both methods are functions of z and
    of the gate's own fields alone: layers trace them once for each value of the fields, and do not notice a global
    variable that changes later.
    """

    saturation: ClassVar[str] = "not stated"

    @abstractmethod
    def alpha(self, z: Tensor) -> Tensor:
        """α(z); may overflow to ±inf for large z."""

    @abstractmethod
    def alpha_derivative(self, z: Tensor) -> Tensor:
        """α′(z)."""

    def alpha_inverse(self, s: Tensor) -> Tensor:
        """α⁻¹(s)."""
        return stable.solve_increasing(self.alpha, self.alpha_derivative, s)

    def _value(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return stable.sigmoid_parts(self.alpha(z))[0]

    def _complement(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return stable.sigmoid_parts(self.alpha(z))[1]

    def _log_value(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return self._log_sigmoid(z, 1.0)

    def _log_complement(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return self._log_sigmoid(z, -1.0)

    def _log_sigmoid(self, z: Tensor, sign: float) -> Tensor:
        """log σ(±α(z)): 0 or ±α(z) itself beyond saturation, where autograd of the logarithm would meet 0·inf."""
        alive, inner = stable.within_saturation(self.alpha, z)
        low = ~alive & (sign * z < 0)
        tail = sign * self.alpha(torch.where(low, z, 0.0))
        return torch.where(low, tail, torch.where(alive, stable.log_sigmoid(sign * self.alpha(inner)), 0.0))

    def _derivatives(self, z: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        alive, inner = stable.within_saturation(self.alpha, z)
        slope = stable.sigmoid_slope(self.alpha(inner), self.alpha_derivative(inner))
        return (torch.where(alive, slope, 0.0),)

    def from_logit(self, s: Tensor) -> tuple[Tensor, ...]:
        return (self.alpha_inverse(s),)

    def _inverse(self, small: Tensor, above: Tensor) -> tuple[Tensor, ...]:
        s = stable.logit(small)
        return (self.alpha_inverse(torch.where(above, -s, s)),)
