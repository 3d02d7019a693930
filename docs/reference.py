"""The page docs/reference.md, made from the docstrings of the public names:

python docs/reference.py
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gatedrnn
from gatedrnn.layers.registry import LAYERS, STEPS

PAGE = Path(__file__).parent / "reference.md"
_INTRODUCTION = """# Reference

Every public name with its arguments, made from the docstrings by `python docs/reference.py`. In Python,
`help(gatedrnn.LSTM)` prints the same. T: steps, B: batch size, I: input size, H: units.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(part for title, names in _groups() for part in _section(title, names))])


def _groups() -> Iterator[tuple[str, list[str]]]:
    """Titles, each with its names below ``gatedrnn``."""
    public = {name: getattr(gatedrnn, name) for name in gatedrnn.__all__}
    gates, inits = gatedrnn.gates, gatedrnn.inits
    yield "Layers", [layer.__name__ for layer in LAYERS.values()]
    yield "Single steps", [step.__name__ for step in STEPS.values()]
    yield "Functions", [name for name, it in public.items() if inspect.isfunction(it)]
    yield "Export", [f"export.{name}" for name in gatedrnn.export.__all__]
    bases = [gates.Gate, gates.SigmoidOf]
    yield "Gates", [f"gates.{kind.__name__}" for kind in (*bases, *gates.GATES.values())] + ["gates.check_gate"]
    yield "Initialisers", [f"inits.{kind.__name__}" for kind in (inits.ForgetInit, *inits.INITS.values())]


def _section(title: str, names: list[str]) -> Iterator[str]:
    yield f"## {title}\n"
    for name in names:
        it: Any = gatedrnn
        for part in name.split("."):
            it = getattr(it, part)
        yield f"### gatedrnn.{name}\n"
        yield f"```text\n{_signature(name, it)}\n```\n"
        yield markdown(inspect.getdoc(it) or "") + "\n"
        if it is gatedrnn.gates.Gate:
            for method, function in inspect.getmembers(it, inspect.isfunction):
                if not method.startswith("_"):
                    yield f"* `{_signature(method, function)}`: {markdown(_first_paragraph(function))}"
            yield ""


def _signature(name: str, it: Any) -> str:
    """The arguments with their defaults; the types are in the descriptions."""
    try:
        found = inspect.signature(it)
    except ValueError:  # an abstract class without arguments
        return name
    arguments = [one.replace(annotation=one.empty) for one in found.parameters.values() if one.name != "self"]
    text = f"{name}{found.replace(parameters=arguments, return_annotation=found.empty)}"
    return "\n".join(textwrap.wrap(text, 110, subsequent_indent=" " * 4, break_long_words=False))


def _first_paragraph(it: Any) -> str:
    return " ".join((inspect.getdoc(it) or "").split("\n\n")[0].split())


def markdown(docstring: str) -> str:
    """A docstring of this library in Markdown."""
    return "\n\n".join(_block(block) for block in _blocks(docstring))


def _blocks(docstring: str) -> Iterator[str]:
    """Paragraphs; a heading that ends with a colon, an equation and an example keep what is indented below them."""
    kept: list[str] = []
    for block in re.split(r"\n\n+", docstring):
        if kept and not block.startswith(" "):
            yield "\n\n".join(kept)
            kept = []
        kept.append(block)
    yield "\n\n".join(kept)


def _block(block: str) -> str:
    head, _, rest = block.partition("\n")
    body = textwrap.dedent(rest).strip("\n")
    if head == ".. math::":
        return f"$$\n{body}\n$$"
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    if head == "Examples::":
        return f"```pycon\n{body}\n```"
    if head == "Args:":
        arguments = re.sub(r"\n +", " ", body)  # a description on one line
        return "Arguments:\n\n" + _inline(re.sub(r"^([\w, ]+):", _argument, arguments, flags=re.MULTILINE))
    if rest.startswith("    "):
        return _inline(f"{head}\n\n{body}")
    return _inline(block)


def _argument(found: re.Match[str]) -> str:
    return "* " + ", ".join(f"`{name}`" for name in found[1].split(", ")) + ":"


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
