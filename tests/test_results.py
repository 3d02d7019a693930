"""The records in results/ are whole, and are runs of the declared experiments."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, OWN, DeclaredRun
from gatedrnn.lab.experiments.base import NotRunnableError
from gatedrnn.lab.records import CHECKPOINTS, METRICS_FILE, find_runs, read_run, whole_checkpoints
from gatedrnn.lab.training import Run

RESULTS = Path(__file__).parent.parent / "results"
RUNS = find_runs(RESULTS)
RESUMABLE = [folder for folder in RUNS if (folder / CHECKPOINTS).exists()]


def _declared() -> dict[str, DeclaredRun]:
    """By the folder of the run."""
    found = {}
    for experiment in (*EXPERIMENTS.values(), *OWN.values()):
        for budget in BUDGETS:
            try:
                found.update({declared.folder: declared for declared in experiment.runs(budget)})
            except NotRunnableError:
                continue
    return found


def _at_length(declared: Run, run: Run) -> Run:
    """The declared run, as long as the one that was made: the first epochs of a run count as its beginning."""
    training = dataclasses.replace(declared.training, epochs=run.training.epochs)
    return dataclasses.replace(declared, training=training)


def test_there_are_records() -> None:
    assert RUNS


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_a_record_is_whole_and_declared(folder: Path) -> None:
    found = read_run(folder)
    assert found.warnings == []
    run = Run.from_json(found.options)
    declared = _declared()[str(folder.relative_to(RESULTS))]
    assert run.key() == found.options["key"] == _at_length(declared.run, run).key()
    assert (run.training.epochs or 0) <= (declared.run.training.epochs or 0)
    assert found.options["declared"] == declared.says
    updates = [line["update"] for line in found.metrics]
    assert updates == sorted(set(updates)) and updates[0] == 0
    if found.record is not None:
        assert found.record["key"] == run.key()
        if found.record["outcome"] == "diverged":  # perhaps between two evaluations
            unit = found.record["updates"] / found.record["epochs"] if run.training.epochs else 1
            assert 0 <= found.record["updates"] - updates[-1] < run.training.evaluate_every * unit
        else:
            assert found.record["updates"] == updates[-1]
        target = run.training.target
        if target is not None:
            last = found.metrics[-1][run.task.metric]
            good = last <= target if run.task.lower_is_better else last >= target
            assert (found.record["outcome"] == "target_reached") == good


@pytest.mark.parametrize("folder", RESUMABLE, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_a_checkpoint_is_whole_and_belongs_to_its_run(folder: Path) -> None:
    found = read_run(folder)
    whole, damaged = whole_checkpoints(folder, [found.options["key"]])
    assert len(whole) == 1 and damaged == {}, "one checkpoint is enough to resume from"
    assert (folder / METRICS_FILE).read_bytes().startswith(whole[0].files[METRICS_FILE])
    # A run that was killed has a few evaluations after its last checkpoint, which are computed again when it is resumed.
    assert found.metrics[-1]["update"] - whole[0].update < 4 * Run.from_json(found.options).training.evaluate_every
