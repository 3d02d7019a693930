"""The rules of the verdicts, and the paper's sentences as checks."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from gatedrnn.lab.analysis import mean_of
from gatedrnn.lab.experiments import EXPERIMENTS, MODEL_NAMES
from gatedrnn.lab.report import verdicts
from gatedrnn.lab.report.checks import CHECKS
from gatedrnn.lab.report.claims import Before, Both, Checked, Claim, Diverges, Fails, LongestTimeScale, Stable, StaysPut
from gatedrnn.lab.report.groups import Group, by_options, group, lstm_of
from gatedrnn.lab.report.runs import load
from tests.lab.report.records import item, write_run, write_sweep

RESULTS = Path(__file__).parents[3] / "results"


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
    runs = load(tmp_path)[0]
    assert item(models=("fast",), seeds=2).is_complete("paper", runs)
    assert not item(models=("fast",), seeds=3).is_complete("paper", runs)
    assert not item(models=("fast", "sigmoid"), seeds=1).is_complete("paper", runs)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Group]:
    folder = tmp_path_factory.mktemp("sweep")
    write_sweep(folder, ("softsign", "sigmoid", "refine", "fast", "NRU"))
    write_sweep(folder, ("chrono",), outcome="diverged", evaluations=5)
    return groups_in(folder)


def holds(claim: Claim, groups: dict[str, Group], threshold: float | None = 0.02) -> bool | None:
    return claim.check(groups, threshold).holds


def test_before(sweep: dict[str, Group]) -> None:
    claim = Before("fast", ("softsign", "sigmoid", "refine"))
    assert claim.check(sweep, 0.02) == Checked(
        "fast needs fewer updates than softsign, sigmoid, refine",
        True,
        "fast: median 800; softsign: median > 1500, more than 1.5 times as many (95 %); "
        "sigmoid: median 1200, 1.37 … 1.71 times as many (95 %); refine: median 1100, 1.26 … 1.55 times as many (95 %)",
    )
    assert holds(Before("fast", ("NRU",)), sweep) is False
    assert holds(Before("fast", ("sigmoid", "NRU")), sweep) is False
    assert holds(Before("fast", ("UR",)), sweep) is None
    assert holds(Before("fast", ("sigmoid", "UR")), sweep) is None
    assert holds(Before("fast", ("sigmoid",)), sweep, 1e-9) is None  # nobody got there
    assert holds(Before("fast", ("sigmoid",)), sweep, None) is None
    assert holds(Before("fast", ("chrono",)), sweep) is True  # it diverged and never will
    assert holds(Before("chrono", ("fast",)), sweep) is False


def test_a_difference_within_the_uncertainty_is_not_decided(tmp_path: Path) -> None:
    """Medians 800 and 850, but the seeds do not agree: 700, 800, 1200 against 850, 850, 850."""
    for seed, pace in enumerate((7, 9, 17)):
        write_run(tmp_path / f"f{seed}", "fast", seed, curve=lambda i, pace=pace: 0.1 if i < pace + 7 else 0.01)
        write_run(tmp_path / f"s{seed}", "sigmoid", seed, curve=lambda i: 0.1 if i < 17 else 0.01)
    found = Before("fast", ("sigmoid",)).check(groups_in(tmp_path), 0.02)
    assert found.holds is None
    assert found.seen.startswith("fast: median 800; sigmoid: median 850, 0.4")


def test_a_difference_smaller_than_the_evaluations_show_is_not_decided(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / f"f{seed}", "fast", seed, curve=lambda i: 0.1 if i < 7 else 0.01)
        write_run(tmp_path / f"s{seed}", "sigmoid", seed, curve=lambda i: 0.1 if i < 8 else 0.01)
    assert holds(Before("fast", ("sigmoid",)), groups_in(tmp_path)) is None


def test_two_seeds_decide_nothing(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast", "sigmoid", "softsign"), seeds=2)
    groups = groups_in(tmp_path)
    claims = [
        Before("fast", ("sigmoid",)),
        Before("sigmoid", ("fast",)),
        Fails("softsign", "fast"),
        Fails("sigmoid", "fast"),
        Diverges("fast"),
        LongestTimeScale("fast", ("sigmoid",)),
        LongestTimeScale("sigmoid", ("fast",)),
        StaysPut("sigmoid"),
        StaysPut("fast"),
    ]
    found = [claim.check(groups, 0.02) for claim in claims]
    assert [checked.holds for checked in found] == [None] * len(claims)
    assert "fewer than 3 seeds to compare" in found[0].seen


def test_a_run_that_was_cut_early_proves_nothing(tmp_path: Path) -> None:
    """Softsign cut before fast arrives, then after it: it is slower then, but nobody knows whether it fails."""
    for seed in range(3):
        write_run(tmp_path / "early" / f"f{seed}", "fast", seed)
        write_run(tmp_path / "early" / f"s{seed}", "softsign", seed, evaluations=10, outcome=None)
        write_run(tmp_path / "late" / f"f{seed}", "fast", seed)
        write_run(tmp_path / "late" / f"s{seed}", "softsign", seed, evaluations=30, outcome="budget_spent")
    early, late = groups_in(tmp_path / "early"), groups_in(tmp_path / "late")
    assert (holds(Before("fast", ("softsign",)), early), holds(Fails("softsign", "fast"), early)) == (None, None)
    assert (holds(Before("fast", ("softsign",)), late), holds(Fails("softsign", "fast"), late)) == (True, None)
    assert Fails("softsign", "fast").check(late, 0.02) == Checked(
        "softsign does not reach the threshold although fast does",
        None,
        "0 of 3 reached 0.02; 3 not trained to the declared end, without reaching it by update 1450, 1450, 1450; fast: reached by update 850",
    )


def test_seconds_are_compared_on_one_clock_only(sweep: dict[str, Group]) -> None:
    assert Before("fast", ("sigmoid",)).check(sweep, 0.02, "seconds").holds is True
    found = Before("NRU", ("fast",)).check(sweep, 0.02, "seconds")
    assert found.holds is None and "different engine" in found.seen


def test_failing(sweep: dict[str, Group], tmp_path: Path) -> None:
    assert [holds(Fails(name, "fast"), sweep) for name in ("softsign", "chrono", "sigmoid", "UR")] == [
        True,
        True,
        False,
        None,
    ]
    assert holds(Fails("softsign", "UR"), sweep) is None
    assert holds(Fails("softsign", "chrono"), sweep) is None  # in a training that was too short for everybody
    assert holds(Fails("softsign", "fast"), sweep, None) is None
    for seed in range(4):  # one of four gets there
        write_run(tmp_path / f"f{seed}", "fast", seed)
        write_run(tmp_path / f"s{seed}", "softsign", seed, curve=lambda i, seed=seed: 0.01 if i > 9 and not seed else 1)
    assert holds(Fails("softsign", "fast"), groups_in(tmp_path)) is None


def test_diverging(sweep: dict[str, Group], tmp_path: Path) -> None:
    assert [holds(Diverges(name), sweep) for name in ("chrono", "fast", "UR")] == [True, False, None]
    for seed in range(3):
        write_run(tmp_path / f"{seed}", "NRU", seed, outcome="diverged")
    write_run(tmp_path / "cut", "NRU", 3, outcome=None)
    found = Diverges("NRU").check(groups_in(tmp_path), None)
    assert (found.holds, found.seen) == (
        None,
        "NRU: 3 of 4 runs diverged, 1 not trained to the declared end; best mse of the others 0.0001111",
    )


def test_not_diverging(sweep: dict[str, Group], tmp_path: Path) -> None:
    assert [holds(Stable(name), sweep) for name in ("chrono", "fast", "UR")] == [False, True, None]
    assert Stable("fast").check(sweep, None).seen.startswith("fast: 0 of 3 runs diverged; best mse 0.0")
    for seed, outcome in enumerate(("finished", "finished", "finished", "diverged")):
        write_run(tmp_path / f"{seed}", "NRU", seed, outcome=outcome)
        write_run(tmp_path / f"f{seed}", "fast", seed, outcome=None if seed else "finished")
    groups = groups_in(tmp_path)
    assert [holds(Stable(name), groups) for name in ("NRU", "fast")] == [None, None]  # one diverged; three were cut


SPEECH = "fast is stable on a length of 16,000, where the others diverge"


def _speech(folder: Path, outcomes: dict[str, str | None], seeds: int = 3) -> dict[str, Group]:
    """Groups with the paper's names, whose runs ended so."""
    groups = {}
    for name, outcome in outcomes.items():
        for seed in range(seeds):
            write_run(folder / name / f"{seed}", "sigmoid", seed, outcome=outcome)
        groups[name] = group(name, name, load(folder / name)[0])
    return groups


@pytest.mark.parametrize(
    ("changed", "seeds", "expected"),
    [
        ({}, 3, True),
        ({}, 1, None),
        ({"fast": "diverged"}, 3, False),
        ({"refine": "finished"}, 3, False),
        ({"UR": None}, 3, None),
        ({"fast": None}, 3, None),
    ],
)
def test_fast_is_stable_where_the_others_diverge(
    changed: dict[str, str | None], seeds: int, expected: bool | None, tmp_path: Path
) -> None:
    outcomes = {**dict.fromkeys(("sigmoid", "refine", "UR"), "diverged"), "fast": "finished", **changed}
    groups = _speech(tmp_path, outcomes, seeds)
    found = CHECKS[SPEECH].check(groups, None)
    assert found.what == "fast does not diverge; sigmoid diverges; refine diverges; UR diverges"
    assert found.holds is expected
    del groups["UR"]
    assert CHECKS[SPEECH].check(groups, None).holds is (False if expected is False else None)


def test_time_scales(sweep: dict[str, Group], tmp_path: Path) -> None:
    # 3·1.3³⁰ against 3·1.02³⁰, the same for each seed
    assert holds(LongestTimeScale("fast", ("sigmoid", "refine")), sweep) is True
    assert holds(LongestTimeScale("sigmoid", ("fast", "refine")), sweep) is False
    for name, others in (("fast", ("NRU",)), ("NRU", ("fast",)), ("UR", ("fast",)), ("fast", ("sigmoid", "UR"))):
        assert holds(LongestTimeScale(name, others), sweep) is None
    assert [holds(StaysPut(name), sweep) for name in ("sigmoid", "fast", "NRU", "UR")] == [True, False, None, None]
    assert holds(LongestTimeScale("fast", ("chrono",)), sweep) is None  # it diverged: nobody knows its end
    assert f"{(1.3 / 1.02) ** 30:.0f}"[:2] in LongestTimeScale("fast", ("sigmoid",)).check(sweep, None).seen
    for seed in range(3):  # cut runs have no end
        write_run(tmp_path / f"f{seed}", "fast", seed, outcome=None)
        write_run(tmp_path / f"s{seed}", "sigmoid", seed, outcome=None)
    assert holds(LongestTimeScale("fast", ("sigmoid",)), groups_in(tmp_path)) is None
    assert holds(StaysPut("sigmoid"), groups_in(tmp_path)) is None


def test_time_scales_of_zero_divide_nothing(tmp_path: Path) -> None:
    for seed in range(3):
        for name in ("fast", "sigmoid"):
            write_run(tmp_path / name / f"{seed}", name, seed, evaluations=3)
            path = tmp_path / name / f"{seed}" / "metrics.jsonl"
            path.write_text(re.sub(r'"mean": [\d.]+', '"mean": 0', path.read_text()))
    groups = groups_in(tmp_path)
    assert holds(LongestTimeScale("fast", ("sigmoid",)), groups) is None
    assert holds(StaysPut("fast"), groups) is None


def _parts(claim: Claim) -> list[Claim]:
    return [*_parts(claim.first), *_parts(claim.second)] if isinstance(claim, Both) else [claim]


def test_every_check_is_of_a_sentence_of_the_paper(sweep: dict[str, Group]) -> None:
    sentences = {sentence for experiment in EXPERIMENTS.values() for sentence in experiment.expected}
    assert set(CHECKS) <= sentences
    assert len(CHECKS) >= 7
    for claim in CHECKS.values():
        for part in _parts(claim):
            named = {part.model, *getattr(part, "others", ()), *getattr(part, "pair", ())}  # type: ignore[attr-defined]
            assert {lstm_of(name) for name in named} <= set(MODEL_NAMES)
        claim.check(sweep, 0.02)


def test_every_sentence_of_trained_items_has_a_check() -> None:
    trained = [experiment for experiment in EXPERIMENTS.values() if not experiment.theory]
    assert {sentence for one in trained for sentence in one.expected} == set(CHECKS)


def test_the_rules_state_their_thresholds() -> None:
    rules = " ".join(verdicts.RULES)
    assert (
        "at least 3 seeds" in rules
        and "95 %" in rules
        and "not decided" in rules
        and "stopped after n updates" in rules
    )


def test_our_own_records_claim_no_more_than_they_show() -> None:
    """Softsign on adding was watched for three times the updates of fast; copy shows no difference at this length."""
    runs = [run for run in load(RESULTS)[0] if "/desk/" in run.name]

    def groups(task: str) -> dict[str, Group]:
        names = {run.name.split("/")[2] for run in runs if run.task["name"] == task}
        return {
            name: group(name, name, [run for run in runs if run.name.startswith(f"{task}/desk/{name}/")])
            for name in names
        }

    assert holds(Before("fast", ("sigmoid", "softsign")), groups("adding"), 0.02) is True
    assert holds(Fails("softsign", "fast"), groups("adding"), 0.02) is True
    assert holds(Before("fast", ("sigmoid",)), groups("copy"), 0.99) is None
    assert holds(Before("sigmoid", ("fast",)), groups("copy"), 0.99) is None
