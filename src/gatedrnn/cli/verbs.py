"""The verbs by name; parsing and running them."""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro

from gatedrnn.cli.bench import Bench
from gatedrnn.cli.data import BELOW_DATA, Data
from gatedrnn.cli.demo import Demo
from gatedrnn.cli.evaluate import Evaluate
from gatedrnn.cli.failure import Failure
from gatedrnn.cli.generate import Generate
from gatedrnn.cli.list import List
from gatedrnn.cli.own_task import is_file, load_task
from gatedrnn.cli.parsing import Commands, parse
from gatedrnn.cli.report import Report
from gatedrnn.cli.streams import printable
from gatedrnn.cli.sweep import Sweep
from gatedrnn.cli.theory import Theory
from gatedrnn.cli.timescales import TimeScales
from gatedrnn.cli.train import check_option_names, task_options, train_verb
from gatedrnn.lab.tasks import TASKS


class Verb(Protocol):
    """What a verb is: a documented dataclass, which gives its options, and a method ``run``."""

    def run(self) -> None: ...


#: The verbs by name.
VERBS: dict[str, type[Verb]] = {
    "demo": Demo,
    "theory": Theory,
    "train": train_verb(TASKS),
    "evaluate": Evaluate,
    "generate": Generate,
    "sweep": Sweep,
    "report": Report,
    "data": Data,
    "timescales": TimeScales,
    "list": List,
    "bench": Bench,
}


def dispatch(arguments: Sequence[str]) -> int:
    """Parse the arguments, run the verb, and return the exit code."""
    try:
        parsed(arguments).run()
    except Failure as failure:
        if isinstance(failure.__cause__, BrokenPipeError):  # the output was closed by its reader
            raise failure.__cause__ from None
        lines = str(failure).split("\n") if failure.several_lines else [str(failure)]
        print(f"gatedrnn: {chr(10).join(map(printable, lines))}", file=sys.stderr)
        return failure.code
    return 0


def parsed(arguments: Sequence[str]) -> Verb:
    """The verb with its options. Raises Failure for wrong arguments; help is printed and ends the program."""
    written = list(arguments)
    verbs, tasks = VERBS, TASKS
    if written[:1] == ["train"] and is_file("".join(written[1:2])):
        own = load_task(Path(written[1]))
        check_option_names(own, written[1])
        tasks = {**TASKS, written[1]: own}
        verbs = {**VERBS, "train": train_verb(tasks)}
    # For each verb its own Annotated type, and the union of them: tyro's form of subcommands.
    kinds = [Annotated[kind, tyro.conf.subcommand(name)] for name, kind in verbs.items()]
    union: Any = functools.reduce(operator.or_, kinds)
    below = {
        "train": Commands("task", {name: _options(*task_options(task)) for name, task in tasks.items()}),
        "data": Commands("command", {name: _options(kind) for name, kind in BELOW_DATA.items()}),
    }
    commands = Commands("command", {name: below.get(name, _options(kind)) for name, kind in verbs.items()})
    verb: Verb = parse(union, written, commands)
    return verb


def _options(*kinds: Any) -> list[str]:
    """The options of these dataclasses as they are written: --hidden-size."""
    return [f"--{field.name.replace('_', '-')}" for kind in kinds for field in dataclasses.fields(kind)]
