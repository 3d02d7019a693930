from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch

from gatedrnn import engines

# One thread: a test must not depend on how a reduction is split, and xdist already uses the cores.
torch.set_num_threads(1)
# A shell that starts the tests in the background has them ignore Ctrl-C, and so all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the tests prepare of data sets stays out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GATEDRNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=["auto", "reference"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once with the engine that "auto" chooses, once with the reference engine alone."""
    if request.param == "reference":
        monkeypatch.setattr(engines, "ENGINES", {"reference": engines.ENGINES["reference"]})
    return str(request.param)
