"""Gated recurrent layers for PyTorch whose gate function can be replaced."""

from __future__ import annotations

from gatedrnn import gates, inits

__version__ = "0.1.0"

__all__ = ["__version__", "gates", "inits"]
