from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and help are wrapped to the terminal's width: it is the same for every test."""
    monkeypatch.setenv("COLUMNS", "100")
