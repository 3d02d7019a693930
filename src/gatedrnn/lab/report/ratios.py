"""The times of an update as tables: ratios between models, compared with the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatedrnn.lab.analysis import middle_of
from gatedrnn.lab.report import text, verdicts
from gatedrnn.lab.report.claims import Checked, near
from gatedrnn.lab.report.document import Section, Table
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.update_times import UpdateTimes, paper_ratio

#: The ratios that the paper discusses.
RATIOS = (("fast", "sigmoid"), ("refine", "fast"), ("iterated_fast", "fast"))


def section(times: UpdateTimes, items: Sequence[Item]) -> Section:
    """The ratios and the paper's, and the times they are computed from."""
    measured = []
    for place, time in times.measured.items():
        middle = middle_of(time.rounds)
        spread = f"{text.number(middle.low)} … {text.number(middle.high)}"
        row = (place._replace(model="").named, place.model, text.number(middle.median), spread)
        measured.append((*row, str(len(time.rounds)), time.clock))
    header = ("setting", "model", "median", "interquartile range", "rounds", "measured on")
    return Section(
        "update-times",
        "Time of an update",
        text=[
            "Time of one update of the declared runs, measured separately on an idle machine, without evaluations. The "
            "models of a setting are timed in turn, and a ratio compares times of the same round. The paper's ratios "
            "are computed from the times per epoch that it reports, on a GPU."
        ],
        verdicts=[ratio_table(times, items)],
        tables=[Table("Seconds per update.", header, measured, models=1)],
    )


def ratio_table(times: UpdateTimes, items: Iterable[Item]) -> Table:
    """Every ratio that was measured, and the paper's; a verdict in the paper's setting."""
    known = list(items)
    rows = []
    for setting in times.settings():
        for model, other in RATIOS:
            ours, paper = times.ratio(setting, model, other), paper_ratio(known, setting, model, other)
            if ours is None:
                continue
            beside = ("—", "—")
            if paper is not None:
                judged = verdicts.of_claim(Checked("", near(ours, paper), ""))
                beside = (f"{paper:.3f}", judged if setting.budget == verdicts.COUNTED[0] else "—")
            rows.append((setting.named, f"{model} ÷ {other}", text.middle(ours), *beside))
    caption = (
        "Time of an update divided by that of another model: median over rounds (interquartile range). A verdict is "
        "given in the paper's setting only."
    )
    return Table(caption, ("setting", "ratio", "measured", "paper", "verdict"), rows)
