from __future__ import annotations

from collections.abc import Iterator

import pytest

from gatedrnn.engines.cpu import library

if library.reason_missing():
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
