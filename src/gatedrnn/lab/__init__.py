"""The laboratory: tasks, models, training, records, experiments, analysis and reports.

It needs the extra ``[lab]``; ``import gatedrnn`` does not import it.
"""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401
    import numpy as _numpy  # noqa: F401
    import safetensors as _safetensors  # noqa: F401
    import scipy as _scipy  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name not in {"matplotlib", "numpy", "safetensors", "scipy"}:
        raise
    raise ImportError(
        f'gatedrnn.lab needs {missing.name}, which comes with the extra: pip install "gatedrnn[lab]"'
    ) from None
