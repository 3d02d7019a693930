"""A trained network from the folder of its run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from gatedrnn.lab.models import Network, Sizes, filled
from gatedrnn.lab.records import (
    CHECKPOINTS,
    OPTIONS_FILE,
    Checkpoint,
    SchemaError,
    last_checkpoint,
    read_checkpoint,
    read_json,
)
from gatedrnn.lab.tasks import TASKS, Task
from gatedrnn.lab.training.options import is_usable
from gatedrnn.lab.training.run import Run, UnknownTaskError
from gatedrnn.lab.training.same_data import check_fingerprint
from gatedrnn.lab.training.state import AVERAGES_FILE, BEST_FILE, WEIGHTS_FILE


@dataclass(frozen=True)
class Trained:
    """A run, its network with the weights of the best validation, where these are kept, and what was skipped."""

    run: Run
    network: Network
    #: The update at which the weights were those of the network; None where it is not known.
    update: int | None
    damaged: Mapping[Path, str]
    #: The device of the training; that of the network is the CPU where it cannot be used here.
    trained_on: str


def open_trained(path: Path, tasks: Mapping[str, type[Task]] = TASKS, **changed: object) -> Trained:
    """The network of a run's folder, or of one of its checkpoints. ``changed`` are other options of the task.

    Raises ValueError that names what is missing or damaged, or does not fit to the data that is here now.
    """
    place = path.resolve()  # relative to the folder of the checkpoints, it would not name them
    folder = place.parent.parent if place.parent.name == CHECKPOINTS else path
    if not (folder / OPTIONS_FILE).is_file():
        raise ValueError(f"{path} is neither the folder of a run nor one of its checkpoints")
    options = read_json(folder / OPTIONS_FILE)
    run = _run(options, tasks, folder)
    given = {name: value for name, value in changed.items() if value is not None}
    known = {field.name for field in dataclasses.fields(run.task)}  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise ValueError(f"{name} is not an option of the task {run.task.name}")
    task = dataclasses.replace(run.task, **given)  # type: ignore[type-var]
    trained_on = run.training.device
    device = trained_on if is_usable(trained_on) else "cpu"
    run = dataclasses.replace(
        run, task=task, training=dataclasses.replace(run.training, device=device, tensorboard=False)
    )
    run.check()
    checkpoint, damaged = _checkpoint(path, folder, [options["key"], *options.get("extends", [])])
    # Another text may be evaluated; with other clips, some that were trained on would be test clips.
    made = checkpoint.note.get("data")
    check_fingerprint(task, f"the checkpoint at update {checkpoint.update}", made, "vocabulary", "clips")
    name = next(name for name in (BEST_FILE, AVERAGES_FILE, WEIGHTS_FILE) if name in checkpoint.files)
    network = run.model.build(Sizes(task.input_size, task.output_size, task.last, task.t_max), device="meta")
    try:
        filled(network, safetensors.torch.load(checkpoint.files[name]))
    except ValueError as wrong:
        raise ValueError(f"{path}: its weights do not fit the task {task.name}: {wrong}") from None
    update = None if name == BEST_FILE else checkpoint.update
    return Trained(run, network.to(device), update, damaged, trained_on)


def _run(options: dict[str, Any], tasks: Mapping[str, type[Task]], folder: Path) -> Run:
    try:
        return Run.from_json(options, tasks=tasks)
    except (UnknownTaskError, SchemaError):
        raise
    except ValueError as wrong:
        what = "gatedrnn" if options["task"]["name"] in TASKS else "gatedrnn or of the task"
        raise ValueError(f"another version of {what} may have written {folder / OPTIONS_FILE}: {wrong}") from None


def _checkpoint(path: Path, folder: Path, keys: list[str]) -> tuple[Checkpoint, Mapping[Path, str]]:
    if path != folder:
        return read_checkpoint(path, keys), {}
    return last_checkpoint(folder, keys)
