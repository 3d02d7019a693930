"""Export of trained models to other programs."""

from __future__ import annotations

from gatedrnn.export.onnx import onnx
from gatedrnn.export.program import program

__all__ = ["onnx", "program"]
