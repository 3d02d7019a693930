"""``gatedrnn timescales``: the time scales of a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from gatedrnn.cli.failure import Failure

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TimeScales:
    """Show the time scales −1/log φ(b) of a saved model, and draw them with --out.

    Checkpoints of gatedrnn train say what model they are. For other weights (safetensors, or what torch.save wrote)
    --cell, --forget-gate and, for the LSTM, --tied or --no-tied say it.
    """

    checkpoint: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of a run, one of its checkpoints, or a file of weights."""
    cell: str | None = None
    """lstm, gru, janet, ugrnn, minimal_rnn, fastgrnn or mgu."""
    tied: bool | None = None
    """LSTM: --tied, the input gate is 1−f, or --no-tied."""
    forget_gate: str | None = None
    """sigmoid, softsign, fast, iterated_fast, polynomial or refine."""
    out: Path | None = None
    """Folder for timescales.json and the drawing; made if it does not exist."""

    def run(self) -> None:
        """Print a table, and write the drawing if there is a folder for it."""
        from gatedrnn.lab.models import spread

        try:
            scales = self._scales()
            spreads = {key: {"units": len(values), **spread(values)} for key, values in scales.items()}
            Console().print(_table(spreads))
            if self.out is not None:
                self._write(self.out, scales, spreads)
        except (ValueError, OSError) as wrong:
            raise Failure(str(wrong)) from wrong

    def _scales(self) -> dict[str, Tensor]:
        """By the name of the layer: l0, l0_reverse, encoder.l0, …"""
        from gatedrnn.lab.models import layers_in, load, read_note, read_tensors
        from gatedrnn.layers import time_scales

        path = weights_file(self.checkpoint)
        note = read_note(path) if path.suffix == ".safetensors" else None
        if note is not None:
            self._check_against(note["model"], path)
            layers = load(path)[0].layers
            return {prefix + key: v for prefix, layer in layers.items() for key, v in time_scales(layer).items()}
        self._check_given(path)
        assert self.cell is not None
        assert self.forget_gate is not None
        found = layers_in(read_tensors(path), self.cell, self.tied, self.forget_gate)
        return {
            f"{prefix}.{key}" if prefix else key: values
            for prefix, layer in found.items()
            for key, values in time_scales(layer).items()
        }

    def _check_against(self, model: dict[str, Any], path: Path) -> None:
        for option in ("cell", "tied", "forget_gate"):
            asked, there = getattr(self, option), model[option]
            if asked is not None and asked != there:
                raise Failure(f"--{option.replace('_', '-')} is {asked}, but {path} says {there}")

    def _check_given(self, path: Path) -> None:
        from gatedrnn.lab.models import Model

        options = {"--cell": self.cell, "--forget-gate": self.forget_gate}
        if self.cell == "lstm":
            options["--tied or --no-tied"] = None if self.tied is None else str(self.tied)
        missing = [option for option, value in options.items() if value is None]
        if missing:
            raise Failure(f"{path} does not say what model it belongs to; missing: {', '.join(missing)}")
        Model(cell=self.cell or "", tied=self.tied, forget_gate=self.forget_gate).check()

    def _write(self, out: Path, scales: dict[str, Tensor], spreads: dict[str, Any]) -> None:
        from gatedrnn.lab.records import write, write_json

        out.mkdir(parents=True, exist_ok=True)
        values = {key: {**spreads[key], "values": scales[key].tolist()} for key in scales}
        write_json(out / "timescales.json", {"checkpoint": str(self.checkpoint), "layers": values})
        for kind, content in _drawn(scales).items():
            write(out / f"timescales.{kind}", content)
        print(f"timescales.json and the drawing are in {out}")


def weights_file(path: Path) -> Path:
    """The file itself, or the weights of a checkpoint, or of the last whole checkpoint of a run."""
    from gatedrnn.lab.records import CHECKPOINTS, read_run, whole_checkpoints

    if path.is_file():
        return path
    if (path / "weights.safetensors").is_file():
        return path / "weights.safetensors"
    if not (path / "options.json").is_file():
        raise ValueError(f"{path} is neither a file nor the folder of a run or checkpoint")
    options = read_run(path).options
    whole, damaged = whole_checkpoints(path, [options["key"], *options.get("extends", [])])
    for folder, wrong in damaged.items():
        text = f"skipped checkpoint {folder.name}: {wrong}"
        Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
    if not whole:
        raise ValueError(f"{path} has no checkpoint yet")
    return path / CHECKPOINTS / f"{whole[0].update:08d}" / "weights.safetensors"


def _table(spreads: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    levels = list(next(iter(spreads.values()))["quantiles"])
    for column in ("layer", "units", "mean", "std", *(f"{float(level):.0%}" for level in levels)):
        table.add_column(column, justify="left" if column == "layer" else "right")
    for key, found in spreads.items():
        numbers = [found["mean"], found["std"], *found["quantiles"].values()]
        table.add_row(key, str(found["units"]), *(f"{number:.4g}" for number in numbers))
    return table


def _drawn(scales: dict[str, Tensor]) -> dict[str, bytes]:
    """A histogram for each layer over one logarithmic axis, with the median and the middle half."""
    from gatedrnn.theory.canvas import new_figure, render

    def draw() -> Any:
        figure, axes = new_figure(len(scales), 1, (7.0, 1.2 + 2.0 * len(scales)))
        finite = [values[values.isfinite()].double() for values in scales.values()]
        low = min((float(v.min()) for v in finite if len(v)), default=1.0) / 1.2
        high = max((float(v.max()) for v in finite if len(v)), default=10.0) * 1.2
        bins = [low * (high / low) ** (i / 40) for i in range(41)]
        for ax, key, values in zip(axes, scales, finite, strict=True):
            infinite = len(scales[key]) - len(values)
            ax.hist(values.tolist(), bins=bins, color="#C1121F", alpha=0.85)
            if len(values):
                q25, q50, q75 = values.quantile(values.new_tensor([0.25, 0.5, 0.75])).tolist()
                ax.axvspan(q25, q75, color="#E4E4E4", zorder=0)
                ax.axvline(q50, color="#333333", linestyle="--")
            ax.set_xscale("log")
            ax.set_xlim(low, high)
            ax.set_ylabel("units")
            ax.set_title(f"{key}: {len(scales[key])} units" + (f", {infinite} beyond all bounds" if infinite else ""))
        axes[-1].set_xlabel("time scale −1/log φ(b), in steps; dashed: median, grey: middle half")
        return figure

    return render(draw)
