"""TensorBoard events, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def events(wanted: bool, out: Path, update: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes one line of the metrics as events. Events after ``update`` are discarded."""
    if not wanted:
        yield lambda metrics: None
        return
    from torch.utils.tensorboard import SummaryWriter  # here, not above: the package tensorboard is not in the extra

    with SummaryWriter(str(out / "tensorboard"), purge_step=update + 1) as writer:

        def write(metrics: dict[str, Any]) -> None:
            for name, value in metrics.items():
                if name != "update" and isinstance(value, float):
                    writer.add_scalar(name, value, metrics["update"])
            for layer, spread in metrics.get("time_scales", {}).items():
                if spread["mean"] is not None:
                    writer.add_scalar(f"time_scale/{layer}", spread["mean"], metrics["update"])
            writer.flush()

        yield write
