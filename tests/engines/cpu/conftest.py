from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gatedrnn.engines.cpu import library

if library.reason_missing():
    if any(shutil.which(name) for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if name):
        raise RuntimeError(f"a C++ compiler is here and the CPU engine is not: {library.reason_missing()}")
    pytest.skip(f"the CPU engine is not here: {library.reason_missing()}", allow_module_level=True)


def available() -> list[str]:
    """The instruction sets of this machine."""
    found = []
    for name in ("baseline", "avx2", "avx512"):
        try:
            library.select_instruction_set(name)
        except RuntimeError:
            continue
        found.append(name)
    library.select_instruction_set(None)
    return found


ISAS = available()


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set in turn."""
    library.select_instruction_set(request.param)
    yield request.param
    library.select_instruction_set(None)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
