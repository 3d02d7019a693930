"""The paper's numbers, typed a second time from the list of its tables and figures."""

from __future__ import annotations

import pytest

from gatedrnn.lab.experiments import EXPERIMENTS

LABELS = [
    "fig:saturation",
    "fig:demo",
    "fig:gates_gradient",
    "fig:demo_other",
    "tab:gates_comparison",
    "fig:adding_mse",
    "fig:adding_runtime",
    "fig:adding_timescale",
    "fig:copy_accuracy",
    "fig:copy_acc_runtime",
    "fig:copy_loss",
    "tab:sMNIST_results",
    "fig:psMNIST_result",
    "tab:sMNIST_results_GRU",
    "tab:sMNIST_small_results",
    "tab:language_results",
    "tab:results_sc",
]

# By label: the columns, then a line for each model. An asterisk means that training diverged.
TABLES = {
    "tab:sMNIST_results": (
        "smnist/psmnist/scifar/time",
        """softsign 97.50/91.71/59.21/17.7
        sigmoid 98.88/95.71/69.14/14.3
        refine 98.94/95.93/69.55/22.7
        fast 99.05/96.18/70.06/14.7
        chrono 98.83/94.37/60.36/14.3
        JANET 98.59/93.85/60.99/10.6
        NRU 98.73/94.76/62.32/35.0""",
    ),
    "tab:sMNIST_results_GRU": (
        "smnist/psmnist/scifar",
        """softsign 21.63/91.71/59.21
        sigmoid 98.88/95.71/69.14
        refine 98.94/95.93/69.55
        UR 98.80/96.11/70.29
        fast 99.05/96.18/70.06
        UF 99.01/96.11/70.04
        iterated_fast 99.02/96.22/69.66
        softsign-GRU 69.71/93.80/61.90
        sigmoid-GRU 98.99/95.23/68.92
        refine-GRU 98.95/95.61/69.54
        UR-GRU 98.86/95.49/70.29
        fast-GRU 98.95/95.54/69.65
        UF-GRU 98.79/95.46/69.59""",
    ),
    "tab:sMNIST_small_results": (
        "smnist/psmnist/scifar/time",
        """softsign 97.20/87.89/47.91/345
        sigmoid 98.84/92.80/62.73/284
        refine 98.88/93.28/62.10/486
        UR 98.69/92.56/62.54/484
        fast 98.81/93.83/62.98/314
        UF 98.81/93.00/63.00/315
        chrono 97.96/90.32/54.71/287
        JANET 98.07/87.84/55.82/214
        NRU 98.19/94.89/53.34/802""",
    ),
    "tab:language_results": (
        "over 10,000/1,000 to 10,000/100 to 1,000/under 100/all/time",
        """sigmoid 7.25/27.72/170.25/2026.87/60.22/130
        refine 7.61/28.01/166.46/1936.02/60.50/185
        fast 7.43/27.70/166.68/1975.51/60.09/138""",
    ),
    "tab:results_sc": (
        "speech",
        """sigmoid 21.5*
        refine 83.9*
        UR 77.6*
        fast 92.3""",
    ),
}
# Minutes an epoch of the table with GRUs, from the paper itself.
GRU_TIMES = "17.7 14.3 22.7 21.7 14.7 14.7 15.8 17.5 14.9 22.7 22.8 15.5 15.9"


def test_every_label_is_declared() -> None:
    assert list(EXPERIMENTS) == LABELS


@pytest.mark.parametrize("label", TABLES)
def test_the_papers_numbers(label: str) -> None:
    columns, text = TABLES[label]
    declared = EXPERIMENTS[label].values
    lines = [line.split() for line in text.splitlines()]
    assert list(declared) == [model for model, _ in lines]
    untold = ["NRU"] if label == "tab:language_results" else []  # it diverges, the text says
    assert [*declared, *untold] == list(EXPERIMENTS[label].models)
    for model, numbers in lines:
        for column, number in zip(columns.split("/"), numbers.split("/"), strict=True):
            value = declared[model][column]
            assert value.value == float(number.rstrip("*")), (model, column)
            assert value.diverged == number.endswith("*"), (model, column)
            assert column in EXPERIMENTS[label].columns


def test_times_of_the_table_with_grus() -> None:
    declared = EXPERIMENTS["tab:sMNIST_results_GRU"].values
    assert [row["time"].value for row in declared.values()] == [float(time) for time in GRU_TIMES.split()]


def test_some_standard_deviations() -> None:
    assert EXPERIMENTS["tab:sMNIST_results"].values["chrono"]["psmnist"].std == 0.69
    assert EXPERIMENTS["tab:sMNIST_results_GRU"].values["softsign-GRU"]["smnist"].std == 41.27
    assert EXPERIMENTS["tab:sMNIST_small_results"].values["NRU"]["scifar"].std == 1.06
    assert EXPERIMENTS["tab:language_results"].values["fast"]["all"].std is None


def test_the_claims_on_time_follow_from_the_numbers() -> None:
    time = {model: row["time"].value for model, row in EXPERIMENTS["tab:sMNIST_results"].values.items()}
    assert round(100 * time["fast"] / time["sigmoid"]) == 103
    assert round(100 * time["refine"] / time["sigmoid"]) == 159


def test_figures_say_what_to_expect() -> None:
    assert "softsign fails" in EXPERIMENTS["fig:adding_mse"].expected
    assert "NRU needs the fewest updates" in EXPERIMENTS["fig:adding_mse"].expected
    assert "NRU diverges" in EXPERIMENTS["fig:copy_accuracy"].expected
    for experiment in EXPERIMENTS.values():
        assert experiment.expected, experiment.label


def test_what_differs_from_the_paper_is_said() -> None:
    for label, experiment in EXPERIMENTS.items():
        assert experiment.differences or experiment.theory, label
    assert any("W₋₁" in text for text in EXPERIMENTS["tab:gates_comparison"].differences)
    for label, count in (("adding_mse", "10,000"), ("adding_timescale", "3,000"), ("copy_accuracy", "60,000")):
        assert sum(count in text for text in EXPERIMENTS[f"fig:{label}"].differences) == 1, label
    assert any("marker" in text for text in EXPERIMENTS["fig:copy_loss"].differences)
    assert any("97.50" in text for text in EXPERIMENTS["tab:sMNIST_results_GRU"].differences)
