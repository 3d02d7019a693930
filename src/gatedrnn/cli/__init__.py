"""The command line: ``gatedrnn demo | theory | train | sweep | report | data | …``, a file for each verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence

# What the extra [lab] brings and the verbs need; anything else that is missing is a fault and shows its traceback.
_LAB = {"matplotlib", "numpy", "rich", "safetensors", "scipy", "tyro"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code: 0, 1 for work that failed, 2 for a wrong argument or a missing extra, and 130
    when interrupted."""
    try:
        from gatedrnn.cli.verbs import dispatch
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _LAB:
            raise
        return _end(f'gatedrnn needs {package} for its commands: pip install "gatedrnn[lab]"')
    except ImportError as missing:
        return _missing(missing)
    try:
        return dispatch(arguments)
    except ImportError as missing:
        return _missing(missing)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _missing(missing: ImportError) -> int:
    """One line for what the extra brings; anything else is a fault and shows its traceback."""
    if "gatedrnn[lab]" not in str(missing):
        raise missing
    return _end(str(missing))


def _end(line: str) -> int:
    print(line, file=sys.stderr)
    return 2
