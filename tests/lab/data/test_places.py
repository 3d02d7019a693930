"""Where data sets lie: option, environment, the user's cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatedrnn.lab.data.places import cache_folder, data_folder


@pytest.fixture(autouse=True)
def empty_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GATEDRNN_CACHE", "GATEDRNN_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("USERPROFILE", "/home/someone")


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "/home/someone/.cache/gatedrnn"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/someone/.cache/gatedrnn"),
        ("linux", {"XDG_CACHE_HOME": "/scratch"}, "/scratch/gatedrnn"),
        ("linux", {"XDG_CACHE_HOME": "/scratch", "GATEDRNN_CACHE": "/fast"}, "/fast"),
        ("linux", {"GATEDRNN_CACHE": "~/fast"}, "/home/someone/fast"),
        ("darwin", {"XDG_CACHE_HOME": "/scratch"}, "/home/someone/Library/Caches/gatedrnn"),
        ("darwin", {"GATEDRNN_CACHE": "/fast"}, "/fast"),
    ],
)
def test_the_cache(platform: str, environment: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(folder)
    assert data_folder() == Path(folder) / "data"


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEDRNN_DATA", "")
    assert data_folder() == cache_folder() / "data"
    monkeypatch.setenv("GATEDRNN_DATA", "~/sets")
    assert data_folder() == Path("/home/someone/sets")
    assert data_folder(Path("/given")) == Path("/given")
