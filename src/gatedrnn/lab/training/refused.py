"""Why a run is not trained in a folder."""

from __future__ import annotations


class RefusedError(ValueError):
    """The folder belongs to another run, or another process is training in it."""


class InUseError(RefusedError):
    """Another process is training in the folder."""
