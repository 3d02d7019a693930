"""The cells' equations a second time, plainly: f∘c + i∘g, one row and one step after the other, float64.

Nothing here is taken from the library but names of parameters. Weights are given under these names, without the
ending of the layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Weights = dict[str, Tensor]
Values = dict[str, Tensor]


def sigma(s: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-s))


def _softsign(z: Tensor) -> Tensor:
    # |z| by cases: torch's abs has gradient 0 at 0.
    half = z / 2
    return (half / (1 + torch.where(half >= 0, half, -half)) + 1) / 2


def _refine(z: Tensor, z_r: Tensor) -> Tensor:
    f, r = sigma(z), sigma(z_r)
    return r * (1 - (1 - f) ** 2) + (1 - r) * f**2


#: φ by the gate's name.
PHI: dict[str, Callable[..., Tensor]] = {
    "sigmoid": sigma,
    "softsign": _softsign,
    "fast": lambda z: sigma(torch.sinh(z)),
    "iterated_fast": lambda z: sigma(torch.sinh(torch.sinh(z))),
    "polynomial": lambda z: sigma(z + z**3),
    "refine": _refine,
}


def _affine(w: Weights, weight: str, x: Tensor, bias: str | None = None) -> Tensor:
    product = w[weight] @ x
    return product + w[bias] if bias in w else product


def _fused(w: Weights, x: Tensor, h: Tensor, aux: str = "") -> Tensor:
    return _affine(w, f"weight_ih{aux}", x, f"bias_ih{aux}") + _affine(w, f"weight_hh{aux}", h, f"bias_hh{aux}")


def _auxiliary(w: Weights, x: Tensor, h: Tensor) -> list[Tensor]:
    return [_fused(w, x, h, "_aux")] if "weight_ih_aux" in w else []


def lstm(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor, c: Tensor, tied: bool = False) -> Any:
    blocks = _fused(w, x, h).split(len(c))
    if tied:
        z_f, z_g, z_o = blocks
        f = phi(z_f, *_auxiliary(w, x, h))
        i = 1 - f
    else:
        z_i, z_f, z_g, z_o = blocks
        f = phi(z_f, *_auxiliary(w, x, h))
        i = sigma(z_i)
    g, o = torch.tanh(z_g), sigma(z_o)
    c = f * c + i * g
    h = o * torch.tanh(c)
    if "weight_hr" in w:
        h = w["weight_hr"] @ h
    return (h, c), {"forget": f, "input": i, "output": o}


def gru(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor) -> Any:
    x_r, x_z, x_n = _affine(w, "weight_ih", x, "bias_ih").split(len(h))
    h_r, h_z, h_n = _affine(w, "weight_hh", h, "bias_hh").split(len(h))
    z = phi(x_z + h_z, *_auxiliary(w, x, h))
    n = torch.tanh(x_n + sigma(x_r + h_r) * h_n)
    return ((1 - z) * n + z * h,), {"forget": z}


def janet(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor, beta: float = 1.0) -> Any:
    z_f, z_g = _fused(w, x, h).split(len(h))
    f = phi(z_f, *_auxiliary(w, x, h))
    i = sigma(beta - torch.log(f / (1 - f)))
    return (f * h + i * torch.tanh(z_g),), {"forget": f, "input": i}


def ugrnn(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor) -> Any:
    z_f, z_c = _fused(w, x, h).split(len(h))
    g = phi(z_f, *_auxiliary(w, x, h))
    return (g * h + (1 - g) * torch.tanh(z_c),), {"forget": g}


def minimal_rnn(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor) -> Any:
    z = torch.tanh(_affine(w, "W", x, "b_z"))
    aux = [_affine(w, "U_aux", h) + _affine(w, "V_aux", z, "b_u_aux")] if "U_aux" in w else []
    u = phi(_affine(w, "U", h) + _affine(w, "V", z, "b_u"), *aux)
    return (u * h + (1 - u) * z,), {"forget": u}


def fastgrnn(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor) -> Any:
    common = w["W"] @ x + w["U"] @ h
    b_z, b_h = w.get("b_z", 0.0), w.get("b_h", 0.0)
    aux = [w["W_aux"] @ x + w["U_aux"] @ h + w.get("b_z_aux", 0.0)] if "W_aux" in w else []
    z = phi(common + b_z, *aux)
    candidate = torch.tanh(common + b_h)
    return ((sigma(w["zeta"]) * (1 - z) + sigma(w["nu"])) * candidate + z * h,), {"forget": z}


def mgu(phi: Callable[..., Tensor], w: Weights, x: Tensor, h: Tensor) -> Any:
    size = len(h)
    x_f, x_g = _affine(w, "weight_ih", x, "bias_ih").split(size)
    b_f, b_g = w["bias_hh"].split(size) if "bias_hh" in w else (0.0, 0.0)
    u_f, u_g = w["weight_hh"].split(size)
    f = phi(x_f + u_f @ h + b_f, *_auxiliary(w, x, h))
    candidate = torch.tanh(x_g + u_g @ ((1 - f) * h) + b_g)
    return (f * h + (1 - f) * candidate,), {"forget": f}


def nru(phi: None, w: Weights, x: Tensor, h: Tensor, m: Tensor, memory_size: int, heads: int, relu: bool) -> Any:
    def positive(v: Tensor) -> Tensor:
        return torch.where(v > 0, v, 0.0)

    h = positive(_affine(w, "W_h", torch.cat([x, h, m]), "b_h"))
    u = torch.cat([h, m])
    change = torch.zeros_like(m)
    s = math.isqrt(memory_size * heads)
    for sign, scale, direction in ((1, "a", "va"), (-1, "b", "vb")):
        strength = _affine(w, f"W_{scale}", u, f"b_{scale}")
        pq = _affine(w, f"W_{direction}", u, f"b_{direction}")
        table = torch.outer(pq[:s], pq[s:]).reshape(heads, memory_size)
        if relu:
            strength, table = positive(strength), positive(table)
        for k in range(heads):
            fifth_powers = (table[k].abs() ** 5).sum()
            if 0 < fifth_powers <= 3.4028234663852886e38:  # the largest float32
                change = change + sign * strength[k] * table[k] / fifth_powers**0.2 / heads
    return (h, m + change), {}


#: One step of one row by the cell's name: (φ, weights, x, *state, **options) → (state, values of the gates).
EQUATIONS: dict[str, Callable[..., Any]] = {
    "lstm": lstm,
    "gru": gru,
    "janet": janet,
    "nru": nru,
    "ugrnn": ugrnn,
    "minimal_rnn": minimal_rnn,
    "fastgrnn": fastgrnn,
    "mgu": mgu,
}


def run_row(step: Callable[..., Any], x: Tensor, state: tuple[Tensor, ...]) -> tuple[list[Any], list[Values]]:
    """The states and gates of all steps of one row x (n, I), for a step with φ, weights and options filled in."""
    states, values = [], []
    for x_t in x:
        state, gates = step(x_t, *state)
        states.append(state)
        values.append(gates)
    return states, values


def run_layer(
    step: Callable[..., Any],
    names: tuple[str, ...],
    weights: dict[str, Weights],
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: list[int] | None = None,
) -> tuple[Tensor, tuple[Tensor, ...], Values]:
    """All layers and directions over (T, B, I), row by row: output, final states, states and gates of all steps.

    ``step`` takes the weights of a layer first; ``weights`` are keyed l0, l0_reverse, l1 …; ``names`` are the
    state's.
    """
    lengths = lengths or [len(x)] * x.shape[1]
    directions = 2 if "l0_reverse" in weights else 1
    finals: list[list[Tensor]] = [[] for _ in names]
    collected: dict[str, list[Tensor]] = {}
    for layer in range(len(weights) // directions):
        outputs = []
        for reverse in range(directions):
            index = layer * directions + reverse
            w = weights[f"l{layer}" + ("_reverse" if reverse else "")]
            rows: dict[str, list[Tensor]] = {}
            ends: list[Any] = []
            for b, n in enumerate(lengths):
                row = x[:n, b].flip(0) if reverse else x[:n, b]
                states, values = run_row(lambda *a, w=w: step(w, *a), row, tuple(s[index, b] for s in state))
                ends.append(states[-1])
                sequences = {name: torch.stack([s[k] for s in states]) for k, name in enumerate(names)}
                sequences |= {name: torch.stack([v[name] for v in values]) for name in values[0]}
                for name, sequence in sequences.items():
                    sequence = sequence.flip(0) if reverse else sequence
                    padding = sequence.new_zeros(len(x) - n, sequence.shape[-1])
                    rows.setdefault(name, []).append(torch.cat([sequence, padding]))
            for k in range(len(names)):
                finals[k].append(torch.stack([end[k] for end in ends]))
            for name, sequence_rows in rows.items():
                collected.setdefault(name, []).append(torch.stack(sequence_rows, 1))
            outputs.append(collected["h"][-1])
        x = torch.cat(outputs, -1)
    stacked = {name: torch.stack(sequences) for name, sequences in collected.items()}
    return x, tuple(torch.stack(final) for final in finals), stacked
