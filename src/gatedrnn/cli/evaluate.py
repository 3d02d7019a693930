"""``gatedrnn evaluate``: a trained model on the test data of its task."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Table
from rich.text import Text

from gatedrnn.cli.failure import Failure, as_option, code_of
from gatedrnn.cli.own_task import is_fault_in_task, load_task
from gatedrnn.cli.progress import console_of
from gatedrnn.cli.streams import printable

if TYPE_CHECKING:
    from gatedrnn.lab.analysis.bootstrap import Estimate
    from gatedrnn.lab.training import Trained

_LARGE = 1e6  # from here on in scientific notation: nobody reads all the digits of a diverged model's perplexity


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained model on the test or validation data of its task.

    The weights are those of the best validation. Tasks without test data (adding, copy, tones) are evaluated on
    validation data, with the last weights.

    Perplexities are shown by the frequency of the word, with intervals from a bootstrap over blocks of 1,000 words.
    """

    checkpoint: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of a run, or one of its checkpoints."""
    split: Literal["test", "validation"] | None = None
    """What to evaluate on. (default: test, or validation if the task has no test data)"""
    against: Path | None = None
    """Language models: a second run or checkpoint to compare with, word by word. (default: none)"""
    data: str | None = None
    """Folder with the data set. (default: that of the run, else the environment variable GATEDRNN_DATA, else
    gatedrnn/data in the user's cache)"""
    frequencies: str | None = None
    """Language models: where the words are counted: train (the training text) or all (all three files).
    (default: as in the run)"""
    task: Path | None = None
    """Python file of a custom task. (default: none)"""
    out: Path | None = None
    """File for the results as JSON; its folder is created if it does not exist. (default: none)"""

    def run(self) -> None:
        """Print a table, and write the file if there is one to write."""
        from gatedrnn.files import check_folder

        try:
            if self.out is not None:
                check_folder(self.out.parent)
                if self.out.is_dir():
                    raise Failure(f"--out must be a file, but {self.out} is a folder")
            found = self._evaluated(self.checkpoint)
            other = None if self.against is None else self._evaluated(self.against)
            if other is not None and not all("blocks" in results for results in (found, other)):
                raise Failure("--against is for language models on test data")
        except (ValueError, OSError) as why:
            if is_fault_in_task(why):
                raise
            text = as_option(why, self) if isinstance(why, ValueError) else str(why)
            raise Failure(text, several_lines="\n" in text) from why
        # An error of the output is not one of the arguments.
        console_of("stdout").print(_table(found, other), crop=False)
        print(_said(found), flush=True)
        if self.out is not None:
            self._write(self.out, found if other is None else {**found, "against": other})
            print(f"the results are in {self.out}")

    def _write(self, out: Path, results: dict[str, Any]) -> None:
        from gatedrnn.lab.records import write_json

        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_json(out, results)
        except OSError as why:
            raise Failure(f"cannot write to {out}: {why}", code=code_of(why)) from why

    def _evaluated(self, path: Path) -> dict[str, Any]:
        from gatedrnn.lab.training.evaluation import Evaluation

        trained = opened(path, self.task, data=self.data, frequencies=self.frequencies)
        run = trained.run
        evaluation = Evaluation(run.task, run.training)
        split = self.split or ("test" if evaluation.has_test else "validation")
        if split == "test" and not evaluation.has_test:
            raise Failure(f"the task {run.task.name} has no test data; use --split validation")
        measured = evaluation(split, trained.network)
        return {
            "checkpoint": printable(str(path)),
            "task": run.task.name,
            "split": split,
            "metric": run.task.metric,
            "dropped": evaluation.dropped(split),
            **measured,
        }


def opened(path: Path, own_task: Path | None = None, **changed: object) -> Trained:
    """The trained network; prints a warning for each damaged checkpoint, and for a device that is not available."""
    from gatedrnn.lab.data import DataError
    from gatedrnn.lab.tasks import TASKS
    from gatedrnn.lab.training import UnknownTaskError, open_trained

    own = {} if own_task is None else {(kind := load_task(own_task)).name: kind}
    try:
        trained = open_trained(path, {**TASKS, **own}, **changed)
    except UnknownTaskError as unknown:
        raise Failure(f"{unknown}; for a custom task, pass its file with --task") from unknown
    except DataError as unread:
        raise Failure(f"{unread}{_hint(unread)}", several_lines="\n" in str(unread)) from unread
    for folder, wrong in trained.damaged.items():
        print(f"warning: {printable(f'skipped checkpoint {folder.name}: {wrong}')}", file=sys.stderr)
    if trained.trained_on != (device := trained.run.training.device):
        print(f"warning: the device {printable(trained.trained_on)} is not available; using {device}", file=sys.stderr)
    return trained


def _hint(wrong: ValueError) -> str:
    """What to do about a file that the options of the run name from another folder."""
    missing = wrong.__cause__
    if not isinstance(missing, FileNotFoundError) or os.path.isabs(missing.filename or os.sep):
        return ""
    return "; a relative path is relative to the folder in which the run was trained: run the command there"


def _table(found: dict[str, Any], other: dict[str, Any] | None) -> Table:
    headings, rows = _cells(found, other)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(Text(printable(f"{found['task']}, {found['split']}")), overflow="fold")
    for heading, *numbers in zip(headings, *rows.values(), strict=True):
        # Where the terminal is narrow, rich would cut a number, and the rest would look like another one.
        table.add_column(Text(printable(heading)), justify="right", overflow="fold", min_width=max(map(len, numbers)))
    for name, cells in rows.items():
        table.add_row(Text(name), *cells)
    return table


def _cells(found: dict[str, Any], other: dict[str, Any] | None) -> tuple[list[str], dict[str, list[str]]]:
    """The headings of the columns of numbers, and the rows of the table by name."""
    from gatedrnn.lab.analysis.bootstrap import perplexities, ratios

    if "bins" not in found:
        names = list(dict.fromkeys((found["metric"], "loss")))
        return names, {found["checkpoint"]: [f"{found[name]:.4g}" for name in names]}
    if "blocks" not in found:
        values = {**found["bins"], "all": found["perplexity"]}
        return ["perplexity"], {name: [_number(value)] for name, value in values.items()}
    headings, rows = ["perplexity", "95 % interval"], {}
    compared = None if other is None else (perplexities(other["blocks"]), ratios(found["blocks"], other["blocks"]))
    if compared is not None:
        headings += ["other model", "ratio", "95 % interval"]
    for name, estimate in perplexities(found["blocks"]).items():
        rows[name] = ["–", "–"] if estimate is None else [_number(estimate.value), _interval(estimate)]
        if compared is not None:
            theirs, ratio = compared[0][name], compared[1][name]
            rows[name] += ["–"] * 3 if theirs is None or ratio is None else [_number(theirs.value), *_ratio(ratio)]
    return headings, rows


def _said(found: dict[str, Any]) -> str:
    text = []
    if "blocks" in found:
        sums = found["blocks"]["sums"]
        targets = sum(sum(sums[name]) for name in sums if name.startswith("targets "))
        text.append(f"{targets:,.0f} words; the first word of the text is not predicted.")
    if found["dropped"]:
        text.append(f"{found['dropped']} words are not evaluated, because pieces of the text are read in parallel.")
    return " ".join(text) or "Mean over all samples."


def _number(value: float | None, decimals: int = 2) -> str:
    if value is None:
        return "–"
    return f"{value:.{decimals}f}" if abs(value) < _LARGE else f"{value:.4g}"


def _interval(found: Estimate, decimals: int = 2) -> str:
    if found.low is None or found.high is None:  # too short a text
        return "–"
    return f"{_number(found.low, decimals)} … {_number(found.high, decimals)}"


def _ratio(found: Estimate) -> list[str]:
    return [_number(found.value, 4), _interval(found, 4)]
