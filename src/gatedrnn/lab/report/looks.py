"""One colour for each model, the same in every figure and on the page, with a lighter shade for dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gatedrnn.lab.experiments import MODEL_NAMES
from gatedrnn.lab.report.groups import Group, lstm_of
from gatedrnn.theory.palette import looks as palette

_DARK_GROUND = "#1f2228"  # of the page's boxes
_CONTRAST = 4.5
_DASHES = ("", "7 3", "2 3", "9 3 2 3")


class ModelLook(NamedTuple):
    """Colours for light and dark backgrounds, and the dashes of the line (SVG's stroke-dasharray)."""

    light: str
    dark: str
    dash: str


class Looks:
    """The looks of all models of one report.

    The paper's models keep their colours in every report; a GRU has the colour of its LSTM, dashed. Others get the
    remaining colours of the palette, then colours again with dashes. Groups of one model in one chart (for example two
    learning rates) share its colour and differ in their dashes.
    """

    def __init__(self, models: Iterable[str]) -> None:
        wanted = set(models)
        strangers = sorted(name for name in wanted if lstm_of(name) not in MODEL_NAMES)
        colours = [look.colour for look in palette([*MODEL_NAMES, "polynomial", "another"]).values()]
        places = {name: i for i, name in enumerate([*MODEL_NAMES, *strangers])}
        places |= {name: places[lstm_of(name)] + len(colours) for name in wanted - places.keys()}
        self._colours = {name: (colours[i % len(colours)], i // len(colours)) for name, i in places.items()}

    def of(self, groups: Sequence[Group]) -> dict[str, ModelLook]:
        """The look of each group of a chart, by its name."""
        found: dict[str, ModelLook] = {}
        for group in groups:
            colour, turn = self._colours[group.model]
            taken = {look.dash for look in found.values() if look.light == colour}
            dashes = [_DASHES[(turn + more) % len(_DASHES)] for more in range(len(_DASHES))]
            free = [dash for dash in dashes if dash not in taken]
            found[group.name] = ModelLook(colour, lightened(colour), (free or dashes)[0])
        return found


def lightened(colour: str) -> str:
    """The colour mixed with as much white as the contrast with a dark background needs."""
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    for white in range(0, 101, 2):
        mixed = "#" + "".join(f"{round(c + (255 - c) * white / 100):02X}" for c in channels)
        if contrast(mixed, _DARK_GROUND) >= _CONTRAST:
            return mixed
    return "#FFFFFF"


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours, 1 … 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
