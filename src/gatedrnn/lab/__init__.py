"""The laboratory: tasks, models, training, records, experiments, analysis and reports.

It needs the extra ``[lab]``; ``import gatedrnn`` does not import it.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

# Looked for, not imported: not every part of the laboratory needs all of them, and some take long.
for _name in ("matplotlib", "numpy", "rich", "safetensors", "scipy", "tyro"):
    if _find_spec(_name) is None:
        raise ImportError(
            f'gatedrnn.lab needs {_name}, which comes with the extra: pip install ".[lab]" in a clone of gatedrnn'
        )
