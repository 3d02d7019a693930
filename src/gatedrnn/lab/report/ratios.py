"""The times of an update as tables: ratios between models beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatedrnn.lab.analysis import middle_of
from gatedrnn.lab.report import text, verdicts
from gatedrnn.lab.report.claims import Checked, near
from gatedrnn.lab.report.document import Section, Table
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.update_times import UpdateTimes, paper_ratio

#: The ratios that the paper speaks of.
RATIOS = (("fast", "sigmoid"), ("refine", "fast"), ("iterated_fast", "fast"))


def section(times: UpdateTimes, items: Sequence[Item]) -> Section:
    """The ratios beside the paper's, and the times behind them."""
    measured = []
    for place, time in times.measured.items():
        middle = middle_of(time.rounds)
        spread = f"{text.number(middle.low)} … {text.number(middle.high)}"
        row = (place._replace(model="").named, place.model, text.number(middle.median), spread)
        measured.append((*row, str(len(time.rounds)), time.clock))
    header = ("setting", "model", "median", "middle half", "rounds", "measured on")
    return Section(
        "update-times",
        "Time of an update",
        text=[
            "Updates of the declared runs, made apart from them on a quiet machine, without evaluations. The models of "
            "a setting take turns, and a ratio is of times of the same round. The paper's ratios follow from the times "
            "an epoch that it prints, on a GPU."
        ],
        verdicts=[ratio_table(times, items)],
        tables=[Table("Seconds of an update.", header, measured, models=1)],
    )


def ratio_table(times: UpdateTimes, items: Iterable[Item]) -> Table:
    """Every ratio that was measured; a verdict where the paper has one."""
    known = list(items)
    rows = []
    for setting in times.settings():
        for model, other in RATIOS:
            ours, paper = times.ratio(setting, model, other), paper_ratio(known, setting, model, other)
            if ours is None:
                continue
            beside = ("—", "—")
            if paper is not None:
                beside = (f"{paper:.3f}", verdicts.of_claim(Checked("", near(ours, paper), "")))
            rows.append((setting.named, f"{model} ÷ {other}", text.middle(ours), *beside))
    caption = "Time of an update by that of another model: the median over rounds, and the middle half of them."
    return Table(caption, ("setting", "ratio", "ours", "the paper", "verdict"), rows)
