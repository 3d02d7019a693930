"""The time of one update of a run, without evaluations and without a folder."""

from __future__ import annotations

import time

from gatedrnn.lab.models import Carry
from gatedrnn.lab.training.beginning import BATCH_SEEDS, engine_of, new_network
from gatedrnn.lab.training.optimizer import make_optimizer, set_learning_rate
from gatedrnn.lab.training.ranks import Ranks
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.step import step


class Updates:
    """A run as it begins, whose updates are made one after the other and timed.

    The first learning rate stays, and what is not finite is left out by the optimiser, as in training; there training
    would end. torch's number of threads is the caller's.
    """

    def __init__(self, run: Run) -> None:
        run.check()
        run.task.open(lambda text: None)
        self.run = run
        self._network = new_network(run)
        self.engine = engine_of(run, self._network)
        self._stream = run.task.stream(run.training.batch_size, BATCH_SEEDS + run.training.seed)
        self._parameters = [p for p in self._network.parameters() if p.requires_grad]
        self._optimizer = make_optimizer(run.training, self._parameters)
        self._carry: Carry = None
        self._ranks = Ranks()

    def make(self) -> float:
        """One update, and how many seconds it took, the batch included."""
        begin = time.perf_counter()
        batch = self._stream.next()
        set_learning_rate(self._optimizer, self.run.training.lr * batch.rate)
        made = step(self.run, self._network, self._optimizer, self._parameters, batch, self._carry, self._ranks)
        if self._stream.carries and made.carry is not None:
            self._carry = tuple(part.detach() for part in made.carry)
        return time.perf_counter() - begin

    def turn(self, seconds: float) -> float:
        """The mean time of an update over so many seconds, at least one, after one that is not counted."""
        self.make()
        times = [self.make()]
        while sum(times) < seconds:
            times.append(self.make())
        return sum(times) / len(times)
