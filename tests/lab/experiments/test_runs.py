"""The runs that the experiments declare: how many, which, and that they can be made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, MODEL_NAMES, OWN, BudgetName, NotRunnableError
from gatedrnn.lab.models import LanguageModel, Model, Sizes
from gatedrnn.lab.tasks import Adding, Copy, Speech, Tones

RUNNABLE = [label for label, experiment in EXPERIMENTS.items() if experiment.grids]
ALL = {**EXPERIMENTS, **OWN}
THEORY = [label for label, experiment in EXPERIMENTS.items() if experiment.theory]
budgets = pytest.mark.parametrize("budget", BUDGETS)


def test_each_item_comes_from_one_place() -> None:
    assert len(RUNNABLE) == 12 and len(THEORY) == 5
    assert len({*RUNNABLE, *THEORY}) == len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("fig:adding_mse", (8 * 3, 3 * 5 + 4 * 3 + 1, 8)),
        ("fig:adding_timescale", (5 * 3, 5 * 3, 5)),
        ("fig:copy_accuracy", (8 * 3, 3 * 5 + 4 * 3 + 1, 8)),
        ("tab:sMNIST_results", (3 * 7 * 3, 3 * 7, 3 * 7)),
        ("fig:psMNIST_result", (7 * 3, 7, 7)),
        ("tab:sMNIST_results_GRU", (3 * 13 * 3, 3 * 13, 3 * 13)),
        ("tab:sMNIST_small_results", (3 * 9 * 4, 3 * 9, 3 * 9)),
        ("tab:language_results", (4, 4, 4)),
        ("tab:results_sc", (4 * 8, 4, 4 * 2)),
        ("own:tones", (4 * 4 * 3, 4 * 4, 4 * 4)),
        ("own:wikitext2", (4, 4, 4)),
        ("own:nru_copy", (2 * 3, 2, 2)),
        ("own:time_scales", (4 * 3, 4, 4)),
    ],
)
def test_counts(label: str, counts: tuple[int, int, int]) -> None:
    assert tuple(len(ALL[label].runs(budget)) for budget in BUDGETS) == counts


@budgets
@pytest.mark.parametrize("label", [*RUNNABLE, *OWN])
def test_every_run_can_be_made_and_is_another_one(label: str, budget: BudgetName) -> None:
    runs = ALL[label].runs(budget)
    for declared in runs:
        declared.run.check()
        assert declared.model_name.removesuffix("-GRU").removesuffix("-two-biases") in (*MODEL_NAMES, "NRU-clip-0.1")
        assert declared.run.training.seed == declared.seed
        below = f"{declared.setting}/" if declared.setting else ""
        assert declared.folder.endswith(f"/{budget}/{declared.model_name}/{below}seed{declared.seed}")
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
    for label in (*RUNNABLE, *OWN):
        for budget in BUDGETS:
            for declared in ALL[label].runs(budget):
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


@budgets
def test_models_with_two_biases_differ_in_the_second_one_alone(budget: BudgetName) -> None:
    models = {d.model_name: d.run for d in OWN["own:time_scales"].runs(budget) if d.seed == 0}
    assert list(models) == ["sigmoid", "fast", "sigmoid-two-biases", "fast-two-biases"]
    shorter = {d.model_name: d.run for d in EXPERIMENTS["fig:adding_timescale"].runs(budget) if d.seed == 0}
    for name in ("sigmoid", "fast"):
        one, two = models[name], models[f"{name}-two-biases"]
        assert dataclasses.replace(one, model=dataclasses.replace(one.model, trainable_bias_hh=True)) == two
        training = dataclasses.replace(one.training, updates=shorter[name].training.updates)
        assert dataclasses.replace(one, training=training) == shorter[name]


@budgets
def test_the_clipped_nru_differs_from_that_of_copy_in_its_clipping_alone(budget: BudgetName) -> None:
    runs = OWN["own:nru_copy"].runs(budget)
    plain = [d.run for d in runs if d.model_name == "NRU"]
    clipped = [d.run for d in runs if d.model_name == "NRU-clip-0.1"]
    assert [(d.folder, d.run.key()) for d in EXPERIMENTS["fig:copy_accuracy"].runs(budget, models=["NRU"])] == [
        (d.folder, d.run.key()) for d in runs if d.model_name == "NRU"
    ]
    assert [run.training.clip for run in plain] == [1.0] * len(plain)
    assert [dataclasses.replace(run, training=dataclasses.replace(run.training, clip=0.1)) for run in plain] == clipped


def test_models_and_seeds_can_be_chosen() -> None:
    runs = EXPERIMENTS["fig:adding_mse"].runs("desk", models=["fast", "NRU"], seeds=[0, 4])
    assert [(d.model_name, d.seed) for d in runs] == [("fast", 0), ("fast", 4), ("NRU", 0)]


def test_what_the_models_are() -> None:
    models = _models("fig:adding_mse", "adding")
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
    small = _models("tab:sMNIST_small_results", "psmnist")
    uniform = {name: (small[name].forget_gate, small[name].forget_init) for name in ("UR", "UF")}
    assert uniform == {"UR": ("refine", "uniform"), "UF": ("fast", "uniform")}
    grus = {name: model for name, model in _models("tab:sMNIST_results_GRU", "scifar").items() if model.cell == "gru"}
    assert list(grus) == [f"{name}-GRU" for name in ("softsign", "sigmoid", "refine", "UR", "fast", "UF")]
    assert (grus["UF-GRU"].forget_gate, grus["UF-GRU"].forget_init) == ("fast", "uniform")


def _models(label: str, task: str) -> dict[str, Model]:
    """Those of the paper's setting by name."""
    models = {d.model_name: d.run.model for d in EXPERIMENTS[label].runs("paper", seeds=[0], tasks=[task])}
    assert all(isinstance(model, Model) for model in models.values())
    return models  # type: ignore[return-value]


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
        network = declared.run.model.build(Sizes(task.input_size, task.output_size, task.last, task.t_max))
        trained = sum(p.numel() for p in network.layers[""].parameters() if p.requires_grad)
        assert trained == expected[declared.model_name], declared.model_name


def test_parameter_counts_of_the_classifiers() -> None:
    sizes = Sizes(1, 10, 1, 784.0)
    large, small = _models("tab:sMNIST_results", "smnist"), _models("tab:sMNIST_small_results", "smnist")
    assert sum(p.numel() for p in large["NRU"].build(sizes).layer.parameters()) == 405_224
    assert sum(p.numel() for p in small["NRU"].build(sizes).layer.parameters()) == 38_728
    # One output layer, and two: Linear(H, 256), ReLU, Linear(256, 10).
    heads = [sum(p.numel() for p in models["fast"].build(sizes).head.parameters()) for models in (small, large)]
    assert heads == [128 * 10 + 10, 512 * 256 + 256 + 256 * 10 + 10]


def test_learning_rates_of_their_own() -> None:
    def own(label: str, task: str) -> dict[str, float]:
        runs = EXPERIMENTS[label].runs("paper", seeds=[0], tasks=[task])
        return {d.model_name: d.run.training.lr for d in runs if d.run.training.lr != 5e-4}

    for task in ("smnist", "psmnist", "scifar"):
        assert own("tab:sMNIST_results", task) == {"softsign": 2e-4, "NRU": 2e-4}
    assert own("tab:sMNIST_small_results", "smnist") == {"NRU": 2e-4} == own("tab:sMNIST_small_results", "scifar")
    assert own("tab:sMNIST_small_results", "psmnist") == {}


@pytest.mark.parametrize(
    ("label", "task", "budget", "expected"),
    [
        ("tab:sMNIST_results", "scifar", "paper", ("adam", 5e-4, 1.0, 50, 150, None, None, {0, 1, 2})),
        ("tab:sMNIST_results_GRU", "smnist", "paper", ("adam", 5e-4, 1.0, 50, 150, None, None, {0, 1, 2})),
        ("fig:psMNIST_result", "psmnist", "paper", ("adam", 5e-4, 1.0, 50, 150, None, None, {0, 1, 2})),
        ("tab:sMNIST_small_results", "smnist", "paper", ("rmsprop", 5e-4, 1.0, 100, 150, (100,), 0.2, {0, 1, 2, 3})),
        ("tab:sMNIST_small_results", "psmnist", "paper", ("rmsprop", 5e-4, 1.0, 100, 150, (100,), 0.2, {0, 1, 2, 3})),
        ("tab:sMNIST_small_results", "scifar", "paper", ("rmsprop", 5e-4, 1.0, 100, 100, (50,), 0.2, {0, 1, 2, 3})),
        ("tab:sMNIST_small_results", "smnist", "desk", ("rmsprop", 5e-4, 1.0, 100, 5, None, None, {0})),
        ("tab:sMNIST_small_results", "psmnist", "desk", ("rmsprop", 5e-4, 1.0, 100, 20, (14,), 0.2, {0})),
        ("tab:sMNIST_small_results", "scifar", "desk", ("rmsprop", 5e-4, 1.0, 100, 3, None, None, {0})),
    ],
)
def test_the_setting_of_the_images(label: str, task: str, budget: BudgetName, expected: tuple[object, ...]) -> None:
    runs = EXPERIMENTS[label].runs(budget, models=["sigmoid", "fast"], tasks=[task])
    assert {d.run.task.name for d in runs} == {task}
    for declared in runs:
        t = declared.run.training
        found = (t.optimizer, t.lr, t.clip, t.batch_size, t.epochs, t.decay_at, t.decay)
        assert (*found, {d.seed for d in runs}) == expected
        assert t.evaluate_every == 1 and t.updates is None  # epochs


def test_images_share_their_runs() -> None:
    one, other = (EXPERIMENTS[label].runs("paper") for label in ("tab:sMNIST_results", "tab:sMNIST_results_GRU"))
    shared = {d.folder for d in one} & {d.folder for d in other}
    assert {folder.split("/")[2] for folder in shared} == {"softsign", "sigmoid", "refine", "fast"}
    assert {d.folder for d in EXPERIMENTS["fig:psMNIST_result"].runs("paper")} <= {d.folder for d in one}


def test_a_declared_run_says_what_it_is() -> None:
    (run,) = EXPERIMENTS["tab:sMNIST_small_results"].runs("desk", models=["UF"], tasks=["psmnist"])
    assert run.says == {"grid": "small_psmnist", "budget": "desk", "task": "psmnist", "model": "UF", "seed": 0}
    assert run.folder == "small_psmnist/desk/UF/seed0"


def test_a_grid_can_be_chosen_where_several_share_a_task() -> None:
    runs = OWN["own:tones"].runs("desk", tasks=["tones_500", "tones_16000"])
    assert sorted({d.run.task.steps for d in runs}) == [500, 16_000] and len(runs) == 8
    assert len(OWN["own:tones"].runs("desk", tasks=["tones"])) == 16


def test_the_papers_setting_of_speech() -> None:
    runs = EXPERIMENTS["tab:results_sc"].runs("paper")
    for declared in runs:
        t, model = declared.run.training, declared.run.model
        assert declared.run.task == Speech()  # stratified, unit variance, the benchmark
        assert (t.optimizer, t.batch_size, t.epochs, t.evaluate_every) == ("adamw", 50, 200, 1)
        assert (t.schedule, t.decay, t.patience) == ("plateau", 0.2, 20)
        assert isinstance(model, Model) and (model.encoder_size, model.hidden_size, model.read) == (256, 256, "mean")
        assert (model.num_layers, model.tied, model.head_size) == (1, True, None)
    every = {(lr, clip) for lr in (1e-3, 5e-4, 1e-4, 5e-5) for clip in (1.0, 0.1)}
    for name in ("sigmoid", "refine", "UR", "fast"):
        found = [(d.run.training.lr, d.run.training.clip) for d in runs if d.model_name == name]
        assert len(found) == len(every) and set(found) == every
    assert runs[1].setting == "lr=0.001,clip=0.1" and runs[1].folder == "speech/paper/sigmoid/lr=0.001,clip=0.1/seed0"
    assert runs[1].says == {
        "grid": "speech",
        "budget": "paper",
        "task": "speech",
        "model": "sigmoid",
        "seed": 0,
        "setting": "lr=0.001,clip=0.1",
    }


def test_speech_at_the_desk_is_the_subset_in_one_setting() -> None:
    runs = EXPERIMENTS["tab:results_sc"].runs("desk")
    assert {(d.run.task, d.run.training.lr, d.run.training.clip, d.setting) for d in runs} == {
        (Speech(subset=True), 1e-3, 1.0, "")
    }
    assert {(d.run.model.hidden_size, d.run.training.epochs) for d in runs} == {(64, 55)}  # type: ignore[attr-defined]
    assert 55 * (1400 / 50) >= 1500  # updates


def test_the_tones_are_heard_at_every_length() -> None:
    for budget, seeds in (("paper", 3), ("desk", 1)):
        runs = OWN["own:tones"].runs(budget)  # type: ignore[arg-type]
        assert {d.run.task for d in runs} == {Tones(length) for length in (500, 2_000, 8_000, 16_000)}
        assert {d.model_name for d in runs} == {"softsign", "sigmoid", "refine", "fast"}
        assert {(d.run.training.updates, d.run.training.batch_size) for d in runs} == {(1_500, 32)}
        assert {(d.run.model.hidden_size, d.run.model.read) for d in runs} == {(64, "mean")}  # type: ignore[attr-defined]
        assert {d.seed for d in runs} == set(range(seeds))


@pytest.mark.parametrize("label", THEORY)
def test_theory_needs_no_training(label: str) -> None:
    with pytest.raises(NotRunnableError, match=f"{label} needs no training: run gatedrnn theory --out DIR"):
        EXPERIMENTS[label].runs("paper")


def test_budgets_say_what_they_are() -> None:
    for label in RUNNABLE:
        assert len(set(EXPERIMENTS[label].notes.values())) == 3
        for grid in EXPERIMENTS[label].grids:
            desk = grid.budgets["desk"]
            assert desk.note in EXPERIMENTS[label].notes["desk"]
            if desk.training.epochs is None:
                assert f"T={desk.task.length} in place of" in desk.note  # type: ignore[attr-defined]
                assert f"{desk.training.updates:,} updates" in desk.note
            else:
                assert f"{desk.training.epochs} epochs" in desk.note and "in place of" in desk.note


def test_declarations_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        EXPERIMENTS["fig:adding_mse"].threshold = 1.0  # type: ignore[misc]


def test_the_papers_setting_of_the_language_model() -> None:
    for label, task in (("tab:language_results", "ptb"), ("own:wikitext2", "wikitext2")):
        runs = {declared.model_name: declared.run for declared in {**EXPERIMENTS, **OWN}[label].runs("paper")}
        assert list(runs) == ["sigmoid", "refine", "fast", "NRU"]
        for name, run in runs.items():
            training = run.training
            found = (training.optimizer, training.lr, training.clip, training.batch_size, training.epochs)
            assert found == ("sgd", 30.0, 0.25, 20, 1000) and run.task.name == task
            assert (training.weight_decay, training.average_patience) == (1.2e-6, 5)
            assert isinstance(run.model, LanguageModel)
            assert run.model.tied is {"refine": True, "NRU": None}.get(name, False)
            assert (run.model.embedding_size, run.model.hidden_size, run.model.num_layers) == (400, 1150, 3)
            dropouts = (run.model.output_dropout, run.model.layer_dropout, run.model.input_dropout)
            assert dropouts == (0.4, 0.25, 0.4)
            assert (run.model.embedding_dropout, run.model.weight_dropout) == (0.1, 0.5)
            assert (run.model.activation_penalty, run.model.temporal_penalty) == (2.0, 1.0)
