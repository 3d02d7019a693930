"""The example on time series: its reader of .ts files, its results, and the page about them."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "classify_time_series.py"
example = runpy.run_path(str(EXAMPLE))

GOOD = "#about\n@problemName Small\n@classLabel true a b\n@data\n1,2.5,-3e-1:a\n4,5:b\n"


def _written(folder: Path, train: str = GOOD, test: str = GOOD) -> Path:
    for part, text in (("TRAIN", train), ("TEST", test)):
        (folder / f"Small_{part}.ts").write_text(text)
    return folder


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *map(str, arguments)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def test_series_of_different_lengths_are_read(tmp_path: Path) -> None:
    series, labels = example["read_ts"](_written(tmp_path) / "Small_TRAIN.ts")
    assert labels == ["a", "b"]
    assert [one.tolist() for one in series] == [[[1.0], [2.5], [pytest.approx(-0.3)]], [[4.0], [5.0]]]


def test_channels_are_read(tmp_path: Path) -> None:
    series, _ = example["read_ts"](_written(tmp_path, "@data\n1,2:3,4:a\n") / "Small_TRAIN.ts")
    assert series[0].tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no series"),
        (GOOD.replace("@data\n", ""), "no series"),
        ("@data\n", "no series"),
        ("@data\n1,2:a\n1,2", "line 3: .*no class label"),
        ("@data\n1,2:a\n1,2:", "line 3: .*no class label"),
        ("@data\n1,2\n", "line 2: .*no class label"),
        ("@data\n1,2:a\n\n1,2:a\n", "line 3: .*no class label"),
        ("@data\n1,2:a\n1,2:3,4:a\n", "line 3: .*channels"),
        ("@data\n1,2:3:a\n", "line 2: "),
        ("@data\n1,x:a\n", "line 2: could not convert string to float: 'x'"),
        ("@data\n1,,2:a\n", "line 2: could not convert"),
        ("@data\n:a\n", "line 2: could not convert"),
        ("@data\n1,?:a\n", "line 2: could not convert"),
        ("@data\n1,NaN:a\n", "line 2: missing and infinite"),
        ("@data\n1,1e39:a\n", "line 2: missing and infinite"),
    ],
)
def test_a_damaged_file_is_refused_with_one_line(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=rf"^error: .*Small_TEST\.ts.*{message}[^\n]*$"):
        _main(monkeypatch, "--data", _written(tmp_path, test=text), "--out", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_what_is_missing_or_does_not_fit_is_refused_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=r"^error: .*expected one file NAME_TRAIN\.ts[^\n]*found 0$"):
        _main(monkeypatch, "--data", tmp_path / "nowhere")
    with pytest.raises(SystemExit, match=r"^error: .*classes that Small_TRAIN\.ts does not have: c$"):
        _main(monkeypatch, "--data", _written(tmp_path, test="@data\n1:c\n"))
    with pytest.raises(SystemExit, match=r"^error: .*2 channels, Small_TRAIN\.ts has 1$"):
        _main(monkeypatch, "--data", _written(tmp_path, test="@data\n1:2:a\n"))
    (tmp_path / "Small_TRAIN.ts").write_bytes(b"\xff\xfe@data\n")
    with pytest.raises(SystemExit, match=r"^error: .*utf-8[^\n]*$"):
        _main(monkeypatch, "--data", tmp_path)
    (tmp_path / "Small_TEST.ts").unlink()
    (tmp_path / "Small_TRAIN.ts").write_text(GOOD)
    with pytest.raises(SystemExit, match=r"^error: .*No such file[^\n]*Small_TEST\.ts'$"):
        _main(monkeypatch, "--data", tmp_path)


def test_numbers_for_scaling_are_those_of_the_train_part() -> None:
    part = example["Part"]
    train = part([torch.tensor([[0.001], [2.0], [300.0]]), torch.tensor([[-5.0]])], torch.tensor([0, 1]))
    test = part([torch.tensor([[2.0]])], torch.tensor([0]))
    scaled, alone = example["scaled"](train, test)
    values = torch.cat(scaled.series)
    torch.testing.assert_close(values.mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    torch.testing.assert_close(values.std(), torch.tensor(1.0))
    torch.testing.assert_close(alone.series[0][0], scaled.series[0][1])


def test_the_split_takes_a_share_of_each_class_and_loses_nothing() -> None:
    part = example["Part"]([torch.full((1, 1), float(i)) for i in range(50)], torch.arange(50) // 10)
    kept, taken = example["split"](part, 0.2)
    assert kept.classes.bincount().tolist() == [8] * 5 and taken.classes.bincount().tolist() == [2] * 5
    values = [one.item() for half in (kept, taken) for one in half.series]
    assert sorted(values) == list(range(50))


def test_the_output_is_that_of_the_last_step_before_the_padding() -> None:
    torch.manual_seed(0)
    series = [torch.randn(5, 1), torch.randn(9, 1)]
    for make in example["MODELS"].values():
        model = example["Classifier"](make(1, 4, 10.0), 4, 3)
        torch.testing.assert_close(model(series), torch.cat([model([one]) for one in series]))


def test_it_runs_resumes_and_refuses_results_of_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    _main(monkeypatch, "--seeds", 1, "--out", out)
    first = json.loads(out.read_text())
    assert [one["model"] for one in first["runs"]] == list(example["MODELS"])
    for one in first["runs"]:
        assert len(one["validation_accuracies"]) == len(one["train_losses"]) == first["settings"]["epochs"]
        assert one["validation"] == max(one["validation_accuracies"])
        assert one["validation_accuracies"].index(one["validation"]) == one["epoch"] - 1
        assert 0 <= one["test"] <= 1
    capsys.readouterr()
    interrupted = {**first, "runs": first["runs"][:2]}
    out.write_text(json.dumps(interrupted))
    _main(monkeypatch, "--seeds", 1, "--out", out)
    assert json.loads(out.read_text()) == first
    shown = capsys.readouterr().out
    assert "sigmoid, Chrono, seed" not in shown and "torch.nn.LSTM, seed 0" in shown
    assert example["table"](first["runs"]) in shown
    out.write_text(json.dumps({**first, "settings": {**first["settings"], "lr": 1.0}}))
    with pytest.raises(SystemExit, match="^error: .*other data, settings or torch"):
        _main(monkeypatch, "--seeds", 1, "--out", out)
    with pytest.raises(SystemExit, match="^error: --seeds must be at least 1, got 0$"):
        _main(monkeypatch, "--seeds", 0)
    with pytest.raises(SystemExit, match="^error: .*the folder does not exist; create it first$"):
        _main(monkeypatch, "--out", tmp_path / "nowhere" / "out.json")
    out.write_text("{")
    with pytest.raises(SystemExit, match="^error: .*damaged"):
        _main(monkeypatch, "--seeds", 1, "--out", out)


def test_the_table_has_mean_and_standard_deviation() -> None:
    runs: list[dict[str, Any]] = [
        {"model": "fast, Chrono", "seed": seed, "epoch": 10 * seed, "validation": 0.5, "test": test}
        for seed, test in ((1, 0.4), (2, 0.6))
    ]
    assert example["table"](runs).splitlines()[2:] == ["| fast, Chrono | 2 | 0.500 ± 0.000 | 0.500 ± 0.141 | 15 ± 7 |"]


def test_the_page_is_made_from_the_results() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "time_series.py"))
    page = (ROOT / "docs" / "time_series.md").read_text()
    assert made["with_blocks"](page) == page
    results = json.loads(made["RESULTS"].read_text())
    assert results["settings"] == example["asdict"](example["Settings"]())
    for one in results["runs"]:
        assert len(one["validation_accuracies"]) == results["settings"]["epochs"]
        assert one["validation"] == max(one["validation_accuracies"])


def test_the_page_says_higher_only_where_the_interval_is_above_zero() -> None:
    said = runpy.run_path(str(ROOT / "docs" / "time_series.py"))["said"]
    assert said([0.1]) == ["", "", "", "", "too few seeds"]
    # The 0.975 quantile of Student's t with 2 degrees of freedom is 4.3027: 0.2 ± 4.3027·0.1/√3.
    assert said([0.1, 0.2, 0.3]) == ["+0.200", "-0.048 … +0.448", "3 of 3", "p = 0.25", "not certain"]
    assert said([0.2, 0.21, 0.22])[-1] == "higher"
    assert said([-0.2, -0.21, -0.22])[-1] == "lower"
    assert said([0.0, 0.0])[2:] == ["0 of 2", "p = 1.00", "not certain"]
