"""Run folders written by hand, as a run would leave them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.runs import Slot

MODELS: dict[str, dict[str, Any]] = {
    "softsign": {"cell": "lstm", "tied": True, "forget_gate": "softsign", "forget_init": "constant"},
    "sigmoid": {"cell": "lstm", "tied": True, "forget_gate": "sigmoid", "forget_init": "constant"},
    "refine": {"cell": "lstm", "tied": True, "forget_gate": "refine", "forget_init": "constant"},
    "fast": {"cell": "lstm", "tied": True, "forget_gate": "fast", "forget_init": "constant"},
    "chrono": {"cell": "lstm", "tied": True, "forget_gate": "sigmoid", "forget_init": "chrono"},
    "NRU": {"cell": "nru", "tied": None, "forget_gate": None, "forget_init": None},
}
#: Evaluations until the error of a model begins to fall.
PACE = {"softsign": 1000, "sigmoid": 16, "refine": 14, "fast": 8, "chrono": 12, "NRU": 5}


def mse(model: str, seed: int, i: int) -> float:
    """0.17 on a plateau, then an exponential fall: a closed form for the tests to compare with."""
    return 0.17 * math.exp(-max(0, i - PACE[model] - seed) / 3)


def write_run(
    folder: Path,
    model: str,
    seed: int,
    evaluations: int = 31,
    engine: str = "cpu: native kernels",
    threads: int = 2,
    outcome: str | None = "finished",
    task: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    key: str | None = None,
    curve: Callable[[int], float] | None = None,
) -> None:
    """One run: evaluations every 50 updates, a second each; ``outcome=None`` leaves it unfinished.

    ``curve`` gives the error of each evaluation in place of :func:`mse`.
    """
    folder.mkdir(parents=True)
    chosen_task = {"name": "adding", "length": 300, **(task or {})}
    chosen = {**MODELS[model], "hidden_size": 8, "num_layers": 1, **(options or {})}
    settings = {
        "optimizer": "rmsprop",
        "lr": 0.001,
        "seed": seed,
        "threads": threads,
        "target": None,
        **(training or {}),
    }
    key = key or f"{model}-{seed}"
    _write(
        folder / "options.json",
        {"schema": 1, "kind": "gatedrnn run", "task": chosen_task, "model": chosen, "training": settings, "key": key},
    )
    _write(
        folder / "environment.json",
        {"schema": 1, "kind": "gatedrnn environment", "engine": engine, "processor": "test processor", "commit": None},
    )
    lines = []
    for i in range(evaluations):
        value = mse(model, seed, i) if curve is None else curve(i)
        line: dict[str, Any] = {
            "update": 50 * i,
            "seconds": float(i),
            "train_loss": value,
            "loss": value / 2,
            "mse": value,
            "lr": 0.001,
        }
        if model != "NRU":
            growth = 3.0 * (1.3 if model == "fast" else 1.02) ** i
            line["time_scales"] = {
                "l0": {
                    "mean": growth,
                    "std": growth / 4,
                    "quantiles": {"0.05": growth / 2, "0.5": growth, "0.95": growth * 2},
                }
            }
        lines.append(line)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if outcome is None:
        return
    last = {key: lines[-1][key] for key in ("update", "loss", "mse")}
    if outcome == "diverged":
        last = {"update": last["update"], "loss": None, "mse": None}
    record = {
        "schema": 1, "kind": "gatedrnn record", "outcome": outcome, "updates": last["update"],
        "diverged_at": last["update"] + 7 if outcome == "diverged" else None, "seconds": float(evaluations - 1),
        "seconds_evaluation": 1.0, "updates_a_second": 50.0, "parameters": 100, "metric": "mse", "lower_is_better": True,
        "final": last, "best": {key: lines[-1][key] for key in ("update", "loss", "mse")}, "gates": {}, "time_scales": {}, "resumed": 0, "notes": [], "key": key,
    }  # fmt: skip
    _write(folder / "record.json", record)


def declare(folder: Path, grid: str, budget: str, model: str, more: Mapping[str, Any] | None = None) -> None:
    """Note beside the options of a run to which place a sweep made it."""
    options = json.loads((folder / "options.json").read_text())
    declared = {"grid": grid, "budget": budget, "model": model, "seed": options["training"]["seed"], **(more or {})}
    _write(folder / "options.json", {**options, "declared": declared})


def write_image_run(
    folder: Path,
    model: str,
    seed: int,
    task: str,
    accuracy: float,
    epochs: int = 4,
    seconds_an_epoch: float = 30.0,
    budget: str = "desk",
    grid: str = "images",
    ended: bool = True,
    engine: str = "cpu: native kernels",
) -> None:
    """One run on images: an evaluation on validation data each epoch of 450 updates, tested at the best one.

    The accuracy on validation data rises to one per cent above that on test data, and falls in the last epoch.
    """
    write_run(
        folder,
        model,
        seed,
        evaluations=1,
        outcome=None,
        task={"name": task},
        engine=engine,
        key=f"{task}-{model}-{seed}",
    )
    options = json.loads((folder / "options.json").read_text())
    del options["task"]["length"]
    _write(folder / "options.json", options)
    declare(folder, grid, budget, model, {"task": task})
    best = accuracy + 0.01
    values = [best * (epoch + 1) / epochs for epoch in range(epochs)] + [best - 0.02]
    lines = [
        {
            "update": 450 * i,
            "epoch": i,
            "seconds": seconds_an_epoch * i,
            "train_loss": 1.0,
            "loss": 1 - v,
            "accuracy": v,
        }
        for i, v in enumerate(values)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if not ended:
        return
    chosen = {name: lines[-2][name] for name in ("update", "epoch", "loss", "accuracy")}
    record = {
        "schema": 1, "kind": "gatedrnn record", "outcome": "finished", "updates": 450 * epochs, "diverged_at": None,
        "seconds": seconds_an_epoch * epochs, "updates_a_second": 15.0, "metric": "accuracy", "lower_is_better": False,
        "metric_unit": "fraction", "metric_scale": "linear", "final": {"accuracy": values[-1]}, "best": {"accuracy": best},
        "validation": chosen, "test": {"loss": 1 - accuracy, "accuracy": accuracy}, "seconds_an_epoch": seconds_an_epoch,
        "notes": [], "key": options["key"],
    }  # fmt: skip
    _write(folder / "record.json", record)


def image_item(
    models: tuple[str, ...],
    tasks: tuple[str, ...] = ("smnist", "psmnist"),
    seeds: int = 3,
    budget: str = "desk",
    **more: Any,
) -> Item:
    """A table that declares these runs, on a grid of several tasks."""
    slots = [Slot("images", budget, t, model, seed) for t in tasks for model in models for seed in range(seeds)]
    given = {
        "label": "tab:images",
        "title": "Images",
        "tasks": tasks,
        "metric": "accuracy",
        "lower_is_better": False,
        "threshold": None,
        "declared": {budget: {f"{slot.task}-{slot.model}-{slot.seed}": slot for slot in slots}},
        "columns": {**dict.fromkeys(tasks, "% test accuracy"), "time": "minutes per epoch on psmnist"},
        "view": None,
    }
    return Item(**{**given, **more})


def write_sweep(
    root: Path, models: tuple[str, ...] = ("softsign", "sigmoid", "fast"), seeds: int = 3, **more: Any
) -> None:
    """Several models and seeds."""
    for model in models:
        for seed in range(seeds):
            engine = "reference: the loop over time in plain PyTorch" if model == "NRU" else "cpu: native kernels"
            write_run(root / model / f"seed{seed}", model, seed, **{"engine": engine, **more})


def item(
    budget: str = "paper", models: tuple[str, ...] = ("softsign", "sigmoid", "fast"), seeds: int = 3, **more: Any
) -> Item:
    """An item of a paper that declares these runs."""
    slots = [Slot("adding", budget, "adding", model, seed) for model in models for seed in range(seeds)]
    declared = {budget: {f"{slot.model}-{slot.seed}": slot for slot in slots}}
    given = {
        "label": "fig:adding_mse",
        "title": "Adding, error",
        "tasks": ("adding",),
        "metric": "mse",
        "threshold": 0.02,
        "declared": declared,
    }
    return Item(**{**given, **more})


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))
