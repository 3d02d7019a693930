from __future__ import annotations

import pytest
import torch

from gatedrnn import engines

# One thread: a test must not depend on how a reduction is split, and xdist already uses the cores.
torch.set_num_threads(1)


@pytest.fixture(params=["auto", "reference"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once with the engine that "auto" chooses, once with the reference engine alone."""
    if request.param == "reference":
        monkeypatch.setattr(engines, "ENGINES", {"reference": engines.ENGINES["reference"]})
    return str(request.param)
