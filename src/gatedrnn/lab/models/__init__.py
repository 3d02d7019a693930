"""The models: a recurrent layer of the library and a head, from one documented dataclass of options."""

from __future__ import annotations

from gatedrnn.lab.models.options import Model

__all__ = ["Model"]
