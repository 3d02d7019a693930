"""The options of training."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from gatedrnn.lab.fields import added, beside
from gatedrnn.lab.models.checks import check_known, check_types

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
SCHEDULES = ("constant", "steps", "linear", "cosine", "plateau")

# The options that only some optimisers, and only some schedules, have, with their defaults there.
_OPTIMIZER_OPTIONS: dict[str, dict[str, float]] = {
    "rmsprop": {"alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "weight_decay": 0.0},
    "adam": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0},
    "adamw": {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
    "sgd": {"momentum": 0.0, "weight_decay": 0.0},
}
_UPDATES, _EVERY_UPDATES, _EVERY_EPOCHS = 20_000, 50, 1
_SCHEDULE_OPTIONS: dict[str, dict[str, float | tuple[int, ...] | int]] = {
    "constant": {},
    "steps": {"decay": 0.2, "decay_at": ()},
    "linear": {},
    "cosine": {},
    "plateau": {"decay": 0.2, "patience": 20},
}

# The range of float32, with a margin for products in the optimiser: lr/(1−β), lr·weight decay.
_SMALLEST = 1e-30
_LARGEST = {"lr": 1e20, "eps": 1e10, "clip": 1e10, "weight_decay": 1e10}
_MOST = 10**9  # of everything that is counted, so that the remaining time can be represented
_MOST_THREADS = 1024  # beyond that, the system may refuse them, which ends the process


@dataclass(frozen=True)
class Training:
    """How a model is trained. The defaults are the paper's for the adding and the copy task, except the number of
    updates, which the paper does not state.

    Some options exist for some optimisers or schedules only: their default applies to these; elsewhere they are None,
    and setting them is an error.
    """

    optimizer: str = "rmsprop"
    """rmsprop, adam, adamw or sgd."""
    lr: float = 1e-3
    """Learning rate."""
    alpha: float | None = None
    """rmsprop: smoothing constant of the squared gradient. (default: 0.99)"""
    beta1: float | None = None
    """adam, adamw: decay rate of the mean of the gradient. (default: 0.9)"""
    beta2: float | None = None
    """adam, adamw: decay rate of the mean squared gradient. (default: 0.999)"""
    eps: float | None = None
    """rmsprop, adam, adamw: added to the denominator. (default: 1e-8)"""
    momentum: float | None = None
    """rmsprop, sgd: momentum. (default: 0)"""
    weight_decay: float | None = None
    """Weight decay. (default: 0; adamw: 0.01)"""
    clip: float | None = 1.0
    """Maximum norm of the gradient; None: no clipping."""
    batch_size: int = 64
    """Sequences in a batch."""
    updates: int | None = None
    """Length of the run in updates. (default: 20000)"""
    epochs: int | None = added(None, neutral=None)
    """Length of the run in epochs, for tasks with a training set; the interval of evaluations and the decay of
    the learning rate are then in epochs too.
    (default: the length is in updates)"""
    schedule: str = "constant"
    """constant; steps (multiplied by decay after each of decay_at); linear or cosine (to 0 at the end); plateau
    (multiplied by decay when the metric has not improved for patience evaluations)."""
    decay: float | None = None
    """steps, plateau: the factor on the learning rate. (default: 0.2)"""
    decay_at: tuple[int, ...] | None = None
    """steps: updates, or epochs if the length is in epochs, after which the learning rate is multiplied by decay;
    required with steps."""
    patience: int | None = None
    """plateau: evaluations to wait. (default: 20)"""
    evaluate_every: int | None = None
    """Updates from one evaluation to the next, or epochs if the length is in epochs. (default: 50; in epochs: 1)"""
    evaluation_size: int | None = None
    """adding, copy, tones: sequences in the evaluation set, which is the same for every run. (default: 1000)"""
    target: float | None = None
    """Stop at the first evaluation whose validation metric is at least as good as this. (default: no target)"""
    stop_patience: int | None = added(None, neutral=None)
    """Stop when the validation metric has not improved for this many evaluations. (default: never)"""
    average_patience: int | None = added(None, neutral=None)
    """sgd: average the weights (ASGD) from the first evaluation on whose validation metric is worse than the best,
    not counting the last N evaluations before it, N being this number; evaluate the averages. (default: never)"""
    budget_seconds: float | None = beside(None)
    """Stop when training and evaluation have taken this many seconds. (default: no limit)"""
    seed: int = 0
    """Seed of the weights and of the batches."""
    threads: int | None = beside(None)
    """Threads of torch and of the engine; kept when the run is resumed. (default: torch's number)"""
    processes: int | None = beside(None)
    """Processes that share each batch, as started by torchrun. A run resumes with the same number, unless a different
    one is given here, which is then noted. (default: the number started)"""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1, mps, …; a run resumes bit-identically on the cpu only."""
    autocast: str | None = None
    """bfloat16: torch's automatic mixed precision. float16 would need the loss to be scaled. (default: off)"""
    monitor: bool | None = beside(None)
    """Record at each evaluation the gradient norms along the sequence and the share of saturated forget gates, on some
    sequences outside training. (default: with speech and tones)"""
    checkpoint_seconds: float = beside(30.0)
    """Least number of seconds between checkpoints; a killed run resumes from the last one."""
    tensorboard: bool = beside(False)
    """Write TensorBoard events too; needs the package tensorboard."""

    def __post_init__(self) -> None:
        defaults = {**_OPTIMIZER_OPTIONS.get(self.optimizer, {}), **_SCHEDULE_OPTIONS.get(self.schedule, {})}
        for option, default in defaults.items():
            if getattr(self, option) is None:
                object.__setattr__(self, option, default)
        if self.updates is None and self.epochs is None:
            object.__setattr__(self, "updates", _UPDATES)
        if self.evaluate_every is None:
            object.__setattr__(self, "evaluate_every", _EVERY_UPDATES if self.epochs is None else _EVERY_EPOCHS)

    def spends(self, seconds: float) -> bool:
        """Whether a run that has taken so many seconds has spent its time budget."""
        return self.budget_seconds is not None and seconds >= self.budget_seconds

    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""
        check_types(self)
        check_known("optimizer", self.optimizer, OPTIMIZERS)
        check_known("schedule", self.schedule, SCHEDULES)
        self._check_owned("optimizer", _OPTIMIZER_OPTIONS)
        self._check_owned("schedule", _SCHEDULE_OPTIONS)
        for option, largest in _LARGEST.items():
            value, zero = getattr(self, option), option == "weight_decay"
            if value is not None and not (_SMALLEST <= value <= largest or (zero and value == 0)):
                wanted = f"{'0 or ' if zero else ''}between {_SMALLEST:g} and {largest:g}"
                raise ValueError(f"{option} must be {wanted}, got {value}")
        if self.budget_seconds is not None and not (self.budget_seconds > 0 and math.isfinite(self.budget_seconds)):
            raise ValueError(f"budget_seconds must be a positive number, got {self.budget_seconds}")
        if not (self.checkpoint_seconds >= 0 and math.isfinite(self.checkpoint_seconds)):
            raise ValueError(f"checkpoint_seconds must be 0 or a positive number, got {self.checkpoint_seconds}")
        for option in ("alpha", "beta1", "beta2", "momentum", "decay"):
            value = getattr(self, option)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{option} must be at least 0 and below 1, got {value}")
        if self.updates is not None and self.epochs is not None:
            raise ValueError(f"updates cannot be combined with epochs, got updates = {self.updates}")
        for option in (
            *("batch_size", "updates", "epochs", "evaluate_every", "evaluation_size", "threads", "patience"),
            "processes",
            *("stop_patience", "average_patience"),
        ):
            value, most = getattr(self, option), _MOST_THREADS if option in ("threads", "processes") else _MOST
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"{option} must be between 1 and {most}, got {value}")
        if self.decay_at is not None and not all(1 <= at <= _MOST for at in self.decay_at or (0,)):
            raise ValueError(
                f"decay_at must be a list of updates or epochs, each at least 1, got {list(self.decay_at)}"
            )
        if self.average_patience is not None and self.optimizer != "sgd":
            raise ValueError(f"average_patience is for the optimizer sgd, not for {self.optimizer}")
        if self.average_patience is not None and self.momentum:
            raise ValueError(f"momentum must be 0 where weights are averaged (average_patience), got {self.momentum}")
        if self.target is not None and not math.isfinite(self.target):
            raise ValueError(f"target must be a finite number, got {self.target}")
        if not 0 <= self.seed < 2**31 - 1:  # the seeds above it are those of the batches, see state.py
            raise ValueError(f"seed must be at least 0 and below 2**31 - 1, got {self.seed}")
        _check_device(self.device)
        if self.autocast is not None:
            check_known("autocast", self.autocast, ("bfloat16",))
        if self.tensorboard and importlib.util.find_spec("tensorboard") is None:
            raise ValueError("tensorboard needs the package tensorboard: pip install tensorboard")

    def _check_owned(self, kind: str, options: Mapping[str, Mapping[str, object]]) -> None:
        own = options[getattr(self, kind)]
        for option in dict.fromkeys(name for names in options.values() for name in names):
            if option not in own and getattr(self, option) is not None:
                having = [name for name, names in options.items() if option in names]
                raise ValueError(
                    f"{option} is for the {kind} {', '.join(having)}, not for {getattr(self, kind)}, "
                    f"got {getattr(self, option)}"
                )


def _check_device(name: str) -> None:
    if not is_usable(name):
        usable = [device for device in ("cpu", "cuda", "mps", "xpu") if is_usable(device)]
        raise ValueError(f"device must be one that torch can use here ({', '.join(usable)}), got {name!r}")


def is_usable(device: str) -> bool:
    """Whether torch can compute on the device here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about deprecated devices
            return torch.empty(1, device=device).device.type != "meta"  # which computes nothing
    except (RuntimeError, AssertionError, ImportError):
        return False
