"""Reading runs: what is damaged becomes a warning, and a copy is not a seed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import load
from tests.lab.report.records import declare, mse, write_run


def test_what_a_run_says(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 3, evaluations=5, threads=1)
    write_run(tmp_path / "b", "fast", 4, evaluations=5, outcome="diverged", engine="reference: a loop")
    write_run(tmp_path / "c", "fast", 5, evaluations=30, outcome=None)
    write_run(tmp_path / "d", "fast", 6, evaluations=5, outcome="budget_spent")
    (one, two, three, four), warnings = load(tmp_path)
    assert warnings == []
    assert (one.name, one.seed, one.measure) == ("a", 3, Measure("mse", lower_is_better=True))
    assert one.clock == "cpu engine, 1 thread, test processor"
    assert two.clock == "reference engine, 2 threads, test processor"
    assert [run.ended for run in (one, two, three, four)] == [
        "finished",
        "diverged at update 207",
        "unfinished at update 1450",
        "time budget spent at update 200",
    ]
    assert [run.complete for run in (one, two, three, four)] == [True, True, False, False]
    assert two.value("final") is None
    assert three.value("final") == three.value("best") == mse("fast", 5, 29)  # so far


def test_damaged_runs_are_named_and_the_others_read(tmp_path: Path) -> None:
    for name in ("good", "torn", "garbled", "newer", "foreign", "odd"):
        write_run(tmp_path / name, "fast", 0, key=name)
    with (tmp_path / "torn" / "metrics.jsonl").open("a") as file:
        file.write('{"update": 99')
    (tmp_path / "garbled" / "options.json").write_text("{")
    for name, change in (("newer", {"schema": 99}), ("odd", {"training": {"seed": "x"}})):
        path = tmp_path / name / "options.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    path = tmp_path / "foreign" / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "key": "another"}))
    runs, warnings = load(tmp_path)
    assert [run.name for run in runs] == ["good", "torn"]
    assert [len(run.metrics) for run in runs] == [31, 31]
    told = {warning.partition(":")[0]: warning for warning in warnings}
    assert set(told) == {"torn", "garbled", "newer", "foreign", "odd"}
    assert "line 32" in told["torn"]
    assert "99" in told["newer"]
    assert "keys differ" in told["foreign"]
    assert "training.seed" in told["odd"]
    assert str(tmp_path) not in "".join(warnings)  # the same text wherever the runs lie


def test_a_line_that_is_no_evaluation_is_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, evaluations=3)
    with (tmp_path / "a" / "metrics.jsonl").open("a") as file:
        file.write(
            '[1]\n{"update": 150, "seconds": null, "mse": 1}\n{"seconds": 1.0}\n{"update": 200, "seconds": 4.0, "mse": NaN}\n'
        )
    (run,), (warning,) = load(tmp_path)
    assert [line["update"] for line in run.metrics] == [0, 50, 100, 200]
    assert warning == "a: metrics.jsonl, line 4: not an evaluation with update and seconds; skipped (and 2 more)"


def test_a_copy_counts_once_as_far_as_it_got(tmp_path: Path) -> None:
    write_run(tmp_path / "b_half", "fast", 0, evaluations=10, outcome=None)
    write_run(tmp_path / "c_whole", "fast", 0)
    shutil.copytree(tmp_path / "c_whole", tmp_path / "d_copy")
    (run,), warnings = load(tmp_path)
    assert run.name == "c_whole"
    assert warnings == [
        "b_half: the same run as c_whole; counted once",
        "d_copy: the same run as c_whole; counted once",
    ]


def _with_fingerprint(folder: Path, digest: str) -> None:
    path = folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": {"train": digest}}))


def test_the_same_options_on_different_data_are_different_runs(tmp_path: Path) -> None:
    for name, digest in (("a", "1f"), ("b", "2f"), ("c", "1f")):
        write_run(tmp_path / name, "fast", 0)
        _with_fingerprint(tmp_path / name, digest)
    runs, warnings = load(tmp_path)
    assert [(run.name, run.fingerprint) for run in runs] == [("a", {"train": "1f"}), ("b", {"train": "2f"})]
    assert warnings == ["c: the same run as a; counted once"]


def test_different_results_with_the_same_options_are_no_copies(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0)
    write_run(tmp_path / "b", "fast", 0, curve=lambda i: 0.5)
    write_run(tmp_path / "c", "fast", 0, evaluations=3, outcome=None, curve=lambda i: 0.5)  # a copy of b
    runs, warnings = load(tmp_path)
    assert [run.name for run in runs] == ["a", "b"]
    assert warnings == [
        "b: the same options as a, but different results; both are counted",
        "c: the same run as b; counted once",
    ]


def test_different_results_are_named_wherever_the_sweeps_run_lies(tmp_path: Path) -> None:
    for declared in "ab":
        root = tmp_path / declared
        write_run(root / "a", "fast", 0)
        write_run(root / "b", "fast", 0, curve=lambda i: 0.5)
        declare(root / declared, "adding", "desk", "fast")
        runs, warnings = load(root)
        assert [run.name for run in runs] == ["a", "b"]
        assert warnings == ["b: the same options as a, but different results; both are counted"]


def test_a_place_of_a_sweep_has_one_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, key="first", evaluations=5)
    write_run(tmp_path / "b", "fast", 0, key="longer", evaluations=9)
    write_run(tmp_path / "c", "fast", 0, key="other", evaluations=7, curve=lambda i: 0.5)
    write_run(tmp_path / "d", "fast", 0, key="longer", evaluations=9, curve=lambda i: 0.4)
    for name in "abcd":
        declare(tmp_path / name, "adding", "desk", "fast")
    runs, warnings = load(tmp_path)
    assert [run.name for run in runs] == ["b"]
    assert warnings == [
        "a: the same run as b; counted once",
        "d: declared as the same run as b, but with different results; not counted",
        "c: declared as the same run as b, but with different options; not counted",
    ]


def test_what_stopped_at_its_own_patience_is_complete(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, outcome="stopped_early")
    (run,) = load(tmp_path)[0]
    assert (run.ended, run.complete) == ("stopped early", True)


def test_a_run_that_is_declared_at_two_budgets_counts_at_both(tmp_path: Path) -> None:
    for budget in ("paper", "desk"):
        write_run(tmp_path / budget, "fast", 0, key="same")
        declare(tmp_path / budget, "tones", budget, "fast")
    write_run(tmp_path / "undeclared", "fast", 0, key="same")
    runs, warnings = load(tmp_path)
    assert [run.name for run in runs] == ["desk", "paper"]
    assert warnings == ["undeclared: the same run as desk; counted once"]
