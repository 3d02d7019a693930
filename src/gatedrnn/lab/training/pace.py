"""How long a run is and when it is evaluated, in updates."""

from __future__ import annotations

from dataclasses import dataclass

from gatedrnn.lab.training.options import Training


@dataclass(frozen=True)
class Pace:
    """The lengths that the options give in updates or in epochs, in updates."""

    updates: int
    evaluate_every: int
    decay_at: tuple[int, ...]
    #: None where there are no epochs.
    updates_an_epoch: int | None

    @staticmethod
    def of(training: Training, updates_an_epoch: int | None) -> Pace:
        """``updates_an_epoch`` is the stream's."""
        unit = 1
        if training.epochs is not None:
            assert updates_an_epoch is not None
            unit = updates_an_epoch
        length = training.updates if training.epochs is None else training.epochs
        assert length is not None
        assert training.evaluate_every is not None
        decay_at = tuple(unit * at for at in training.decay_at or ())
        return Pace(unit * length, unit * training.evaluate_every, decay_at, updates_an_epoch)

    def epoch(self, update: int) -> float | None:
        """How many epochs have passed."""
        return None if self.updates_an_epoch is None else update / self.updates_an_epoch
