"""The rules of the verdicts, and the paper's sentences as checks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.analysis import mean_of
from gatedrnn.lab.report import verdicts
from gatedrnn.lab.report.claims import CLAIMS, Before, Checked, Diverges, Fails, LongestTimeScale, StaysPut
from gatedrnn.lab.report.groups import ORDER, Group, by_options
from gatedrnn.lab.report.runs import load
from tests.lab.report.records import write_run, write_sweep


def test_a_number_agrees_within_the_interval_of_the_difference() -> None:
    ours = mean_of([1.0, 2.0, 3.0])
    half = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025)) * math.sqrt(1 / 3 + 1 / 3)  # t(0.975, 2) in closed form
    assert verdicts.of_number(ours, 2 + 0.999 * half, 3) == "agrees"
    assert verdicts.of_number(ours, 2 + 1.001 * half, 3) == "differs"
    assert verdicts.of_number(ours, 2 - 1.001 * half, 3) == "differs"
    assert verdicts.of_number(mean_of([2.0]), 2.0, 3) == "partial"  # one seed has no spread
    assert verdicts.of_number(None, 2.0, 3) == "partial"


@pytest.mark.parametrize(
    ("budget", "complete", "parts", "expected"),
    [
        (None, False, [], "not run"),
        ("smoke", True, ["agrees"], "not run"),
        ("desk", True, ["agrees"], "partial"),
        ("desk", True, ["differs"], "partial"),
        ("paper", False, ["agrees"], "partial"),
        ("paper", True, [], "partial"),
        ("paper", True, ["agrees", "partial"], "partial"),
        ("paper", True, ["agrees", "not run"], "partial"),
        ("paper", True, ["agrees", "agrees"], "agrees"),
        ("paper", True, ["agrees", "partial", "differs"], "differs"),
    ],
)
def test_the_verdict_on_an_item(budget: str | None, complete: bool, parts: list[str], expected: str) -> None:
    assert verdicts.of_item(budget, complete, parts) == expected


def test_a_part_is_lowered_outside_the_papers_setting() -> None:
    assert verdicts.at_most_partial("paper", True, "agrees") == "agrees"
    assert verdicts.at_most_partial("paper", False, "agrees") == "partial"
    assert verdicts.at_most_partial("desk", True, "differs") == "partial"
    assert [verdicts.of_claim(Checked("", holds, "")) for holds in (True, False, None)] == [
        "agrees",
        "differs",
        "partial",
    ]


def groups_in(folder: Path) -> dict[str, Group]:
    (groups,) = by_options(load(folder)[0]).values()
    return {found.name: found for found in groups}


def test_complete_means_every_declared_seed_ended(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0)
    write_run(tmp_path / "b", "fast", 1, outcome="diverged")
    write_run(tmp_path / "c", "fast", 2, outcome="budget_spent")
    groups = groups_in(tmp_path).values()
    assert verdicts.is_complete([("fast", 0), ("fast", 1)], groups)
    assert not verdicts.is_complete([("fast", 0), ("fast", 2)], groups)
    assert not verdicts.is_complete([("fast", 0), ("sigmoid", 0)], groups)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Group]:
    folder = tmp_path_factory.mktemp("sweep")
    write_sweep(folder, ("softsign", "sigmoid", "refine", "fast", "NRU"))
    write_run(folder / "chrono", "chrono", 0, outcome="diverged", evaluations=5)
    return groups_in(folder)


def holds(claim: Any, groups: dict[str, Group], threshold: float | None = 0.02) -> bool | None:
    found: Checked = claim.check(groups, threshold)
    return found.holds


def test_before(sweep: dict[str, Group]) -> None:
    claim = Before("fast", ("softsign", "sigmoid", "refine"))
    assert claim.check(sweep, 0.02) == Checked(
        "fast needs fewer updates than softsign, sigmoid, refine",
        True,
        "median 800; softsign: > 1500, sigmoid: 1200, refine: 1100",
    )
    assert holds(Before("fast", ("NRU",)), sweep) is False
    assert holds(Before("fast", ("sigmoid", "NRU")), sweep) is False
    assert holds(Before("fast", ("fast",)), sweep) is False
    assert holds(Before("fast", ("UR",)), sweep) is None
    assert holds(Before("fast", ("sigmoid",)), sweep, 1e-9) is None  # nobody got there
    assert holds(Before("fast", ("sigmoid",)), sweep, None) is None
    assert holds(Before("fast", ("chrono",)), sweep) is True  # it diverged and never will


def test_seconds_are_compared_on_one_clock_only(sweep: dict[str, Group]) -> None:
    assert holds(Before("fast", ("sigmoid",), "seconds"), sweep) is True
    assert holds(Before("NRU", ("fast",), "seconds"), sweep) is None
    assert "another engine" in Before("NRU", ("fast",), "seconds").check(sweep, 0.02).seen


def test_failing_and_diverging(sweep: dict[str, Group]) -> None:
    assert [holds(Fails(name), sweep) for name in ("softsign", "fast", "UR")] == [True, False, None]
    assert [holds(Diverges(name), sweep) for name in ("chrono", "fast", "UR")] == [True, False, None]


def test_time_scales(sweep: dict[str, Group]) -> None:
    # 3·1.3³⁰ against 3·1.02³⁰
    assert [holds(LongestTimeScale(name), sweep) for name in ("fast", "sigmoid", "NRU")] == [True, False, None]
    assert holds(LongestTimeScale("fast"), {"fast": sweep["fast"]}) is None
    assert [holds(StaysPut(name), sweep) for name in ("sigmoid", "fast", "NRU")] == [True, False, None]


def test_every_claim_speaks_of_the_papers_models(sweep: dict[str, Group]) -> None:
    claims = [claim for several in CLAIMS.values() for claim in several]
    assert len(claims) >= 10
    for claim in claims:
        assert claim.model in ORDER  # type: ignore[attr-defined]
        assert set(getattr(claim, "others", ())) <= set(ORDER)
        claim.check(sweep, 0.02)
