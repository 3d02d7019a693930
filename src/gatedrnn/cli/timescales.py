"""``gatedrnn timescales``: the time scales of a saved model."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from gatedrnn.cli.evaluate import opened
from gatedrnn.cli.failure import Failure, as_option, code_of
from gatedrnn.cli.progress import console_of
from gatedrnn.cli.streams import printable

if TYPE_CHECKING:
    from torch import Tensor

    from gatedrnn.lab.models import ModelOptions, Network

_LEAST_NAME = 12  # characters of a layer's name that stay in one line on a narrow terminal


@dataclass(frozen=True)
class TimeScales:
    """Show the time scales −1/log φ(b) of a saved model, and plot them with --out.

    For a run of gatedrnn train, −1/mean log f measured on its validation data is shown too.

    Checkpoints of gatedrnn train name their model. Other weights (safetensors, or files of torch.save) need --cell,
    --forget-gate and, for the LSTM, --tied or --no-tied.
    """

    checkpoint: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of a run, one of its checkpoints, or a file of weights."""
    cell: str | None = None
    """lstm, gru, janet, ugrnn, minimal_rnn, fastgrnn or mgu. (default: as in the checkpoint)"""
    tied: bool | None = None
    """LSTM: whether the input gate is 1−f. (default: as in the checkpoint)"""
    forget_gate: str | None = None
    """sigmoid, softsign, fast, iterated_fast, polynomial or refine. (default: as in the checkpoint)"""
    measure: bool = True
    """Also measure on data, if the checkpoint names its task."""
    data: str | None = None
    """Folder with the data set. (default: that of the run, else the environment variable GATEDRNN_DATA, else
    gatedrnn/data in the user's cache)"""
    task: Path | None = None
    """Python file of a custom task. (default: none)"""
    out: Path | None = None
    """Folder for timescales.json and the plot; created if it does not exist. (default: none)"""

    def run(self) -> None:
        """Print a table, and write the plot if a folder is given."""
        from gatedrnn.files import check_folder
        from gatedrnn.lab.models import spread

        try:
            if self.out is not None:
                check_folder(self.out)
            scales, measured = self._scales()
            for key, values in scales.items():
                if wrong := int(values.isnan().sum()):
                    raise ValueError(f"the forget biases of {wrong} of the {len(values)} units of {key} are NaN")
            spreads, on_data = (
                {
                    key: {"units": len(values), "infinite": int(values.isinf().sum()), **spread(values)}
                    for key, values in found.items()
                }
                for found in (scales, measured)
            )
            console = console_of("stdout")
            console.print(_table(spreads, "from the bias"), crop=False)
            if measured:
                console.print()
                console.print(_table(on_data, "measured on data"), crop=False)
            if self.out is not None:
                self._write(self.out, scales, spreads, measured, on_data)
        except (ValueError, OSError) as why:
            raise Failure(str(why), code=code_of(why)) from why

    def _scales(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """From the biases and, if there is data, measured, by the name of the layer: l0, l0_reverse, encoder.l0, …"""
        while True:
            path = weights_file(self.checkpoint)
            try:
                return self._scales_in(path)
            except (ValueError, OSError):
                if path.is_file():
                    raise  # else later checkpoints of a run that is training have replaced it

    def _scales_in(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        from gatedrnn.lab.models import layers_in, load, read_note, read_weights
        from gatedrnn.layers import time_scales

        note = read_note(path) if path.suffix == ".safetensors" else None
        if note is not None:
            network, model = load(path)
            self._check_against(model, path)
            of_bias = {p + key: v for p, layer in network.layers.items() for key, v in time_scales(layer).items()}
            return of_bias, self._measured(network, path) if self.measure else {}
        self._check_given(path)
        assert self.cell is not None
        assert self.forget_gate is not None
        found = layers_in(read_weights(path), self.cell, self.tied, self.forget_gate)
        return {
            f"{prefix}.{key}" if prefix else key: values
            for prefix, layer in found.items()
            for key, values in time_scales(layer).items()
        }, {}

    def _measured(self, network: Network, path: Path) -> dict[str, Tensor]:
        """On the first validation data of the run; empty, with a warning, if there is none."""
        from gatedrnn.lab.models import measured_time_scales
        from gatedrnn.lab.records import CHECKPOINTS, OPTIONS_FILE
        from gatedrnn.lab.training.evaluation import Evaluation

        path = path.resolve()  # relative to the folder of the checkpoints, it would not name them
        folder = path.parent.parent.parent
        if path.parent.parent.name != CHECKPOINTS or not (folder / OPTIONS_FILE).is_file():
            return {}
        try:
            run = opened(path.parent, self.task, data=self.data).run
            batch = Evaluation(run.task, run.training).sample("validation", network)
            found = measured_time_scales(network, batch.input, batch.lengths)
        except (Failure, ValueError, OSError) as why:
            if not path.is_file():
                raise FileNotFoundError(f"{path} was removed") from why
            lines = f"not measured on data: {why}".splitlines()
            print("warning:", "\n".join(map(printable, lines)), file=sys.stderr)
            return {}
        return {key: mean for key, (mean, _) in found.items()}

    def _check_against(self, model: ModelOptions, path: Path) -> None:
        for option in ("cell", "tied", "forget_gate"):
            asked, there = getattr(self, option), getattr(model, option, None)
            if asked is not None and asked != there:
                raise Failure(f"--{option.replace('_', '-')} is {asked}, but the model in {path} has {there}")

    def _check_given(self, path: Path) -> None:
        from gatedrnn.lab.models import Model

        options = {"--cell": self.cell, "--forget-gate": self.forget_gate}
        if self.cell == "lstm":
            options["--tied or --no-tied"] = None if self.tied is None else str(self.tied)
        missing = [option for option, value in options.items() if value is None]
        if missing:
            raise Failure(f"{path} does not name its model; missing: {', '.join(missing)}")
        model = Model(cell=self.cell or "", tied=self.tied, forget_gate=self.forget_gate)
        try:
            model.check()
        except ValueError as wrong:
            raise Failure(as_option(wrong, model)) from wrong

    def _write(
        self,
        out: Path,
        scales: dict[str, Tensor],
        spreads: dict[str, Any],
        measured: dict[str, Tensor],
        on_data: dict[str, Any],
    ) -> None:
        from gatedrnn.files import write
        from gatedrnn.lab.records import write_json

        out.mkdir(parents=True, exist_ok=True)
        values = {key: {**spreads[key], "values": scales[key].tolist()} for key in scales}
        for key, found in measured.items():
            values[key]["measured"] = {**on_data[key], "values": found.tolist()}
        write_json(out / "timescales.json", {"checkpoint": printable(str(self.checkpoint)), "layers": values})
        for kind, content in _drawn(scales, measured).items():
            write(out / f"timescales.{kind}", content)
        print(f"timescales.json and the plot are in {out}")


def weights_file(path: Path) -> Path:
    """The file itself, or the weights of a checkpoint, or of the last whole checkpoint of a run."""
    from gatedrnn.lab.records import (
        CHECKPOINTS,
        OPTIONS_FILE,
        RUN_KIND,
        check_schema,
        last_checkpoint,
        read_json,
    )

    if path.is_file():
        if not path.stat().st_size:
            raise ValueError(f"{path} is empty")
        return path
    if found := _weights_in(path):
        return found
    if not (path / OPTIONS_FILE).is_file():
        raise ValueError(f"{path} is neither a file nor the folder of a run or checkpoint")
    options = read_json(path / OPTIONS_FILE)
    check_schema(options, RUN_KIND, path / OPTIONS_FILE)
    extends = options.get("extends", [])
    if not isinstance(options.get("key"), str) or not isinstance(extends, list):
        raise ValueError(f"{path / OPTIONS_FILE} is damaged: it has no key")
    checkpoint, damaged = last_checkpoint(path, [options["key"], *extends])
    for folder, wrong in damaged.items():
        print(f"warning: {printable(f'skipped checkpoint {folder.name}: {wrong}')}", file=sys.stderr)
    # If the run is training, later checkpoints may have replaced it.
    return _weights_in(path / CHECKPOINTS / f"{checkpoint.update:08d}") or weights_file(path)


def _weights_in(folder: Path) -> Path | None:
    """The weights that were evaluated, in the folder of a checkpoint; None if it is none."""
    from gatedrnn.lab.training.state import AVERAGES_FILE, WEIGHTS_FILE

    return next((folder / name for name in (AVERAGES_FILE, WEIGHTS_FILE) if (folder / name).is_file()), None)


def _table(spreads: dict[str, dict[str, Any]], what: str) -> Table:
    levels = list(next(iter(spreads.values()))["quantiles"])
    rows = {printable(key): _cells(found) for key, found in spreads.items()}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(what, overflow="fold", min_width=min(max(map(len, rows)), _LEAST_NAME))
    headings = ("units", "mean", "std", *(f"{float(level):.0%}" for level in levels))
    for heading, *numbers in zip(headings, *rows.values(), strict=True):
        # Where the terminal is narrow, rich would fold a number, and its parts would look like two.
        table.add_column(heading, justify="right", overflow="fold", min_width=max(map(len, numbers)))
    for name, cells in rows.items():
        table.add_row(Text(name), *cells)
    return table


def _cells(found: dict[str, Any]) -> list[str]:
    numbers = [found["mean"], found["std"], *found["quantiles"].values()]
    return [str(found["units"]), *("–" if math.isnan(number) else f"{number:.4g}" for number in numbers)]


def _drawn(scales: dict[str, Tensor], measured: dict[str, Tensor]) -> dict[str, bytes]:
    """Histograms for each layer over one logarithmic axis, with median and interquartile range for the biases."""
    from gatedrnn.theory.canvas import new_figure, render

    def draw() -> Any:
        figure, axes = new_figure(len(scales), 1, (7.0, 1.2 + 2.0 * len(scales)))
        # A logarithmic axis cannot show 0 and infinity.
        finite, on_data = (
            {key: values[values.isfinite() & (values > 0)].double() for key, values in found.items()}
            for found in (scales, measured)
        )
        logs = [math.log10(v) for found in (finite, on_data) for values in found.values() for v in values.tolist()]
        low, high = min(logs, default=0.0) - 0.1, max(logs, default=1.0) + 0.1
        bins = [10 ** (low + (high - low) * i / 40) for i in range(41)]
        for ax, (key, values) in zip(axes, finite.items(), strict=True):
            others = {name: int((scales[key] == end).sum()) for name, end in (("zero", 0.0), ("infinite", math.inf))}
            more = "".join(f", {count} {name}" for name, count in others.items() if count)
            ax.hist(values.tolist(), bins=bins, color="#C1121F", alpha=0.85, label="−1/log φ(b)")
            if key in on_data:
                label = "−1/mean log f on validation data"
                ax.hist(on_data[key].tolist(), bins=bins, histtype="step", color="#1D3557", linewidth=1.6, label=label)
                ax.legend(frameon=False)
            if len(values):
                q25, q50, q75 = values.quantile(values.new_tensor([0.25, 0.5, 0.75])).tolist()
                ax.axvspan(q25, q75, color="#E4E4E4", zorder=0)
                ax.axvline(q50, color="#333333", linestyle="--")
            ax.set_xscale("log")
            ax.set_xlim(bins[0], bins[-1])
            ax.set_ylabel("units")
            ax.set_title(_literal(f"{printable(key)}: {len(scales[key])} units{more}"))
        axes[-1].set_xlabel("time scale in steps; dashed: median of −1/log φ(b), grey: interquartile range")
        return figure

    return render(draw)


def _literal(text: str) -> str:
    """matplotlib would read text between two dollar signs as mathematics."""
    return text.replace("$", r"\$")
