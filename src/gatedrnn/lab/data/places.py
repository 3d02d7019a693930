"""Folders of the data sets and of the files prepared from them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DATA_VARIABLE = "GATEDRNN_DATA"
CACHE_VARIABLE = "GATEDRNN_CACHE"


def data_folder(root: Path | None = None) -> Path:
    """The folder of all data sets: the one given, or GATEDRNN_DATA, or ``data`` in the cache folder.

    It is only read, except by ``fetch``.
    """
    if root is not None:
        return root
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "data"


def cache_folder() -> Path:
    """The folder for what can be made again: GATEDRNN_CACHE, or ``gatedrnn`` in the user's cache.

    The user's cache is ~/Library/Caches on macOS, and elsewhere XDG_CACHE_HOME or ~/.cache.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        users = "~/Library/Caches"
    else:
        users = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(users).expanduser() / "gatedrnn"
