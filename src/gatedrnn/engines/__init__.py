"""Engines run the loop over time. A layer asks for one and never names one."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import torch

from gatedrnn.engines import repeats
from gatedrnn.engines.cpu.engine import CPUEngine
from gatedrnn.engines.graph import GraphEngine
from gatedrnn.engines.interface import Collect, Engine, Repeat, Scan, ScanResult
from gatedrnn.engines.reference import ReferenceEngine
from gatedrnn.engines.repeats import kind_of
from gatedrnn.gates import GATES, Gate, SigmoidOf, program_of
from gatedrnn.gates.tracing import check_methods

#: The engines by name, the preferred ones first.
ENGINES: dict[str, Engine] = {"cpu": CPUEngine(), "graph": GraphEngine(), "reference": ReferenceEngine()}


def check_name(name: str | Engine) -> None:
    """Raise ValueError for an engine that does not exist."""
    if not isinstance(name, Engine) and name != "auto" and name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; known engines: auto, {', '.join(ENGINES)}")


def resolve(name: str | Engine, scan: Scan) -> Engine:
    """The first engine that can run the scan, or the requested one; RuntimeError if that one cannot.

    An engine that is not available is skipped with a warning. A wrong setting of an
    engine, or a gate with wrong methods, is an error.
    """
    if type(scan.gate) not in _BUILT_IN:
        dtype = torch.float64 if scan.input.dtype == torch.float64 else torch.float32
        _check_gate(scan.gate, dtype)
        _check_gate_at_shape(scan, dtype)
    if isinstance(name, Engine):
        return name
    tracing = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    if tracing and _in_onnx_export():
        raise RuntimeError(
            "torch.onnx.export does not know the layers of gatedrnn: use gatedrnn.export.onnx(model, example, path)"
        )
    if name != "auto":
        engine = ENGINES[name]
        if reason := engine.refuses(scan):
            raise RuntimeError(f"the engine {name!r} cannot run this: {reason}")
        return engine
    for engine in ENGINES.values():
        reason = engine.refuses(scan)
        if reason is None:
            return engine
        if reason == engine.missing():
            if engine.wrong_setting():
                raise RuntimeError(reason)
            if not torch.compiler.is_compiling():
                _warn_once(engine.name, reason)
    raise RuntimeError("no engine can run this")  # the reference engine can


def recall(name: str | Engine, kind: tuple[Any, ...]) -> Repeat | None:
    """What ran an earlier call of this kind, if the engine has a short path for such calls."""
    return repeats.recall(_preferred(name), kind)


def remember(name: str | Engine, kind: tuple[Any, ...], scan: Scan) -> None:
    """The scan was run; the next call of its kind can take the short path."""
    engine = _preferred(name)
    if engine.refuses(scan) is None and (repeat := engine.repeat(scan)) is not None:
        repeats.remember(engine, kind, repeat)


def _preferred(name: str | Engine) -> Engine:
    if isinstance(name, Engine):
        return name
    return next(iter(ENGINES.values())) if name == "auto" else ENGINES[name]


_BUILT_IN = frozenset(GATES.values())


def _in_onnx_export() -> bool:
    return torch.onnx.is_in_onnx_export()


def _check_gate(gate: Gate, dtype: torch.dtype) -> None:
    program_of(gate, dtype)


def _check_gate_at_shape(scan: Scan, dtype: torch.dtype) -> None:
    """A gate without a program is tried on the shape of this scan: tensors of its own may fit no other."""
    if torch.compiler.is_compiling() or not scan.cell.takes_gate or not isinstance(scan.gate, SigmoidOf):
        return
    shape, device = tuple(scan.state[-1].shape), scan.input.device
    real = device.type != "meta" and all(type(size) is int for size in shape)  # symbolic while a program is exported
    if real and isinstance(program_of(scan.gate, dtype), str):
        check_methods(scan.gate, shape, dtype, device)


# torch.compile calls these and does not trace them; it takes torch's own is_in_onnx_export for False.
_in_onnx_export._dynamo_marked_constant = True  # type: ignore[attr-defined]
_check_gate._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache
def _warn_once(name: str, reason: str) -> None:
    warnings.warn(
        f"engine {name!r} is not available ({reason.rstrip('.')}); using the reference engine, which is slower. "
        "Pass engine='reference' to silence this warning.",
        stacklevel=7,  # the line that calls the layer
    )


def explain(name: str | Engine, scan: Scan) -> str:
    """Which engine will run and why; then, one line each, why not the others."""
    chosen = resolve(name, scan)
    why = "requested" if name != "auto" else "the first that can run this"
    lines = [f"{chosen.name}: {chosen.describe(scan)} ({why})"]
    for engine in ENGINES.values():
        if engine is not chosen:
            reason = engine.refuses(scan) or (f"engine={name!r} was requested" if name != "auto" else "not needed")
            lines.append(f"not {engine.name}: {reason}")
    return "\n".join(lines)


__all__ = [
    "ENGINES",
    "Collect",
    "Engine",
    "Scan",
    "ScanResult",
    "check_name",
    "explain",
    "kind_of",
    "recall",
    "remember",
    "resolve",
]
