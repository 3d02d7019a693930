"""What the report needs to know of an item of the paper, taken from its declaration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: What an item's figure shows: the metric against updates or seconds, the loss, or time scales.
View = Literal["updates", "seconds", "loss", "time_scales"]


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper. ``declared`` gives, for each budget, (model, seed) by the key of the run.

    ``numbers`` are the paper's, by model, in the unit of the metric; they are means over ``seeds`` seeds.
    """

    label: str
    title: str
    task: str
    metric: str
    threshold: float | None
    declared: dict[str, dict[str, tuple[str, int]]]
    setting: str = ""
    paper: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    seeds: int = 3
    view: View = "updates"
    theory: bool = False
    pending: str = ""
    differences: tuple[str, ...] = ()


def paper_items() -> list[Item]:
    return []
