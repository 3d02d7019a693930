"""The training loop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gatedrnn.lab.models import Network, time_scale_spread
from gatedrnn.lab.records import RECORD_FILE, json_safe
from gatedrnn.lab.tasks import Stream
from gatedrnn.lab.training.beginning import BATCH_SEEDS, engine_of, new_network
from gatedrnn.lab.training.environment import environment
from gatedrnn.lab.training.evaluation import Evaluation
from gatedrnn.lab.training.events import events
from gatedrnn.lab.training.folder import Claim, ended_record, write_environment
from gatedrnn.lab.training.interruption import deferred
from gatedrnn.lab.training.memory import check_memory
from gatedrnn.lab.training.optimizer import averaged, set_learning_rate
from gatedrnn.lab.training.outcome import best_of, make_record, outcome_of
from gatedrnn.lab.training.pace import Pace
from gatedrnn.lab.training.progress import Progress, Status, ignore
from gatedrnn.lab.training.ranks import Ranks, claimed_together, joined
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.same_data import notes_on_ended, sizes_of
from gatedrnn.lab.training.schedule import learning_rate
from gatedrnn.lab.training.stability import stability
from gatedrnn.lab.training.state import State
from gatedrnn.lab.training.step import step


def train(
    run: Run,
    out: str | os.PathLike[str],
    progress: Progress = ignore,
    declared: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train in the folder ``out`` and return the record: start, resume bit-identically, or report a finished run.

    Args:
        run: The task, the model and the options of training.
        out: Folder of the run; created if it does not exist.
        progress: Called with a Status after each update and each evaluation, and for each note.
        declared: Which run of which experiment this is; written to options.json.

    Ctrl-C ends the run after the update under way, with a checkpoint; so does a BrokenPipeError of ``progress``. A run
    that has ended is extended by a larger number of updates or epochs, and one that has spent its time budget by a
    larger budget.

    Raises ValueError for invalid options, RefusedError if the folder contains another run or one that was trained on
    different data, and OSError if it cannot be written to; call it again with the same arguments to resume from the
    last checkpoint.

    Under torchrun its processes train the run together: each takes its rows of every batch, and one of them writes.
    """
    run.check()
    out = Path(out)

    def say(text: str) -> None:
        progress(Status(0, run.training.updates or 0, None, None, None, None, note=text))

    def ended() -> dict[str, Any] | None:
        record = ended_record(run, out)
        for note in () if record is None else notes_on_ended(run.task, record, out, say):
            say(note)
        return record

    with joined(run) as ranks:
        record: dict[str, Any] | None = ranks.first(ended)
        if record is not None:
            return record
        check_memory(run)
        run.task.open(say)
        with _globals_restored():
            network = new_network(run)
            # Errors of the engine or the data are raised before anything is written.
            engine_of(run, network)
            evaluation = Evaluation(run.task, run.training, ranks)
            seed = BATCH_SEEDS + run.training.seed
            ranks.seed_own_generator(seed)
            stream = run.task.stream(run.training.batch_size, seed)
            with claimed_together(ranks, run, out, declared, sizes_of(stream)) as (run, claim):
                return _train(run, claim, ranks, network, stream, evaluation, progress)


def _train(
    run: Run,
    claim: Claim,
    ranks: Ranks,
    network: Network,
    stream: Stream,
    evaluation: Evaluation,
    progress: Progress,
) -> dict[str, Any]:
    task, training = run.task, run.training
    assert training.threads is not None
    torch.set_num_threads(training.threads)
    pace = Pace.of(training, stream.updates_an_epoch)
    state = State(run, claim, network, stream, pace, ranks)

    # Continue where a checkpoint is.
    notes = [*claim.notes, *(state.restore() if claim.begun else ())]
    notes += [remark for remark in task.remarks if remark not in state.counts.notes]
    if claim.writes:
        notes += write_environment(claim.out, environment(engine_of(run, network), task))
    counts, known = state.counts, list(state.counts.notes)
    counts.notes += notes
    if claim.begun:
        notes.append(f"resuming from update {counts.update}")
    if (claim.out / RECORD_FILE).exists():
        notes.append(f"{RECORD_FILE} was damaged and is written again")
    loss: float | None = None
    lr = training.lr

    def say(evaluated: bool = False, note: str | None = None) -> None:
        last = state.metrics[-1] if state.metrics else None
        rate = counts.update / counts.seconds if counts.seconds else None
        left = None
        if counts.update:
            left = (counts.seconds + counts.seconds_evaluation) / counts.update * (pace.updates - counts.update)
        epoch = pace.epoch(counts.update)
        try:
            progress(Status(counts.update, pace.updates, loss, last, rate, left, evaluated, note, epoch))
        except BrokenPipeError as closed:  # nobody reads it any more: end as with Ctrl-C
            interruption.asked, interruption.cause = True, closed

    def evaluate() -> None:
        begin = time.perf_counter()
        ranks.check_same(network)
        epoch = pace.epoch(counts.update)
        with averaged(state.optimizer):
            measured: dict[str, Any] = {
                "update": counts.update,
                **({} if epoch is None else {"epoch": epoch}),
                "seconds": counts.seconds,
                "train_loss": counts.loss_sum / counts.summed if counts.summed else None,
                **evaluation("validation", network),
                "lr": lr,
                "gradient_norm": counts.norm_sum / counts.summed if counts.summed else None,
            }
            if spread := time_scale_spread(network):
                measured["time_scales"] = spread
            if task.monitored if training.monitor is None else training.monitor:
                measured["stability"] = stability(network, task, training, evaluation.sample("validation", network))
        counts.loss_sum, counts.norm_sum, counts.summed = 0.0, 0.0, 0
        counts.seconds_evaluation += ranks.most(time.perf_counter() - begin)[0]
        state.add_metrics(measured)
        write_events(state.metrics[-1])
        if evaluation.has_test and best_of(task, state.metrics) is state.metrics[-1]:
            state.keep_best()
        counts.outcome = outcome_of(run, pace, counts, state.metrics)
        if counts.outcome == "diverged":
            counts.diverged_at = counts.update
        say(evaluated=True)

    with (
        events(training.tensorboard and claim.writes, claim.out, counts.update) as write_events,
        deferred() as interruption,
    ):
        for note in notes:
            say(note=note)
        if not state.metrics:
            evaluate()
        elif counts.outcome is None and ranks.most(counts.notes != known)[0]:
            state.save()  # the folder no longer shows what these notes say: a kill must not lose them
        saved = time.monotonic()
        while counts.outcome is None:
            begin = time.perf_counter()
            state.choose_optimizer()
            lr = learning_rate(training, pace, counts.update, state.values, task.lower_is_better)
            batch, share = ranks.part(stream.next())
            set_learning_rate(state.optimizer, lr * batch.rate)

            made = step(run, network, state.optimizer, state.parameters, batch, state.carry, ranks, share)
            loss = made.loss
            if not made.finite:
                counts.outcome, counts.diverged_at = "diverged", counts.update + 1
                break
            if stream.carries and made.carry is not None:
                state.carry = tuple(part.detach() for part in made.carry)
            counts.update += 1
            counts.loss_sum += loss
            counts.norm_sum += made.gradient_norm
            counts.summed += 1
            counts.seconds += ranks.most(time.perf_counter() - begin)[0]

            spent = training.spends(counts.seconds + counts.seconds_evaluation)
            if spent or counts.update == pace.updates or counts.update % pace.evaluate_every == 0:
                evaluate()
            else:
                say()
            asked, since = ranks.most(interruption.asked, time.monotonic() - saved)
            if counts.outcome is None and asked:
                state.save()
                raise interruption.cause
            if counts.outcome is None and since >= training.checkpoint_seconds:
                state.save()
                saved = time.monotonic()

    state.save()
    with averaged(state.optimizer):  # the weights that were evaluated
        sample = evaluation.sample("validation", network)
        record = make_record(run, pace, counts, state.metrics, network, sample, evaluation.has_test)
    if state.best is not None:
        state.load_best()
        record["test"] = json_safe(evaluation("test", network))
    state.write_record(record)
    return record


@contextmanager
def _globals_restored() -> Iterator[None]:
    """Restores torch's random numbers and threads afterwards."""
    generator, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_rng_state(generator)
        torch.set_num_threads(threads)
