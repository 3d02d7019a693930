"""The kinds of models by name."""

from __future__ import annotations

from gatedrnn.lab.models.base import ModelOptions
from gatedrnn.lab.models.language import LanguageModel
from gatedrnn.lab.models.options import Model

#: By what options.json says under model.kind; a recurrent layer and a head where it says nothing.
MODELS: dict[str, type[ModelOptions]] = {kind.kind: kind for kind in (Model, LanguageModel)}
