"""The examples in the docstrings of everything public run, and no place of a template is left empty."""

from __future__ import annotations

import doctest
import inspect

import pytest
import torch

import gatedrnn
from gatedrnn import layers

PUBLIC = [name for name in gatedrnn.__all__ if callable(getattr(gatedrnn, name))]


def test_there_is_something_public() -> None:
    assert {cls.__name__ for cls in (*layers.LAYERS.values(), *layers.STEPS.values())} < set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str) -> None:
    run_examples(name, getattr(gatedrnn, name))


# torch's own use of what it deprecates.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning:torch.*")
def test_examples_of_export_run() -> None:
    run_examples("export.program", gatedrnn.export.program)


def run_examples(name: str, entry: object) -> None:
    text = inspect.getdoc(entry) or ""
    for place in ("{arguments}", "{keywords}", "{call}", "{step}", "{step_keywords}", "STATE"):
        assert place not in text
    examples = doctest.DocTestParser().get_doctest(text, {"torch": torch, "gatedrnn": gatedrnn}, name, None, 0)
    assert examples.examples, f"{name} has no example"
    torch.manual_seed(0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", [cls.__name__ for cls in (*layers.LAYERS.values(), *layers.STEPS.values())])
def test_every_argument_is_documented(name: str) -> None:
    cls = getattr(gatedrnn, name)
    text = inspect.getdoc(cls) or ""
    arguments = set(inspect.signature(cls).parameters)
    if name != "LSTM":
        arguments -= {"proj_size"}  # taken only to be refused
    missing = {argument for argument in arguments if argument not in text}
    assert not missing
