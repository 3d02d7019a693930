"""The page in a real browser: offline, from a file, drawn, toggled, read by mouse and keyboard, on a phone, in the dark."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatedrnn.lab.report import make_report
from tests.lab.report.browser import Browser, find_browser
from tests.lab.report.records import image_item, item, mse, write_image_run, write_run, write_sweep
from tests.lab.report.test_theory import ITEMS as THEORY_ITEMS
from tests.lab.report.test_theory import write_theory

FOUND = find_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="no Chromium found (Debian: apt install chromium)"),
]
MODELS = ("softsign", "sigmoid", "fast", "NRU")
FIGURE = "document.querySelector('[data-chart=fig_adding_mse_paper]')"
EVIL = "</script><script>window.broken = 1</script><img src=http://example.org/x onerror='window.broken = 1'>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_sweep(folder / "runs", MODELS)
    write_run(
        folder / "runs" / "evil", "fast", 0, task={"name": EVIL}, options={"forget_gate": EVIL}, engine=EVIL, key="e"
    )
    make_report(folder / "runs", folder / "out", items=[item(models=MODELS)])
    return folder / "out" / "index.html"


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    assert FOUND is not None
    with Browser(FOUND) as opened:
        yield opened


@pytest.fixture
def browser(shared: Browser, page: Path) -> Iterator[Browser]:
    """The page on a desktop, freshly opened; after the test nothing may have gone wrong in it."""
    shared.open(page)
    yield shared
    assert shared.errors == []
    assert {request for request in shared.requests if not request.startswith("data:")} == {page.resolve().as_uri()}
    assert shared.evaluate("window.broken") is None


def press(browser: Browser, action: str) -> None:
    """A real click on a button of the chart."""
    find = f"{FIGURE}.querySelector('[data-action={action}]')"
    browser.evaluate(f"{find}.scrollIntoView({{block: 'center'}})")
    x, y = browser.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({find}.getBoundingClientRect())")
    browser.click(x, y)
    browser.settle()


def path(browser: Browser, kind: str, model: int, seed: int | None = None) -> list[tuple[float, float]]:
    """The points of a curve as drawn, in pixels of the chart."""
    chosen = f'path.{kind}[data-model="{model}"]' + ("" if seed is None else f'[data-seed="{seed}"]')
    drawn = browser.evaluate(f"{FIGURE}.querySelector('{chosen}')?.getAttribute('d') ?? ''")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", drawn)]


def ticks(browser: Browser, anchor: str) -> dict[float, float]:
    """Positions of the labelled ticks: anchor "middle" for x, "end" for y."""
    axis = "x" if anchor == "middle" else "y"
    found = browser.evaluate(
        f"[...{FIGURE}.querySelectorAll('.plot text.tick[text-anchor={anchor}]')].map(t => [t.textContent, +t.getAttribute('{axis}')])"
    )
    numbers = {float(text.replace("\u2009", "").replace("−", "-")): at for text, at in found}
    return (
        numbers if axis == "x" else {value: at - 4 for value, at in numbers.items()}
    )  # text stands 4 px below its line


def test_curves_are_drawn_where_they_belong(browser: Browser) -> None:
    assert browser.evaluate(f"{FIGURE}.querySelectorAll('path.line').length") == len(MODELS)
    assert browser.evaluate(f"{FIGURE}.querySelectorAll('path.seed').length") == 3 * len(MODELS)
    points = path(browser, "seed", 2, seed=1)
    assert len(points) == 31
    across = ticks(browser, "middle")
    pixels = (across[1000] - across[0]) / 1000
    upwards = ticks(browser, "end")
    decade = upwards[0.01] - upwards[0.1]
    for i in (0, 15, 30):
        assert points[i][0] == pytest.approx(across[0] + 50 * i * pixels, abs=0.05)
        assert points[i][1] == pytest.approx(upwards[0.1] + decade * (-1 - math.log10(mse("fast", 1, i))), abs=0.05)


def test_axes_change(browser: Browser) -> None:
    assert browser.evaluate(f"{FIGURE}.querySelector('[data-action=y-log]').ariaPressed") == "true"
    press(browser, "y-linear")
    assert browser.evaluate(f"{FIGURE}.querySelector('[data-action=y-log]').ariaPressed") == "false"
    upwards = ticks(browser, "end")
    assert upwards[0] - upwards[0.1] == pytest.approx(2 * (upwards[0] - upwards[0.05]), abs=0.05)
    points = path(browser, "line", 0)  # softsign stays at 0.17
    assert points[30][1] == pytest.approx(upwards[0] + 1.7 * (upwards[0.1] - upwards[0]), abs=0.05)

    press(browser, "x-log")
    points = path(browser, "line", 2)
    assert len(points) == 30  # update 0 has no logarithm
    across = ticks(browser, "middle")
    assert across[1000] - across[100] > 100
    # Updates 50·1, 50·2, 50·4: equal steps.
    assert points[1][0] - points[0][0] == pytest.approx(points[3][0] - points[1][0], abs=0.05)


def test_time_is_drawn_for_one_clock_at_a_time(browser: Browser) -> None:
    assert not browser.evaluate(f"{FIGURE}.querySelector('[data-action=clock-0]').checkVisibility()")
    press(browser, "x-seconds")
    drawn = f"[...{FIGURE}.querySelectorAll('path.line')].filter(p => p.dataset.model).map(p => +p.dataset.model)"
    assert browser.evaluate(drawn) == [0, 1, 2]  # the NRU ran on another engine
    assert max(ticks(browser, "middle")) == 30
    press(browser, "clock-1")
    assert browser.evaluate(drawn) == [3]


def test_a_click_on_the_legend_toggles_a_model(browser: Browser) -> None:
    highest = max(ticks(browser, "end"))
    for model in (0, 1):
        press(browser, f"model-{model}")
    assert path(browser, "line", 0) == path(browser, "seed", 1, seed=0) == []
    assert len(path(browser, "line", 2)) == 31
    assert browser.evaluate(f"{FIGURE}.querySelector('[data-action=model-0]').ariaPressed") == "false"
    for model in (2, 3):
        press(browser, f"model-{model}")
    assert browser.evaluate(f"{FIGURE}.querySelector('.empty').textContent") == "no model selected"
    for model in range(4):
        press(browser, f"model-{model}")
    assert len(path(browser, "line", 0)) == 31
    assert max(ticks(browser, "end")) == highest


def test_seeds_can_be_hidden(browser: Browser) -> None:
    press(browser, "seeds")
    assert browser.evaluate(f"{FIGURE}.querySelectorAll('path.seed').length") == 0
    assert len(path(browser, "line", 2)) == 31


def test_hovering_shows_the_values(browser: Browser) -> None:
    browser.evaluate(f"{FIGURE}.querySelector('.plot').scrollIntoView({{block: 'center'}})")
    left, top = browser.evaluate(f"(r => [r.x, r.y])({FIGURE}.querySelector('.plot svg').getBoundingClientRect())")
    across = ticks(browser, "middle")
    at = across[0] + 0.8 * (across[1000] - across[0]) + 3  # near update 800
    browser.move(left + at, top + 100)
    read = browser.evaluate(f"{FIGURE}.querySelector('.readout').innerText").splitlines()
    assert read[0] == "update 800"
    shown = browser.evaluate(
        f"Object.fromEntries([...{FIGURE}.querySelectorAll('.row')].map(r => [r.querySelector('.name').textContent, r.querySelector('.value').textContent]))"
    )
    assert shown["softsign"] == "0.17"
    values = [mse("fast", seed, 16) for seed in range(3)]  # they differ by factors of e^(1/3)
    mean, factor = (float(part) for part in shown["fast"].split(" ×÷ "))
    assert (mean, factor) == (pytest.approx(values[1], rel=1e-3), pytest.approx(math.exp(1 / 3), rel=1e-3))
    assert browser.evaluate(f"{FIGURE}.querySelectorAll('circle.mark').length") == 4

    press(browser, "y-linear")
    left, top = browser.evaluate(f"(r => [r.x, r.y])({FIGURE}.querySelector('.plot svg').getBoundingClientRect())")
    browser.move(left + at, top + 100)
    shown = browser.evaluate(f"{FIGURE}.querySelectorAll('.row .value')[2].textContent")
    mean, std = (float(part) for part in shown.split(" ± "))
    assert mean == pytest.approx(sum(values) / 3, rel=1e-3)
    assert std == pytest.approx((sum((v - sum(values) / 3) ** 2 for v in values) / 2) ** 0.5, rel=1e-3)
    browser.move(2, 2)
    assert browser.evaluate(f"{FIGURE}.querySelector('.readout').hidden") is True


def test_a_band_is_made_in_the_logarithm(browser: Browser) -> None:
    """At update 800 the seeds of fast lie at 0.17·e^(−8/3), e^(−7/3), e^(−2): the band is one third of an e wide."""
    upwards = ticks(browser, "end")
    decade = upwards[0.01] - upwards[0.1]
    band, line = path(browser, "band", 2), path(browser, "line", 2)
    at = line[16][0]
    ends = sorted(y for x, y in band if x == at)
    assert len(ends) == 2
    for y, sign in zip(ends, (1, -1), strict=True):
        assert line[16][1] - y == pytest.approx(sign * decade * math.log10(math.e) / 3, abs=0.05)
    assert max(y for _, y in band) < 1000  # it never falls to the floor of the chart


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    browser.evaluate(f"{FIGURE}.querySelector('[data-action=x-updates]').focus()")
    reached = []
    for _ in range(12):
        reached.append(browser.evaluate("document.activeElement.dataset.action ?? document.activeElement.tagName"))
        browser.press("Tab")
    assert reached[:7] == ["x-updates", "x-seconds", "x-linear", "x-log", "y-linear", "y-log", "seeds"]
    assert reached[7:] == ["svg", "model-0", "model-1", "model-2", "model-3"]

    browser.evaluate(f"{FIGURE}.querySelector('.plot svg').focus()")
    for key, expected in (
        ("ArrowRight", "update 0"),
        ("ArrowRight", "update 50"),
        ("End", "update 1\u2009500"),
        ("ArrowLeft", "update 1\u2009450"),
    ):
        browser.press(key)
        assert browser.evaluate(f"{FIGURE}.querySelector('.readout strong').textContent") == expected
    browser.press("Escape")
    assert browser.evaluate(f"{FIGURE}.querySelector('.readout').hidden") is True
    browser.evaluate(f"{FIGURE}.querySelector('[data-action=y-linear]').focus()")
    browser.press("Enter")
    assert browser.evaluate(f"{FIGURE}.querySelector('[data-action=y-linear]').ariaPressed") == "true"


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page, width=390, height=844)
    assert browser.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]
    wide = browser.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth).length"
    )
    assert wide > 0  # tables scroll inside their own boxes
    width = browser.evaluate(f"{FIGURE}.querySelector('.plot svg').getBoundingClientRect().width")
    assert 300 < width <= 390
    assert len(path(browser, "line", 2)) == 31
    browser.screenshot(tmp_path / "phone.png")
    assert (tmp_path / "phone.png").read_bytes().startswith(b"\x89PNG")


def test_light_and_dark(browser: Browser, page: Path) -> None:
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('path.line[data-model=\"3\"]')).stroke]"
    assert browser.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(0, 77, 64)"]
    browser.open(page, dark=True)
    ground, line = browser.evaluate(colours)
    assert ground == "rgb(21, 23, 27)"
    assert min(int(part) for part in re.findall(r"\d+", line)) > 60


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that diverged, one against epochs, one that is thinned, and a picture of the theory."""
    folder = tmp_path_factory.mktemp("second")
    write_run(folder / "runs" / "a", "fast", 0, evaluations=4, outcome="diverged", curve=lambda i: 0.1 * (i + 1))
    write_run(folder / "runs" / "b", "fast", 1, evaluations=2500, curve=lambda i: 0.1)
    for seed in range(2):
        write_image_run(folder / "runs" / f"i{seed}", "fast", seed, "psmnist", 0.9)
    write_theory(folder / "runs" / "theory")
    make_report(folder / "runs", folder / "out", items=[*THEORY_ITEMS, image_item(("fast",), ("psmnist",), seeds=2)])
    return folder / "out" / "index.html"


def test_a_diverged_run_a_thinned_one_epochs_and_pictures(shared: Browser, second: Path) -> None:
    shared.open(second)
    chart = "document.querySelector('[data-chart=other_1_metric]')"
    cross = shared.evaluate(f"[...{chart}.querySelectorAll('path.diverged')].map(p => p.getAttribute('d'))")
    assert len(cross) == 1
    line = shared.evaluate(f"{chart}.querySelector('path.seed[data-seed=\"0\"]').getAttribute('d')")
    assert cross[0].startswith("M" + line.rpartition("L")[2])  # where the run ends
    assert "2 seeds, 1 diverged" in shared.evaluate(f"{chart}.querySelector('.legend').innerText")
    assert "Thinned" in shared.evaluate(f"{chart}.querySelector('figcaption').innerText")
    epochs = "document.querySelector('[data-chart=tab_images_desk]')"
    assert shared.evaluate(f"{epochs}.querySelector('.label').textContent") == "epochs"
    assert shared.evaluate(f"{epochs}.querySelector('[data-action=x-updates]').textContent") == "epochs"
    labels = f"[...{epochs}.querySelectorAll('.plot text.tick[text-anchor=middle]')].map(t => t.textContent)"
    assert shared.evaluate(labels) == ["0", "1", "2", "3", "4"]  # no half epochs
    shared.evaluate(f"{epochs}.querySelector('.plot svg').focus()")
    shared.press("End")
    assert shared.evaluate(f"{epochs}.querySelector('.readout strong').textContent") == "epoch 4"
    loaded = "[...document.querySelectorAll('figure.picture img')].map(i => i.complete && i.naturalWidth)"
    assert shared.evaluate(loaded) == [1, 1, 1, 1]
    assert shared.errors == []
    shared.open(second, width=390, height=844)
    assert shared.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]


def test_tables_without_javascript(shared: Browser, page: Path) -> None:
    shared.scripts(False)
    try:
        shared.open(page)
    finally:
        shared.scripts(True)
    assert shared.evaluate("document.documentElement.classList.contains('drawn')") is False
    assert "800 ± 50" in shared.evaluate("document.body.innerText")
    assert "figures/fig_adding_mse_paper.png" in shared.evaluate("document.body.innerText")
