"""The paper's four figures of the theory, drawn from the numbers of theory.json and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gatedrnn.theory.canvas import new_figure, render
from gatedrnn.theory.palette import Look, looks

Numbers = dict[str, Any]
Images = dict[str, bytes]

_FLOOR = 1e-14  # of the logarithmic axes of 1−f


def saturation(numbers: Numbers, names: Sequence[str]) -> Images:
    """fig:saturation: φ and φ′."""
    data = numbers["fig:saturation"]

    def draw() -> Figure:
        figure, (values, slopes) = new_figure(1, 2, (9.0, 3.6))
        for name, look in looks(names).items():
            curve = data["curves"][name]
            values.plot(data["z"], curve["value"], color=look.colour)
            slopes.plot(data["z"], curve["derivative"], color=look.colour)
        values.set(xlabel="z", ylabel="φ(z)", title="Gate function", xlim=(-6, 6))
        slopes.set(xlabel="z", ylabel="φ′(z)", title="Derivative", xlim=(-6, 6), ylim=(0, None))
        _legend(figure, [_line(look, _label(numbers, name, True)) for name, look in looks(names).items()])
        return figure

    return render(draw)


def demo(numbers: Numbers, names: Sequence[str]) -> Images:
    """fig:demo: the toy problem by gradient flow and gradient descent, with the laws fitted."""
    data = numbers["fig:demo"]

    def draw() -> Figure:
        figure, (near, far) = new_figure(1, 2, (10.0, 4.6))
        for i, (name, look) in enumerate(looks(names).items()):
            curve, long = data["curves"][name], data["long"]["curves"][name]
            near.plot(data["tau"], _value(curve["complement"]), color=look.colour)
            near.plot(data["tau"], _value(_until(curve["law_complement"], 0.5)), **_LAW)
            # Markers of different gates are set apart so that none hides another.
            every = slice(3 * i, None, 15)
            descent = _value(curve["gradient_descent_complement"])
            near.plot(data["step"][every], descent[every], color=look.colour, marker=look.marker, **_MARKS)
            far.loglog(data["long"]["tau"], long["complement"], color=look.colour)
            far.loglog(data["long"]["tau"], _until(long["law_complement"], 0.5), **_LAW)
        near.set(xlabel="τ, or iteration", ylabel="f", title="The first iterations", xlim=(0, data["tau"][-1]))
        near.set_ylim(0.48, 1.02)
        far.set(xlabel="τ", ylabel="1 − f", title="The whole flow", xlim=(1, data["long"]["tau"][-1]), ylim=(None, 1))
        far.set_xticks([10.0**p for p in range(0, 13, 3)])
        grey = Look("#555555", "o")
        styles = [
            _line(grey, "gradient flow"),
            Line2D([], [], color=grey.colour, marker=grey.marker, label="gradient descent, lr 1", **_MARKS),
            Line2D([], [], label="law, C and shift fitted", **_LAW),
        ]
        _legend(figure, [_marked(look, _label(numbers, name)) for name, look in looks(names).items()], styles)
        return figure

    return render(draw)


def gates_gradient(numbers: Numbers, names: Sequence[str]) -> Images:
    """fig:gates_gradient: g_φ(f), and its growth against the sigmoid's towards f = 1."""
    data = numbers["fig:gates_gradient"]

    def draw() -> Figure:
        figure, (linear, ratio) = new_figure(1, 2, (10.0, 4.2))
        for name, look in looks(names).items():
            curve = data["curves"][name]
            linear.plot(data["f"], curve["gradient"], color=look.colour)
            # A ratio of 1e300 would hide all the others: large ratios are cut off by the axis.
            ratio.semilogx(data["complement"], curve["log10_ratio_to_sigmoid"], color=look.colour)
        linear.set(xlabel="f", ylabel="$g_φ(f)$", title="Gradient at the output f", xlim=(0, 1), ylim=(0, None))
        ratio.set(xlabel="1 − f", ylabel="log₁₀ ($g_φ$ / $g_σ$)", title="Against the sigmoid, as f → 1", ylim=(-4, 4))
        ratio.set_xlim(data["complement"][0], data["complement"][-1])
        ratio.set_xticks([1e-1, 1e-100, 1e-200, 1e-300])
        ratio.minorticks_off()
        _legend(figure, [_line(look, _label(numbers, name, True)) for name, look in looks(names).items()])
        return figure

    return render(draw)


def demo_other(numbers: Numbers, names: Sequence[str]) -> Images:
    """fig:demo_other: the toy problem by RMSprop and Adam."""
    data = numbers["fig:demo_other"]
    threshold = numbers["settings"]["threshold"]

    def draw() -> Figure:
        figure, axes = new_figure(2, 2, (10.0, 6.6))
        for column, (key, title) in enumerate((("rmsprop", "RMSprop"), ("adam", "Adam"))):
            values, complements = axes[column], axes[2 + column]
            for name, look in looks(names).items():
                curve = data[key][name]
                values.plot(data["step"], _value(curve), color=look.colour)
                complements.semilogy(
                    data["step"], [None if y is None else max(y, _FLOOR) for y in curve], color=look.colour
                )
            complements.axhline(threshold, color="#999999", linewidth=0.8, linestyle=":")
            values.set(ylabel="f", title=title, ylim=(0.48, 1.02))
            complements.set(xlabel="iteration", ylabel="1 − f", ylim=(None, 1))
            for ax in (values, complements):
                ax.set_xlim(0, data["step"][-1])
        _legend(figure, [_line(look, _label(numbers, name)) for name, look in looks(names).items()])
        return figure

    return render(draw)


#: The figures by the paper's labels.
FIGURES: dict[str, Callable[[Numbers, Sequence[str]], Images]] = {
    "fig:saturation": saturation,
    "fig:demo": demo,
    "fig:gates_gradient": gates_gradient,
    "fig:demo_other": demo_other,
}

# Thin and dark, so that it shows on top of the flow where the two agree.
_LAW: dict[str, Any] = {"color": "#111111", "linestyle": (0, (4.0, 2.5)), "linewidth": 1.1, "zorder": 3}
_MARKS: dict[str, Any] = {
    "linestyle": "none",
    "markersize": 5.5,
    "markerfacecolor": "white",
    "markeredgewidth": 1.2,
    "zorder": 4,
}


def _value(complement: Iterable[float | None]) -> list[float]:
    return [float("nan") if y is None else 1.0 - y for y in complement]


def _until(complement: Iterable[float | None], ceiling: float) -> list[float | None]:
    """The law where it means something: below the place where the flow starts."""
    return [y if y is not None and y <= ceiling else float("nan") for y in complement]


def _label(numbers: Numbers, name: str, one_variable: bool = False) -> str:
    label: str = numbers["gates"][name]["label_of_one_variable"] if one_variable else name
    return label if len(label) <= 40 else label[:39] + "…"


def _line(look: Look, label: str) -> Line2D:
    return Line2D([], [], color=look.colour, label=label)


def _marked(look: Look, label: str) -> Line2D:
    return Line2D([], [], color=look.colour, marker=look.marker, markerfacecolor="white", label=label)


def _legend(figure: Figure, gates: list[Line2D], styles: Sequence[Line2D] = ()) -> None:
    """Outside the axes, where it covers no curve: the gates below, what the kinds of line mean above."""
    rows = -(-len(gates) // 6)
    figure.legend(handles=gates, loc="outside lower center", ncols=-(-len(gates) // rows))
    if styles:
        figure.legend(handles=styles, loc="outside upper center", ncols=len(styles))
