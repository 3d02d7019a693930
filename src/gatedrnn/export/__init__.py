"""Trained models out of Python: what other programs can load and run."""

from __future__ import annotations

from gatedrnn.export.onnx import onnx
from gatedrnn.export.program import program

__all__ = ["onnx", "program"]
