"""The runs that the experiments declare: how many, which, and that they can be made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, MODEL_NAMES, BudgetName, NotRunnableError
from gatedrnn.lab.models import build
from gatedrnn.lab.tasks import Adding, Copy

RUNNABLE = [label for label, experiment in EXPERIMENTS.items() if experiment.grid is not None]
PENDING = [label for label, experiment in EXPERIMENTS.items() if experiment.pending is not None]
THEORY = [label for label, experiment in EXPERIMENTS.items() if experiment.theory]
budgets = pytest.mark.parametrize("budget", BUDGETS)


def test_each_item_comes_from_one_place() -> None:
    assert len(RUNNABLE) == 6 and len(PENDING) == 6 and len(THEORY) == 5
    assert len({*RUNNABLE, *PENDING, *THEORY}) == len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("fig:adding_mse", (8 * 3, 3 * 5 + 4 * 3 + 1, 8)),
        ("fig:adding_timescale", (5 * 3, 5 * 3, 5)),
        ("fig:copy_accuracy", (8 * 3, 3 * 5 + 4 * 3 + 1, 8)),
    ],
)
def test_counts(label: str, counts: tuple[int, int, int]) -> None:
    assert tuple(len(EXPERIMENTS[label].runs(budget)) for budget in BUDGETS) == counts


@budgets
@pytest.mark.parametrize("label", RUNNABLE)
def test_every_run_can_be_made_and_is_another_one(label: str, budget: BudgetName) -> None:
    runs = EXPERIMENTS[label].runs(budget)
    for declared in runs:
        declared.run.check()
        assert declared.model_name in MODEL_NAMES
        assert declared.run.training.seed == declared.seed
        assert declared.folder.endswith(f"/{budget}/{declared.model_name}/seed{declared.seed}")
    assert len({declared.run.key() for declared in runs}) == len(runs)
    assert len({declared.folder for declared in runs}) == len(runs)


@budgets
@pytest.mark.parametrize(
    "labels", [("fig:adding_mse", "fig:adding_runtime"), ("fig:copy_accuracy", "fig:copy_acc_runtime", "fig:copy_loss")]
)
def test_labels_that_share_runs_have_the_same_keys_and_folders(labels: tuple[str, ...], budget: BudgetName) -> None:
    shared = [[(d.run.key(), d.folder) for d in EXPERIMENTS[label].runs(budget)] for label in labels]
    assert all(one == shared[0] for one in shared)


def test_folders_of_different_runs_differ() -> None:
    folders: dict[str, str] = {}
    for label in RUNNABLE:
        for budget in BUDGETS:
            for declared in EXPERIMENTS[label].runs(budget):
                assert folders.setdefault(declared.folder, declared.run.key()) == declared.run.key()


@pytest.mark.parametrize(
    ("label", "task", "updates", "target"),
    [("fig:adding_mse", Adding(5000), 10_000, 0.005), ("fig:copy_accuracy", Copy(500), 60_000, 0.999)],
)
def test_the_papers_setting(label: str, task: Adding | Copy, updates: int, target: float) -> None:
    for declared in EXPERIMENTS[label].runs("paper"):
        training, model = declared.run.training, declared.run.model
        assert declared.run.task == task
        assert (training.optimizer, training.lr, training.alpha, training.eps) == ("rmsprop", 1e-3, 0.99, 1e-8)
        assert (training.clip, training.batch_size, training.updates, training.target) == (1.0, 64, updates, target)
        assert (training.evaluate_every, training.evaluation_size) == (50, 1000)
        assert (model.hidden_size, model.num_layers, model.tied in (True, None)) == (128, 1, True)
    assert {d.seed for d in EXPERIMENTS[label].runs("paper")} == {0, 1, 2}


def test_the_desk_answers_what_must_be_shown() -> None:
    adding, copy = (EXPERIMENTS[label].runs("desk") for label in ("fig:adding_mse", "fig:copy_accuracy"))
    for runs, target in ((adding, 0.02), (copy, 0.99)):
        for model in ("softsign", "sigmoid", "fast"):
            assert [d.seed for d in runs if d.model_name == model] == [0, 1, 2, 3, 4]
        assert {d.run.training.target for d in runs} == {target}
        assert {d.run.training.lr for d in runs} == {1e-3}
    assert {d.run.task for d in adding} <= {Adding(length) for length in range(300, 501)}
    assert {d.run.task for d in copy} == {Copy(100)}


def test_time_scales_are_observed_at_a_larger_learning_rate() -> None:
    for budget in BUDGETS:
        assert {d.run.training.lr for d in EXPERIMENTS["fig:adding_timescale"].runs(budget)} == {1e-2}
    paper = {(d.run.training.updates, d.run.training.target) for d in EXPERIMENTS["fig:adding_timescale"].runs("paper")}
    assert paper == {(3_000, None)}


def test_models_and_seeds_can_be_chosen() -> None:
    runs = EXPERIMENTS["fig:adding_mse"].runs("desk", models=["fast", "NRU"], seeds=[0, 4])
    assert [(d.model_name, d.seed) for d in runs] == [("fast", 0), ("fast", 4), ("NRU", 0)]


def test_what_the_models_are() -> None:
    models = {d.model_name: d.run.model for d in EXPERIMENTS["fig:adding_mse"].runs("paper")}
    assert {name: (m.cell, m.forget_gate, m.forget_init) for name, m in models.items()} == {
        "softsign": ("lstm", "softsign", "constant"),
        "sigmoid": ("lstm", "sigmoid", "constant"),
        "refine": ("lstm", "refine", "constant"),
        "fast": ("lstm", "fast", "constant"),
        "iterated_fast": ("lstm", "iterated_fast", "constant"),
        "chrono": ("lstm", "sigmoid", "chrono"),
        "JANET": ("janet", "sigmoid", "chrono"),
        "NRU": ("nru", None, None),
    }
    nru: Any = models["NRU"].layer(2, t_max=3.0, device="meta")
    assert (nru.memory_size, nru.heads, nru.relu) == (64, 4, True)
    small = EXPERIMENTS["tab:sMNIST_small_results"].plans["psmnist"]["paper"].models
    uniform = {v.name: (v.model.forget_gate, v.model.forget_init) for v in small if v.name in ("UR", "UF")}
    assert uniform == {"UR": ("refine", "uniform"), "UF": ("fast", "uniform")}


# N = H(I+H) + H of the paper; NRU as counted from its authors' code.
ADDING_N, COPY_N = 128 * (2 + 128) + 128, 128 * (10 + 128) + 128


@pytest.mark.parametrize(
    ("label", "n", "nru"), [("fig:adding_mse", ADDING_N, 38_856), ("fig:copy_accuracy", COPY_N, 39_880)]
)
def test_parameter_counts_are_the_papers(label: str, n: int, nru: int) -> None:
    blocks = dict.fromkeys(("softsign", "sigmoid", "fast", "iterated_fast", "chrono"), 3 * n)
    expected = {**blocks, "refine": 4 * n, "JANET": 2 * n, "NRU": nru}
    for declared in EXPERIMENTS[label].runs("paper", seeds=[0]):
        task = declared.run.task
        network = build(declared.run.model, task.input_size, task.output_size, task.last, task.t_max)
        trained = sum(p.numel() for p in network.layer.parameters() if p.requires_grad)
        assert trained == expected[declared.model_name], declared.model_name


def test_parameter_counts_of_what_is_planned() -> None:
    large = {v.name: v.model for v in EXPERIMENTS["tab:sMNIST_results"].plans["smnist"]["paper"].models}
    nru = build(large["NRU"], 1, 10, 1, 784.0)
    assert sum(p.numel() for p in nru.layer.parameters()) == 405_224
    small = {v.name: v.model for v in EXPERIMENTS["tab:sMNIST_small_results"].plans["smnist"]["paper"].models}
    assert sum(p.numel() for p in build(small["NRU"], 1, 10, 1, 784.0).layer.parameters()) == 38_728


def test_learning_rates_of_their_own() -> None:
    def own(label: str, task: str) -> dict[str, float]:
        models = EXPERIMENTS[label].plans[task]["paper"].models
        return {variant.name: variant.lr for variant in models if variant.lr is not None}

    for task in ("smnist", "psmnist", "scifar"):
        assert own("tab:sMNIST_results", task) == {"softsign": 2e-4, "NRU": 2e-4}
    assert own("tab:sMNIST_small_results", "smnist") == {"NRU": 2e-4} == own("tab:sMNIST_small_results", "scifar")
    assert own("tab:sMNIST_small_results", "psmnist") == {}


@pytest.mark.parametrize(
    ("label", "task", "expected"),
    [
        ("tab:sMNIST_results", "scifar", ("adam", 5e-4, 1.0, 50, 150, (), 3)),
        ("tab:sMNIST_results_GRU", "smnist", ("adam", 5e-4, 1.0, 50, 150, (), 3)),
        ("fig:psMNIST_result", "psmnist", ("adam", 5e-4, 1.0, 50, 150, (), 3)),
        ("tab:sMNIST_small_results", "psmnist", ("rmsprop", 5e-4, 1.0, 100, 150, (100,), 4)),
        ("tab:sMNIST_small_results", "scifar", ("rmsprop", 5e-4, 1.0, 100, 100, (50,), 4)),
        ("tab:language_results", "ptb", ("sgd", 30.0, 0.25, 20, 1000, (), 1)),
        ("tab:results_sc", "speech", ("adamw", 1e-3, 1.0, 50, 200, (), 1)),
    ],
)
def test_the_papers_setting_of_what_waits_for_its_task(label: str, task: str, expected: tuple[object, ...]) -> None:
    plan = EXPERIMENTS[label].plans[task]["paper"]
    training = plan.training
    found = (training.optimizer, training.lr, training.clip, training.batch_size, plan.epochs, plan.decay_after)
    assert (*found, len(plan.seeds)) == expected
    assert plan.decay == (0.2 if plan.decay_after else None)


def test_plans_are_complete_and_possible() -> None:
    for label in PENDING:
        experiment = EXPERIMENTS[label]
        assert set(experiment.plans) == set(experiment.tasks)
        for task, plans in experiment.plans.items():
            assert tuple(plans) == BUDGETS
            for plan in plans.values():
                assert plan.task == task
                plan.training.check()
                for variant in plan.models:
                    variant.model.check()
    speech = EXPERIMENTS["tab:results_sc"].plans["speech"]["paper"]
    assert speech.search == {"lr": (1e-3, 5e-4, 1e-4, 5e-5), "clip": (1.0, 0.1)}


@pytest.mark.parametrize("label", PENDING)
def test_pending_items_say_why(label: str) -> None:
    with pytest.raises(NotRunnableError, match=rf"{label} cannot be run yet: the tasks? .* not built yet"):
        EXPERIMENTS[label].runs("desk")
    assert dict(EXPERIMENTS[label].budgets) == {}


@pytest.mark.parametrize("label", THEORY)
def test_theory_needs_no_training(label: str) -> None:
    with pytest.raises(NotRunnableError, match=f"{label} needs no training: gatedrnn theory --out DIR"):
        EXPERIMENTS[label].runs("paper")


def test_budgets_say_what_they_are() -> None:
    for label in RUNNABLE:
        notes = [budget.note for budget in EXPERIMENTS[label].budgets.values()]
        assert len(set(notes)) == 3
        desk = EXPERIMENTS[label].budgets["desk"]
        assert f"T={desk.task.length} in place of" in desk.note  # type: ignore[attr-defined]
        assert f"{desk.training.updates:,} updates" in desk.note


def test_declarations_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EXPERIMENTS["fig:adding_mse"].threshold = 1.0  # type: ignore[misc]
