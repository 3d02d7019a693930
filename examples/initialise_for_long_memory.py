"""Start a layer with memories up to a chosen length, for any gate.

Run it: python examples/initialise_for_long_memory.py
"""

import torch

import gatedrnn
from gatedrnn.inits import Chrono, Constant, PowerLaw, Uniform

torch.manual_seed(0)
for init in (Constant(0.999), Chrono(t_max=1000), Uniform(), PowerLaw(shape=0.56)):
    for gate in ("sigmoid", "fast"):
        layer = gatedrnn.GRU(4, 64, forget_gate=gate, forget_init=init)
        scales = gatedrnn.time_scales(layer)["l0"]
        print(f"{init!s:30} {gate:8} time scales {scales.min():8.2f} … {scales.max():9.2f} steps")

# A unit with a time scale of T keeps e^(−n/T) of what it stored after n steps.
lstm = gatedrnn.LSTM(1, 1, tied=True, forget_gate="fast", forget_init=Constant(0.999))
with torch.no_grad():
    for name, parameter in lstm.named_parameters():
        if name.startswith("weight"):
            parameter.zero_()
        else:
            parameter[1:] = 0  # all but the forget gate: the candidate is tanh(0)
    _, (_, c_n) = lstm(torch.zeros(500, 1, 1), (torch.zeros(1, 1, 1), torch.ones(1, 1, 1)))
print(f"after 500 steps a stored 1 has become {c_n.item():.4f}; 0.999^500 = {0.999**500:.4f}")
assert abs(c_n.item() - 0.999**500) < 1e-4
