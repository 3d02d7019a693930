"""The command line: ``gatedrnn demo | theory | train | sweep | report | data | …``, a file for each verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gatedrnn import __version__
from gatedrnn.cli import streams

# Packages of the extra [lab] that the verbs need; any other missing package is a bug and shows its traceback.
_LAB = {"matplotlib", "numpy", "rich", "safetensors", "scipy", "tyro"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code: 0, 1 for work that failed, 2 for a wrong argument or a missing extra, 130 if
    interrupted, and 141 if the output is closed by its reader."""
    streams.prepare()
    try:
        try:
            return _dispatched(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _end("interrupted", 130)
    except BrokenPipeError:
        streams.abandon_output()
        return 141
    except OSError as wrong:  # of the output: verbs say what they cannot read or write
        streams.abandon_output()
        return _end(f"gatedrnn: {wrong}", 1)


def _dispatched(arguments: Sequence[str] | None) -> int:
    written = [*(sys.argv[1:] if arguments is None else arguments)]  # `list` is a verb here
    if written == ["--version"]:
        print(f"gatedrnn {__version__}")
        return 0
    try:
        from gatedrnn.cli.verbs import dispatch
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _LAB:
            raise
        advice = f'gatedrnn needs {package} for its commands: pip install ".[lab]" in a clone of gatedrnn'
        if written in (["--help"], ["-h"]):
            print(f"usage: gatedrnn [-h] [--version] COMMAND …\n\n{advice}")
            return 0
        return _end(advice, 2)
    except ImportError as missing:
        return _missing(missing)
    try:
        return dispatch(written)
    except ImportError as missing:
        return _missing(missing)


def _missing(missing: ImportError) -> int:
    """One line for a package of the extra; any other is a bug and shows its traceback."""
    if ".[lab]" not in str(missing):
        raise missing
    return _end(str(missing), 2)


def _end(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code
