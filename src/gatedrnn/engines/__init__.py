"""Engines run the loop over time. A layer asks for one and never names one."""

from __future__ import annotations

from gatedrnn.engines.cpu.engine import CPUEngine
from gatedrnn.engines.interface import Collect, Engine, Scan, ScanResult
from gatedrnn.engines.reference import ReferenceEngine

#: The engines by name, the preferred ones first.
ENGINES: dict[str, Engine] = {"cpu": CPUEngine(), "reference": ReferenceEngine()}


def check_name(name: str) -> None:
    """Raise ValueError for an engine that does not exist."""
    if name != "auto" and name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; known engines: auto, {', '.join(ENGINES)}")


def resolve(name: str, scan: Scan) -> Engine:
    """The first engine that serves the scan, or the one asked for; RuntimeError if that one cannot."""
    if name != "auto":
        engine = ENGINES[name]
        if reason := engine.refuses(scan):
            raise RuntimeError(f"the engine {name!r} cannot run this: {reason}")
        return engine
    return next(engine for engine in ENGINES.values() if engine.refuses(scan) is None)


def explain(name: str, scan: Scan) -> str:
    """Which engine will run and why; then, a line each, why the others will not."""
    chosen = resolve(name, scan)
    why = "asked for" if name != "auto" else "the first that can serve"
    lines = [f"{chosen.name}: {chosen.describe(scan)} ({why})"]
    for engine in ENGINES.values():
        if engine is not chosen:
            reason = engine.refuses(scan) or (f"engine={name!r} was asked for" if name != "auto" else "not needed")
            lines.append(f"not {engine.name}: {reason}")
    return "\n".join(lines)


__all__ = ["ENGINES", "Collect", "Engine", "Scan", "ScanResult", "check_name", "explain", "resolve"]
