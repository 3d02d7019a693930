"""The paper's smaller claims and the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import CLAIMS, EXPERIMENTS, OWN
from gatedrnn.lab.experiments.base import BudgetName
from gatedrnn.lab.report.document import Section
from gatedrnn.lab.report.items import item_of, own_items, paper_items
from gatedrnn.lab.report.ledger import counts
from gatedrnn.lab.report.make import read_report
from gatedrnn.lab.report.text_claims import Line
from tests.lab.report.records import declare, write_run
from tests.lab.report.test_theory import numbers
from tests.lab.report.test_update_times import write_times

UNIFORM = {
    "share_above_where_uniform": {"100": 0.00995},
    "gates": {
        gate: {"distance_from_uniform": 0.003, "share_above": {"100": 0.0099}}
        for gate in ("softsign", "sigmoid", "fast")
    }
    | {"refine": {"distance_from_uniform": 0.096, "share_above": {"100": 0.005}}},
}


def write_nru(root: Path, budget: str, model: str, outcomes: list[str | None]) -> None:
    """Runs with the keys that are declared."""
    grid = "copy" if model == "NRU" else "copy_nru_clipped"
    for declared in OWN["own:nru_copy"].runs(budget, models=[model]):  # type: ignore[arg-type]
        folder = root / model / str(declared.seed)
        write_run(
            folder, "NRU", declared.seed, outcome=outcomes[declared.seed], key=declared.run.key(), task={"name": "copy"}
        )
        declare(folder, grid, budget, model, {"task": "copy"})


def claims(root: Path) -> dict[str, tuple[str, str]]:
    """By label, what was seen and the verdict."""
    document = read_report(root, [*paper_items(), *own_items()])
    (section,) = [section for section in document.sections if section.anchor == "text-claims"]
    found = {row[0]: (row[5], row[1]) for row in section.verdicts[0].rows}
    assert section.also == tuple(found)
    assert {row[0]: row[1] for row in document.overview.rows if row[0].startswith("text:")} == {
        label: verdict for label, (_, verdict) in found.items()
    }
    return found


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs" / "other", "fast", 0, evaluations=3)
    return tmp_path / "runs"


def test_without_evidence_nothing_was_run(runs: Path) -> None:
    assert claims(runs) == {claim.label: ("—", "not run") for claim in CLAIMS}


def test_the_nru_on_copy(runs: Path) -> None:
    write_nru(runs, "paper", "NRU", ["diverged"] * 3)
    seen = "paper budget: NRU: 3 of 3 runs diverged; NRU-clip-0.1: not run"
    assert claims(runs)["text:nru_copy"] == (seen, "partial")
    write_nru(runs, "paper", "NRU-clip-0.1", ["diverged"] * 3)
    seen = "paper budget: NRU: 3 of 3 runs diverged; NRU-clip-0.1: 3 of 3 runs diverged"
    assert claims(runs)["text:nru_copy"] == (seen, "agrees")


def test_an_nru_that_learns_differs(runs: Path) -> None:
    write_nru(runs, "paper", "NRU", ["diverged"] * 3)
    write_nru(runs, "paper", "NRU-clip-0.1", ["finished"] * 3)
    seen, verdict = claims(runs)["text:nru_copy"]
    assert verdict == "differs"
    assert seen.startswith("paper budget: NRU: 3 of 3 runs diverged; NRU-clip-0.1: 0 of 3 runs diverged; best mse ")


def test_desk_runs_are_partial(runs: Path) -> None:
    write_nru(runs, "desk", "NRU", ["diverged"])
    write_nru(runs, "desk", "NRU-clip-0.1", ["diverged"])
    seen = "desk budget: NRU: 1 of 1 runs diverged; NRU-clip-0.1: 1 of 1 runs diverged"
    assert claims(runs)["text:nru_copy"] == (seen, "partial")


@pytest.mark.parametrize(("ratio", "verdict"), [(1.07, "agrees"), (1.0, "differs"), (1.03, "agrees"), (1.2, "differs")])
def test_the_time_of_the_iterated_gate(ratio: float, verdict: str, runs: Path) -> None:
    write_times(runs, [_time("paper", "fast", 2.0), _time("paper", "iterated_fast", 2.0 * ratio)])
    seen = f"large_psmnist/paper: {ratio:.3f} ({ratio:.3f} … {ratio:.3f})"
    assert claims(runs)["text:iterated_time"] == (seen, verdict)


@pytest.mark.parametrize("budget", ["desk", "smoke"])
def test_times_of_other_sizes_decide_nothing(budget: BudgetName, runs: Path) -> None:
    write_times(runs, [_time(budget, "fast", 2.0), _time(budget, "iterated_fast", 2.14)])
    seen = f"large_psmnist/{budget}: 1.070 (1.070 … 1.070)"
    assert claims(runs)["text:iterated_time"] == (seen, "partial")


def _time(budget: BudgetName, model: str, seconds: float) -> dict[str, Any]:
    (declared,) = EXPERIMENTS["tab:sMNIST_results_GRU"].runs(budget, models=[model], seeds=[0], tasks=["psmnist"])
    said = {**(declared.says or {}), "key": declared.run.key()}
    return {**said, "engine": "cpu: kernels", "threads": 1, "rounds": [seconds, seconds]}


def test_the_time_scales_of_uniform_initialisation(runs: Path) -> None:
    found = {**numbers(), "uniform_initialisation": UNIFORM}
    (runs / "theory.json").write_text(json.dumps(found))
    seen, verdict = claims(runs)["text:uniform_time_scales"]
    assert verdict == "agrees"
    assert seen == (
        "largest distance: softsign 0.003, sigmoid 0.003, refine 0.096, fast 0.003; share of units with D > 100: "
        "law 0.00995, softsign 0.0099, sigmoid 0.0099, refine 0.005, fast 0.0099"
    )
    even = json.loads(json.dumps(found).replace("0.096", "0.003"))
    (runs / "theory.json").write_text(json.dumps(even))
    assert claims(runs)["text:uniform_time_scales"][1] == "differs"
    (runs / "theory.json").write_text(json.dumps(numbers()))  # of an older version, which did not have them
    assert claims(runs)["text:uniform_time_scales"][1] == "partial"


def test_every_claim_names_an_experiment() -> None:
    assert {claim.shown_by for claim in CLAIMS} <= {*EXPERIMENTS, *OWN}


def test_the_counts() -> None:
    sections = [Section("a", "A", f"fig:{i}", verdict) for i, verdict in enumerate(("agrees", "partial", "partial"))]
    assert (
        counts(sections, []) == "Summary: 3 tables and figures of the paper: 1 agree, 0 differ, 2 partial, 0 not run."
    )
    lines = [Line(CLAIMS[0], "differs", None), Line(CLAIMS[1], "not run", None)]
    assert counts(sections, lines).endswith("0 not run; 2 smaller claims: 0 agree, 1 differ, 0 partial, 1 not run.")


def test_the_ledger_counts_runs_that_were_trained_to_their_end(tmp_path: Path) -> None:
    runs = EXPERIMENTS["fig:adding_mse"].runs("desk", models=["fast"])
    for declared, key in zip(runs[:3], (runs[0].run.key(), runs[1].run.key(), "shorter"), strict=True):
        folder = tmp_path / str(declared.seed)
        write_run(folder, "fast", declared.seed, outcome=None if declared.seed == 1 else "finished", key=key)
        declare(folder, "adding", "desk", "fast")
    write_run(tmp_path / "further", "fast", 7, key="a seed more than were declared")
    declare(tmp_path / "further", "adding", "desk", "fast")
    document = read_report(tmp_path, [item_of(EXPERIMENTS["fig:adding_mse"])])
    assert document.overview.rows == [
        ("fig:adding_mse", "partial", "desk 2 of 28, 2 incomplete", "Adding: MSE against updates")
    ]
