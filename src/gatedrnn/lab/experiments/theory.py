"""What needs no training: ``gatedrnn theory`` makes it."""

from __future__ import annotations

from gatedrnn.lab.experiments.base import Experiment


def _theory(
    label: str, title: str, setting: str, expected: tuple[str, ...], differences: tuple[str, ...] = ()
) -> Experiment:
    return Experiment(label, title, (), setting, expected=expected, differences=differences, theory=True)


EXPERIMENTS = (
    _theory(
        "fig:saturation",
        "Gate functions φ and their derivatives",
        "softsign, sigmoid and fast; z ∈ [−6, 6].",
        ("fast saturates fastest, softsign slowest",),
    ),
    _theory(
        "fig:demo",
        "Toy problem: gradient flow, gradient descent and bounds",
        "Δt=10, learning rate 1; softsign, sigmoid, refine and fast.",
        ("fast is first, then refine, sigmoid, softsign", "a plateau to about 40 iterations"),
    ),
    _theory(
        "fig:gates_gradient",
        "Gradient g_φ(f) against the gate's value f",
        "All gates.",
        ("the higher the order of saturation, the larger the gradient near f = 1",),
    ),
    _theory(
        "fig:demo_other",
        "Toy problem with RMSprop and Adam",
        "Learning rate 0.01, Δt=30.",
        ("fast is first",),
    ),
    _theory(
        "tab:gates_comparison",
        "Order of saturation, rate of convergence, extra parameters",
        "All gates.",
        ("the rates follow from the orders of saturation",),
        (
            "W in the rate of fast is the branch W₋₁ of Lambert's function: with the principal branch, which the table "
            "implies, the rate would equal that of the sigmoid",
            "the order of refine, O(e^−2z), is that at r = 1",
        ),
    ),
)
