"""The verbs by name, and how the one that was asked for is found and run."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from gatedrnn.cli.bench import Bench
from gatedrnn.cli.demo import Demo
from gatedrnn.cli.failure import Failure
from gatedrnn.cli.list import List
from gatedrnn.cli.theory import Theory

#: Each verb is a documented dataclass, which gives its options, and a method ``run``.
VERBS: dict[str, type[Demo] | type[Theory] | type[List] | type[Bench]] = {
    "demo": Demo,
    "theory": Theory,
    "list": List,
    "bench": Bench,
}


def dispatch(arguments: Sequence[str] | None) -> int:
    """Parse the arguments (the program's own for None), run the verb, and return the exit code."""
    # For each verb its own Annotated type, and the union of them: tyro's form of subcommands.
    verbs = [Annotated[kind, tyro.conf.subcommand(name)] for name, kind in VERBS.items()]
    union: Any = functools.reduce(operator.or_, verbs)
    verb = tyro.cli(union, prog="gatedrnn", description="Gated recurrent layers and their laboratory.", args=arguments)
    try:
        verb.run()
    except Failure as failure:
        print(f"gatedrnn: {failure}", file=sys.stderr)
        return 2
    return 0
