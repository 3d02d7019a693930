"""The records in results/ are whole, and are runs of the declared experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS
from gatedrnn.lab.experiments.base import NotRunnableError
from gatedrnn.lab.records import find_runs, read_run
from gatedrnn.lab.training import Run

RESULTS = Path(__file__).parent.parent / "results"
RUNS = find_runs(RESULTS)


def _declared() -> dict[str, str]:
    keys = {}
    for experiment in EXPERIMENTS.values():
        for budget in BUDGETS:
            try:
                keys.update({declared.run.key(): declared.folder for declared in experiment.runs(budget)})
            except NotRunnableError:
                continue
    return keys


def test_there_are_records() -> None:
    assert RUNS


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_a_record_is_whole_and_declared(folder: Path) -> None:
    found = read_run(folder)
    assert found.warnings == []
    run = Run.from_json(found.options)
    assert run.key() == found.options["key"]
    assert _declared()[run.key()] == str(folder.relative_to(RESULTS))
    updates = [line["update"] for line in found.metrics]
    assert updates == sorted(set(updates)) and updates[0] == 0
    if found.record is not None:
        assert found.record["key"] == run.key()
        assert found.record["updates"] == updates[-1]
        reached = found.record["outcome"] == "target_reached"
        last = found.metrics[-1][run.task.metric]
        good = last <= run.training.target if run.task.lower_is_better else last >= run.training.target
        assert reached == good
