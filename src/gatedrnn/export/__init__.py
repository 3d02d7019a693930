"""Trained models out of Python: what other programs can load and run."""

from __future__ import annotations

from gatedrnn.export.onnx import onnx

__all__ = ["onnx"]
