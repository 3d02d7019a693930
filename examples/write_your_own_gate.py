"""A custom gate σ∘α: write α and α′, check it, use it in any layer.

Run it: python examples/write_your_own_gate.py
"""

from dataclasses import dataclass

import torch
from torch import Tensor

import gatedrnn
from gatedrnn.gates import SigmoidOf, check_gate


@dataclass(frozen=True)
class HalfFast(SigmoidOf):
    """Between the sigmoid and the fast gate: α(z) = (z + sinh z) / 2."""

    saturation = "O(e^-e^z)"

    def alpha(self, z: Tensor) -> Tensor:
        return 0.5 * (z + torch.sinh(z))

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 0.5 * (1.0 + torch.cosh(z))


gate = HalfFast()
check_gate(gate)  # odd, increasing, α′(0) = 1, correct derivative; raises an error otherwise
print("bias for a time scale of 1000 steps:", gate.inverse_complement(1e-3).item())

layer = gatedrnn.LSTM(3, 5, forget_gate=gate, tied=True, forget_init=gatedrnn.inits.Chrono(t_max=1000))
output, (h_n, c_n) = layer(torch.randn(20, 2, 3))
output.sum().backward()
print(layer)
print("time scales:", gatedrnn.time_scales(layer)["l0"])
