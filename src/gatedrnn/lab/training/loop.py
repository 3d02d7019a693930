"""The training loop."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_

from gatedrnn.lab.models import Network, build, time_scale_spread
from gatedrnn.lab.records import RECORD_FILE, write_json
from gatedrnn.lab.training.environment import environment
from gatedrnn.lab.training.evaluation import Evaluation, autocast
from gatedrnn.lab.training.events import events
from gatedrnn.lab.training.folder import claimed, ended_record, write_environment
from gatedrnn.lab.training.optimizer import set_learning_rate
from gatedrnn.lab.training.outcome import make_record, outcome_of
from gatedrnn.lab.training.progress import Progress, Status, ignore
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.schedule import learning_rate
from gatedrnn.lab.training.state import State
from gatedrnn.layers import explain


def train(run: Run, out: str | os.PathLike[str], progress: Progress = ignore) -> dict[str, Any]:
    """Train in the folder ``out`` and return the record: begin, continue to the bits, or report what has ended.

    ``progress`` is called with a Status after each update and each evaluation, and with what is to be said.

    Raises ValueError for options that cannot be, RefusedError if the folder is not this run's, and OSError if it cannot
    be written to; then a later call with the same arguments goes on from the last checkpoint.
    """
    run.check()
    out = Path(out)
    record = ended_record(run, out)
    if record is not None:
        return record
    with _globals_restored():
        network = _network(run)
        _engine(run, network)  # whether it can serve shows before anything is written
        with claimed(run, out) as (run, begun):
            return _train(run, out, network, begun, progress)


def _train(run: Run, out: Path, network: Network, begun: bool, progress: Progress) -> dict[str, Any]:
    task, training = run.task, run.training
    assert training.threads is not None
    torch.set_num_threads(training.threads)
    evaluation = Evaluation(task, training)
    state = State(run, out, network)

    # Continue where a checkpoint is.
    notes = state.restore() if begun else []
    if elsewhere := write_environment(out, environment(_engine(run, network))):
        state.counts.notes.append(elsewhere)
        notes.append(elsewhere)
    if (out / RECORD_FILE).exists():
        notes.append(f"{RECORD_FILE} was damaged and is written anew")
    counts = state.counts
    loss: float | None = None
    lr = training.lr

    def say(evaluated: bool = False, note: str | None = None) -> None:
        last = state.metrics[-1] if state.metrics else None
        rate = counts.update / counts.seconds if counts.seconds else None
        left = None
        if counts.update:
            left = (counts.seconds + counts.seconds_evaluation) / counts.update * (training.updates - counts.update)
        progress(Status(counts.update, training.updates, loss, last, rate, left, evaluated, note))

    def evaluate() -> None:
        begin = time.perf_counter()
        measured: dict[str, Any] = {
            "update": counts.update,
            "seconds": counts.seconds,
            "train_loss": counts.loss_sum / counts.summed if counts.summed else None,
            **evaluation(network),
            "lr": lr,
            "gradient_norm": counts.norm_sum / counts.summed if counts.summed else None,
        }
        if spread := time_scale_spread(network.layer):
            measured["time_scales"] = spread
        counts.loss_sum, counts.norm_sum, counts.summed = 0.0, 0.0, 0
        counts.seconds_evaluation += time.perf_counter() - begin
        state.add_metrics(measured)
        write_events(state.metrics[-1])
        counts.outcome = outcome_of(run, counts, state.metrics[-1])
        if counts.outcome == "diverged":
            counts.diverged_at = counts.update
        say(evaluated=True)

    for note in notes:
        say(note=note)
    with events(training.tensorboard, out, counts.update) as write_events:
        if not state.metrics:
            evaluate()
        saved = time.monotonic()
        while counts.outcome is None:
            begin = time.perf_counter()
            metrics = [measured[task.metric] for measured in state.metrics]
            lr = learning_rate(training, counts.update, metrics, task.lower_is_better)
            set_learning_rate(state.optimizer, lr)

            x, target = task.batch(training.batch_size, state.batches)
            x, target = x.to(training.device), target.to(training.device)
            with autocast(training):
                output = network(x)
            batch_loss = task.loss(output.float(), target)
            state.optimizer.zero_grad()
            batch_loss.backward()
            norm = clip_grad_norm_(state.parameters, training.clip or math.inf, foreach=True)

            # The one place where the loop waits for the device.
            loss, gradient_norm = torch.stack([batch_loss.detach(), norm]).tolist()
            if not (math.isfinite(loss) and math.isfinite(gradient_norm)):
                counts.outcome, counts.diverged_at = "diverged", counts.update + 1
                break
            state.optimizer.step()
            counts.update += 1
            counts.loss_sum += loss
            counts.norm_sum += gradient_norm
            counts.summed += 1
            counts.seconds += time.perf_counter() - begin

            spent = training.budget_seconds is not None and (
                counts.seconds + counts.seconds_evaluation >= training.budget_seconds
            )
            if spent or counts.update == training.updates or counts.update % training.evaluate_every == 0:
                evaluate()
            else:
                say()
            if counts.outcome is None and time.monotonic() - saved >= training.checkpoint_seconds:
                state.save()
                saved = time.monotonic()

    state.save()
    record = make_record(run, counts, state.metrics, network, evaluation.input)
    write_json(out / RECORD_FILE, record)
    return record


@contextmanager
def _globals_restored() -> Iterator[None]:
    """torch's random numbers and threads are afterwards as they were before."""
    generator, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_rng_state(generator)
        torch.set_num_threads(threads)


def _network(run: Run) -> Network:
    """Drawn on the CPU, so that the weights are the same on every device."""
    torch.default_generator.manual_seed(run.training.seed)
    task = run.task
    network = build(run.model, task.input_size, task.output_size, task.last, task.t_max)
    return network.to(run.training.device)


def _engine(run: Run, network: Network) -> str:
    """The line that says which engine runs and why; ValueError if the one asked for cannot."""
    sizes = (run.task.steps, run.training.batch_size, run.task.input_size)
    try:
        with autocast(run.training):
            return explain(network.layer, torch.zeros(sizes, device=run.training.device)).splitlines()[0]
    except RuntimeError as wrong:
        raise ValueError(f"engine must be one that can run this, got {run.model.engine!r}: {wrong}") from None
