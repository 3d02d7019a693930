"""Data sets: found in a folder, checked against published checksums, and opened as tensors or files."""

from __future__ import annotations

from gatedrnn.lab.data.errors import DataError, MissingDataError
from gatedrnn.lab.data.images import ImageSet, images
from gatedrnn.lab.data.sets import SETS

__all__ = ["SETS", "DataError", "ImageSet", "MissingDataError", "images"]
