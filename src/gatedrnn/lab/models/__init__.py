"""The models: a layer and a head, and language models; each from one documented dataclass of options."""

from __future__ import annotations

from gatedrnn.lab.models.base import Carry, ModelOptions, Network, Result, Sizes
from gatedrnn.lab.models.foreign import filled, layers_in, read_weights
from gatedrnn.lab.models.language import LanguageModel, LanguageNetwork
from gatedrnn.lab.models.network import LayerAndHead
from gatedrnn.lab.models.options import Model
from gatedrnn.lab.models.registry import MODELS
from gatedrnn.lab.models.statistics import (
    gate_spread,
    measured_time_scale_spread,
    measured_time_scales,
    spread,
    time_scale_spread,
)
from gatedrnn.lab.models.weights import load, read_note, weights_bytes

__all__ = [
    "MODELS",
    "Carry",
    "LanguageModel",
    "LanguageNetwork",
    "LayerAndHead",
    "Model",
    "ModelOptions",
    "Network",
    "Result",
    "Sizes",
    "filled",
    "gate_spread",
    "layers_in",
    "load",
    "measured_time_scale_spread",
    "measured_time_scales",
    "read_note",
    "read_weights",
    "spread",
    "time_scale_spread",
    "weights_bytes",
]
