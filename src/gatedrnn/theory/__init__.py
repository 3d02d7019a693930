"""Why the gate function matters: order of saturation, the toy problem, its gradient flow, rates and bounds.

Everything here works in float64 and in terms of log(1−f), never of 1−f formed by subtraction. It needs the extra
``[lab]``; ``import gatedrnn`` does not import it.
"""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401
    import numpy as _numpy  # noqa: F401
    import scipy as _scipy  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name not in {"matplotlib", "numpy", "scipy"}:
        raise
    raise ImportError(
        f'gatedrnn.theory needs {missing.name}, which comes with the extra: pip install ".[lab]" in a clone of gatedrnn'
    ) from None

from gatedrnn.theory.bounds import Bounds, bounds
from gatedrnn.theory.descent import OPTIMISERS, descend, first_step_below
from gatedrnn.theory.flow import Flow, flow, flow_of_output
from gatedrnn.theory.one_variable import OneVariable
from gatedrnn.theory.rates import Fit, Law, exponent, fit, law_of, solve_fast_law
from gatedrnn.theory.reproduce import check_arguments, run
from gatedrnn.theory.saturation import (
    Comparison,
    Properties,
    compare,
    gradient_ratio,
    log_complement_ratio,
    properties,
)
from gatedrnn.theory.toy import ToyProblem

__all__ = [
    "OPTIMISERS",
    "Bounds",
    "Comparison",
    "Fit",
    "Flow",
    "Law",
    "OneVariable",
    "Properties",
    "ToyProblem",
    "bounds",
    "check_arguments",
    "compare",
    "descend",
    "exponent",
    "first_step_below",
    "fit",
    "flow",
    "flow_of_output",
    "gradient_ratio",
    "law_of",
    "log_complement_ratio",
    "properties",
    "run",
    "solve_fast_law",
]
