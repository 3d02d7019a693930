"""The table of perplexities by frequency of the word, with intervals, beside the paper's."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import EXPERIMENTS
from gatedrnn.lab.report import make
from gatedrnn.lab.report.items import item_of
from tests.lab.report.records import declare, write_run
from tests.lab.report.test_make import report

BINS = ("over 10,000", "1,000 to 10,000", "100 to 1,000", "under 100")
LOSSES = {"sigmoid": (2.0, 3.5, 5.2, 8.0), "fast": (2.01, 3.45, 5.1, 7.8)}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})


def _test(model: str) -> dict[str, Any]:
    """20 blocks of 100 words, 25 of each bin; a word of every second block costs 0.1 more."""
    sums: dict[str, list[float]] = {}
    for name, loss in zip(BINS, LOSSES[model], strict=True):
        sums[f"loss {name}"] = [25 * (loss + 0.1 * (block % 2)) for block in range(20)]
        sums[f"targets {name}"] = [25] * 20
    sums["loss"] = [sum(sums[f"loss {name}"][block] for name in BINS) for block in range(20)]
    total = sum(sums["loss"]) / 2000
    bins = {name: math.exp(loss + 0.05) for name, loss in zip(BINS, LOSSES[model], strict=True)}
    return {"loss": total, "perplexity": math.exp(total), "bins": bins, "blocks": {"samples": 100, "sums": sums}}


def _write(folder: Path, model: str) -> Path:
    (declared,) = EXPERIMENTS["tab:language_results"].runs("desk", models=[model])
    write_run(folder, model, 0, evaluations=1, task={"name": "ptb"}, key=declared.run.key())
    declare(folder, "ptb", "desk", model, {"task": "ptb"})
    test = _test(model)
    line = {"update": 681, "epoch": 1, "seconds": 9.0, "train_loss": 1.0, "loss": 4.8, "perplexity": 120.0}
    (folder / "metrics.jsonl").write_text(json.dumps({**line, "bins": test["bins"]}) + "\n")
    record = json.loads((folder / "record.json").read_text())
    record |= {"metric": "perplexity", "lower_is_better": True, "metric_unit": None, "metric_scale": "log"}
    record |= {"validation": line, "final": line, "best": line, "test": test, "seconds_an_epoch": 9.0}
    (folder / "record.json").write_text(json.dumps(record))
    return folder / "record.json"


def test_perplexities_by_bin_beside_the_papers(tmp_path: Path) -> None:
    for model in LOSSES:
        _write(tmp_path / "runs" / model, model)
    markdown, _, _ = report(tmp_path, [item_of(EXPERIMENTS["tab:language_results"])])
    (fast,) = [row for row in markdown.splitlines() if row.startswith("| fast | 7.8")]
    cells = [cell.strip() for cell in fast.split("|")[2:-1]]
    expected = [f"{math.exp(loss + 0.05):.4g}" for loss in LOSSES["fast"]]
    total = math.exp(sum(LOSSES["fast"]) / 4 + 0.05)
    assert [cell.split()[0] for cell in cells[:15:3]] == [*expected, f"{total:.4g}"]
    assert cells[1:15:3] == ["7.43", "27.70", "166.68", "1975.51", "60.09"]
    assert cells[15:17] == ["9", "138"]
    # By block the two gates differ by the same factor, whatever the block: the interval of the ratio is a point.
    (ratio,) = [row for row in markdown.splitlines() if row.startswith("| fast | 0 | under 100 |")]
    assert "| 0.8187 | 0.8187 … 0.8188 |" in ratio
    assert "| sigmoid | 0 | all |" in markdown and "NRU: not run" in markdown
    assert "ignored" not in markdown


@pytest.mark.parametrize("damage", [{"under 100": "2000"}, {}, None])
def test_a_missing_bin_is_not_the_perplexity_of_all_words(damage: dict[str, str] | None, tmp_path: Path) -> None:
    for model in LOSSES:
        path = _write(tmp_path / "runs" / model, model)
        if model == "fast":
            record = json.loads(path.read_text())
            record["test"]["bins"] = record["test"]["bins"] | damage if damage else damage
            path.write_text(json.dumps(record))
    markdown, _, _ = report(tmp_path, [item_of(EXPERIMENTS["tab:language_results"])])
    (fast,) = [row for row in markdown.splitlines() if row.startswith("| fast | ") and "| 1975.51 |" in row]
    cells = [cell.strip() for cell in fast.split("|")[2:-1]]
    assert cells[9] == "— (n = 1)"
    assert cells[12].startswith(f"{math.exp(sum(LOSSES['fast']) / 4 + 0.05):.4g} ")


def test_no_ratio_between_runs_of_different_length(tmp_path: Path) -> None:
    for model in LOSSES:
        _write(tmp_path / "runs" / model, model)
    path = tmp_path / "runs" / "sigmoid" / "options.json"
    options = json.loads(path.read_text())
    options["training"]["updates"] = 2043
    path.write_text(json.dumps(options))
    markdown, _, _ = report(tmp_path, [item_of(EXPERIMENTS["tab:language_results"])])
    (ratio,) = [row for row in markdown.splitlines() if row.startswith("| fast | 0 | under 100 |")]
    assert ratio.endswith("| — | — |")


@pytest.mark.parametrize(
    "damage",
    [
        {"sums": {}},
        {"sums": {"loss": [1.0]}},
        {"sums": {"loss": [1.0], "targets x": [1], "loss x": [1.0, 2.0]}},
        {"sums": {"loss": [1.0], "targets x": [0], "loss x": [0.0]}},
        {"sums": {"loss": [-1.0], "targets x": [1], "loss x": ["a"]}},
        "no blocks",
    ],
    ids=str,
)
def test_damaged_blocks_are_left_out(damage: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "runs" / "fast", "fast")
    record = json.loads(path.read_text())
    record["test"]["blocks"] = damage
    path.write_text(json.dumps(record))
    markdown, _, _ = report(tmp_path, [item_of(EXPERIMENTS["tab:language_results"])])
    assert (
        "record.json: test.blocks is" in markdown and "expected sums over blocks of the test data; ignored" in markdown
    )
    assert "| fast | 0 | all |" not in markdown
