"""Every tolerance of the tests of cells, engines and layers, one table per comparison and dtype, each with its reason.

Each entry is used both as rtol and as atol.
"""

from __future__ import annotations

from typing import Any

import torch

#: Against torch.nn, T ≤ 100: values, states and gradients. The order of the sums differs, nothing else: a few hundred
#: roundings of numbers of order 1.
TORCH = {torch.float64: 1e-10, torch.float32: 2e-5}

#: Against the equations written a second time. The second form f∘c + i∘g subtracts where the cell does not, which
#: costs an ulp a step; gradients sum over all steps and rows.
EQUATIONS = {torch.float64: 1e-10, torch.float32: 2e-5}

#: The same computation cut differently (chunks, steps, rows, blocks computed again): only the shape of the matrix
#: products differs, and with it the order of their sums.
REGROUPED = {torch.float64: 1e-12, torch.float32: 2e-6}

#: A 16-bit layer against float32: one rounding (2⁻⁹ for bfloat16, 2⁻¹² for float16) per product and step, of numbers
#: of order 1, over 10 steps.
HALF = {torch.bfloat16: 5e-2, torch.float16: 1e-2}

#: Forget values written into a bias and read back by φ, and time scales: the rounding of the bias (eps·|b|) times
#: the slope of the logit, which is below 20 for |b| ≤ 3 and every gate.
BIAS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.2}

#: JANET's input factor and its slope in float32 where |logit f| is about 20: the rounding of the logit (20 eps) and of
#: what leads to it, in units of the largest entry.
BETA = 1e-5

#: Rise and decay over 1e5 steps.
LONG_MEMORY = 0.01

#: Statistics of random draws under a fixed seed, in standard errors.
SIGMAS = 5.0

#: Slack on bounds that hold in exact arithmetic: a few ulp of numbers of order 1.
BOUND = {torch.float64: 1e-12, torch.float32: 1e-5}


def assert_close(actual: Any, expected: Any, table: dict[torch.dtype, float], dtype: torch.dtype) -> None:
    """Nested tensors are equal within the entry of the table; shapes and dtypes are equal too."""
    torch.testing.assert_close(actual, expected, rtol=table[dtype], atol=table[dtype])
