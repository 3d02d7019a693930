"""The models: a recurrent layer of the library and a head, from one documented dataclass of options."""

from __future__ import annotations

from gatedrnn.lab.models.foreign import layers_in, read_tensors
from gatedrnn.lab.models.network import Network, build
from gatedrnn.lab.models.options import Model
from gatedrnn.lab.models.statistics import gate_spread, spread, time_scale_spread
from gatedrnn.lab.models.weights import load, load_layer, read_note, weights_bytes

__all__ = [
    "Model",
    "Network",
    "build",
    "gate_spread",
    "layers_in",
    "load",
    "load_layer",
    "read_note",
    "read_tensors",
    "spread",
    "time_scale_spread",
    "weights_bytes",
]
