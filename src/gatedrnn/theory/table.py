"""The comparison of the gates as a Markdown table (tab:gates_comparison), with what was measured beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatedrnn.gates import Fast, Gate, Refine, Sigmoid, Softsign, name_of

_DERIVED_RATES = {
    Softsign: "Θ(τ^-1/3)",
    Sigmoid: "Θ(τ^-1)",
    Refine: "Θ(τ^-1)",
    Fast: "y (log y)² = 1/(Cτ), ≈ 1/(Cτ log² τ)",
}

_HEADER = (
    "gate",
    "order of saturation",
    "rate of 1−f, derived",
    "exponent measured",
    "C fitted",
    "law within",
    "RMSprop steps",
    "Adam steps",
    "additional parameters",
)


def comparison_table(gates: Sequence[Gate], numbers: dict[str, Any]) -> str:
    """The table in Markdown, one row per gate, with the line that says what the columns mean."""
    rows = [_HEADER, tuple("---" for _ in _HEADER), *(_row(gate, numbers) for gate in gates)]
    settings = numbers["settings"]
    low, high = settings["window"]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return (
        f"{text}\n\n"
        f"Toy problem, λ = 1, start z = 0. Exponent of 1−f in τ and constant C of the gate's law: gradient flow with "
        f"Δt = {settings['interval']['fig:demo']}, τ = {_power(low)} … {_power(high)}; the law holds there within the "
        f"number given. Steps until 1−f ≤ {settings['threshold']:g}: learning rate "
        f"{settings['learning_rate']['adam']:g}, Δt = {settings['interval']['fig:demo_other']}.\n"
    )


def _row(gate: Gate, numbers: dict[str, Any]) -> tuple[str, ...]:
    name = name_of(gate)
    fitted = numbers["fits"][name]
    steps = numbers["first_step_below"]
    return (
        name.replace("|", "\\|"),
        str(numbers["gates"][name]["saturation"]),
        _DERIVED_RATES.get(type(gate), "not derived"),
        _number(numbers["exponents"][name], ".3f"),
        "—" if fitted is None else _number(fitted["C"], ".2f"),
        "—" if fitted is None else _percent(fitted["largest_relative_deviation"]),
        _steps(steps["rmsprop"][name], numbers),
        _steps(steps["adam"][name], numbers),
        "yes" if gate.preactivations > 1 else "no",
    )


def _power(value: float) -> str:
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def _number(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form).replace("-", "−")


def _percent(value: float | None) -> str:
    if value is None:
        return "—"
    return "< 0.1 %" if value < 1e-3 else f"{100 * value:.1f} %"


def _steps(value: int | None, numbers: dict[str, Any]) -> str:
    return f"> {numbers['fig:demo_other']['step'][-1]}" if value is None else str(value)
