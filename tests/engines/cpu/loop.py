"""The scan once more, as a plain loop over rows and steps: written from the equations, independent of the package."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gatedrnn.engines.cpu import library, ops
from gatedrnn.engines.cpu.kernel import Kernel
from gatedrnn.engines.operator import Options

#: α(z) = z + z³/3, for the gate that is a program.
CUBIC = "mul,0,0;mul,1,0;div,2,#4008000000000000;add,0,3;add,1,#3ff0000000000000;=,4,5"
CELLS, GATES = tuple(library.FACTS.cells), tuple(library.FACTS.gates)
WEIGHTS = library.FACTS.weights


def has_memory(cell: str) -> bool:
    return library.FACTS.cells[cell].states == 2


@dataclass
class Case:
    cell: str = "lstm"
    gate: str = "sigmoid"
    steps: int = 3
    batch: int = 2
    inputs: int = 3
    hidden: int = 4
    projection: int = 0
    bias: bool = True
    reverse: bool = False
    ragged: bool = False
    #: The ragged rows without their padding, as a PackedSequence has them.
    packed: bool = False
    recompute: bool = False
    collect: bool = False
    dtype: torch.dtype = torch.float64
    beta: float = 1.0
    coefficients: list[float] = field(default_factory=list)
    scale: float = 1.0
    #: Of the NRU: memory_size, heads and whether there is a ReLU.
    memory: tuple[int, ...] = (9, 4, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cell == "nru":
            self.gate = "sigmoid"  # it has no gate
        if self.cell == "minimal_rnn":
            self.inputs = self.hidden  # the kernel's input is the candidate

    def tensors(self) -> dict[str, Tensor | None]:
        """input, h_0, c_0, the weights and lengths, drawn from the seed in float64."""
        g = torch.Generator().manual_seed(self.seed)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=g, dtype=torch.float64)

        H, out = self.hidden, self.projection or self.hidden
        k = self.scale / math.sqrt(H)
        memory = self.memory if self.cell == "nru" else ()
        cell = Kernel(self.cell, self.gate, (), beta=1.0, memory=memory).made_cell(self.projection)
        shapes = cell.parameter_shapes(self.inputs, H, self.bias, self.gate == "refine")
        made: dict[str, Tensor | None] = {
            "input": draw(self.steps, self.batch, self.inputs),
            "h_0": draw(self.batch, out),
            "c_0": draw(self.batch, memory[0] if memory else H) if has_memory(self.cell) else None,
            **{name: draw(*shapes[name]) * k if name in shapes else None for name in WEIGHTS},
            "lengths": torch.randint(1, self.steps + 1, (self.batch,), generator=g) if self.ragged else None,
        }
        return {n: t if t is None or n == "lengths" else t.to(self.dtype).to(torch.float64) for n, t in made.items()}

    def kernel(self, t: dict[str, Tensor | None]) -> Kernel:
        """The kernel for the weights that are there."""
        names = tuple(name for name in WEIGHTS if t[name] is not None)
        program = CUBIC if self.gate == "program" else ""
        memory = self.memory if self.cell == "nru" else ()
        return Kernel(self.cell, self.gate, names, tuple(self.coefficients), self.beta, program, memory)

    def with_dtype(self, dtype: torch.dtype) -> Case:
        return replace(self, dtype=dtype)


def alpha(gate: str, z: Tensor, coefficients: list[float]) -> Tensor:
    if gate == "softsign":
        return z.sign() * z.abs().log1p()
    if gate == "fast":
        return z.sinh()
    if gate == "iterated_fast":
        return z.sinh().sinh()
    if gate == "program":
        return z + z**3 / 3
    if gate == "polynomial":
        return z + sum(c * z ** (2 * k + 3) for k, c in enumerate(coefficients))
    return z


def forget(case: Case, z: Tensor, aux: Tensor | None) -> Tensor:
    if case.gate == "refine":
        assert aux is not None
        f, r = z.sigmoid(), aux.sigmoid()
        return 2 * r * f + (1 - 2 * r) * f * f
    return alpha(case.gate, z, case.coefficients).sigmoid()


def loop(case: Case, t: dict[str, Tensor | None]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """output, h_n, c_n, cells, differentiable."""
    x, h, c = t["input"], t["h_0"], t["c_0"]
    assert x is not None and h is not None
    steps, batch = x.shape[:2]
    lengths = torch.full((batch,), steps) if t["lengths"] is None else t["lengths"]
    rows, time = torch.arange(batch), torch.arange(steps)[:, None]
    # place[k, b]: the time of step k in row b, and the step of time k: the same map both ways.
    place = (lengths - 1 - time if case.reverse else time.expand(steps, batch)).clamp(min=0)
    active = (time < lengths)[..., None]
    of_step = torch.stack([x[place[k], rows] for k in range(steps)]).unbind() if steps else ()
    all_h, all_c = [], []
    for k, x_k in enumerate(of_step):
        new_h, new_c = step(case, t, x_k, h, c)
        h = torch.where(active[k], new_h, h)
        all_h.append(h)
        if c is not None:
            c = torch.where(active[k], new_c, c)
            all_c.append(c)

    def in_time(sequence: list[Tensor]) -> Tensor:
        stacked = torch.stack(sequence)
        return torch.where(active, stacked[place, rows[None].expand_as(place)], 0.0)

    return in_time(all_h), h, c, in_time(all_c) if all_c else None


def step(
    case: Case, t: dict[str, Tensor | None], x: Tensor, h: Tensor, c: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    def product(weight: str, bias: str, v: Tensor) -> Tensor:
        return torch.nn.functional.linear(v, t[weight], t[bias])

    if case.cell == "nru":
        assert c is not None
        h = torch.relu(product("weight_ih", "bias_ih", torch.cat([x, h, c], -1)))
        return h, c + heads(case, product("weight_hh", "bias_hh", torch.cat([h, c], -1)))
    aux = None
    if case.gate == "refine":
        aux = product("weight_ih_aux", "bias_ih_aux", x) + product("weight_hh_aux", "bias_hh_aux", h)
    if case.cell == "fastgrnn":
        b_z, b_h, zeta, nu = t["bias_ih"].chunk(4)
        z, g = (x @ t["weight_ih"].T + h @ t["weight_hh"].T).chunk(2, -1)
        f = forget(case, z + b_z, aux)
        return (zeta.sigmoid() * (1 - f) + nu.sigmoid()) * torch.tanh(g + b_h) + f * h, None
    from_x, from_h = product("weight_ih", "bias_ih", x), product("weight_hh", "bias_hh", h)
    if case.cell == "minimal_rnn":
        f = forget(case, from_x + from_h, aux)
        return f * h + (1 - f) * x, None
    if case.cell == "gru":
        r_x, z_x, n_x = from_x.chunk(3, -1)
        r_h, z_h, n_h = from_h.chunk(3, -1)
        f = forget(case, z_x + z_h, aux)
        n = torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)
        return f * h + (1 - f) * n, None
    if case.cell == "mgu":
        z_x, g_x = from_x.chunk(2, -1)
        f = forget(case, z_x + from_h.chunk(2, -1)[0], aux)
        g = torch.tanh(g_x + product("weight_hh", "bias_hh", (1 - f) * h).chunk(2, -1)[1])
        return f * h + (1 - f) * g, None
    a = from_x + from_h
    if case.cell == "ugrnn":
        z, g = a.chunk(2, -1)
        f = forget(case, z, aux)
        return f * h + (1 - f) * torch.tanh(g), None
    if case.cell == "janet":
        z, g = a.chunk(2, -1)
        f = forget(case, z, aux)
        return f * h + torch.sigmoid(case.beta - torch.logit(f)) * torch.tanh(g), None
    assert c is not None
    if case.cell == "lstm":
        i, z, g, o = a.chunk(4, -1)
        f = forget(case, z, aux)
        c = f * c + torch.sigmoid(i) * torch.tanh(g)
    else:
        z, g, o = a.chunk(3, -1)
        f = forget(case, z, aux)
        c = f * c + (1 - f) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return (h if t["weight_hr"] is None else h @ t["weight_hr"].T), c


def heads(case: Case, a: Tensor) -> Tensor:
    """The NRU's change of the memory."""
    size, K, relu = case.memory
    s = math.isqrt(size * K)
    rectified = torch.relu if relu else torch.clone
    alpha, beta, *factors = a.split([K, K, s, s, s, s], -1)

    def change(amplitude: Tensor, p: Tensor, q: Tensor) -> Tensor:
        rows = rectified(torch.einsum("bi,bj->bij", p, q)).reshape(-1, K, size)
        norm = (rows.abs() ** 5).sum(-1, keepdim=True).clamp(min=1e-60) ** 0.2
        return (rectified(amplitude)[..., None] * rows / norm).mean(-2)

    return change(alpha, *factors[:2]) - change(beta, *factors[2:])


def arguments(case: Case, t: dict[str, Tensor | None], keep: bool = True, text: str = "") -> tuple:
    """Of the operator. The text of the kernel may be given, where torch compiles: as the engine does, it makes none."""
    kernel = case.kernel(t)
    state = [t[name] for name in ("h_0", "c_0") if t[name] is not None]
    options = (case.reverse, keep, case.recompute, case.collect and has_memory(case.cell))
    return t["input"], state, [t[name] for name in kernel.weights], t["lengths"], None, text or str(kernel), *options


def scan(arguments: tuple, operator: bool) -> tuple[Tensor, ...]:
    """output, h_n, c_n, cells; c_n is empty for a cell without a memory. By the operator, or without it."""
    output, finals, cells = ops.OPERATOR.run(*arguments[:5], Options(*arguments[5:]), alone=not operator)
    if cells is None:
        cells = output.new_empty((0,) * output.dim())
    return output, finals[0], finals[1] if len(finals) > 1 else output.new_empty(0, 0), cells


def native(case: Case, t: dict[str, Tensor | None], keep: bool = True, operator: bool = True) -> tuple[Tensor, ...]:
    """output, h_n, c_n, cells of the library; the empty ones are there too."""
    if case.packed:
        return native_packed(case, t, keep)
    return scan(arguments(case, t, keep), operator)


def plain(case: Case, t: dict[str, Tensor | None]) -> tuple[Tensor, ...]:
    """The same without the operator."""
    return native(case, t, operator=False)


def native_packed(case: Case, t: dict[str, Tensor | None], keep: bool) -> tuple[Tensor, ...]:
    """The operator on packed rows, its results padded again and in the order given."""
    lengths, order = t["lengths"].sort(descending=True, stable=True)
    original = order.argsort()
    active = torch.arange(case.steps)[:, None] < lengths
    sizes = active.sum(1)
    states = {n: None if t[n] is None else t[n][order] for n in ("h_0", "c_0")}
    x, state, weights, _, _, *options = arguments(case, {**t, **states, "input": t["input"][:, order][active]}, keep)
    output, h_n, c_n, cells = scan((x, state, weights, None, sizes[sizes > 0], *options), operator=True)

    def padded(rows: Tensor) -> Tensor:
        if not rows.numel():
            return rows
        return rows.new_zeros(*active.shape, rows.shape[-1]).masked_scatter(active[..., None], rows)[:, original]

    return padded(output), h_n[original], c_n[original] if c_n.numel() else c_n, padded(cells)


def leaves(t: dict[str, Tensor | None], dtype: torch.dtype) -> dict[str, Tensor | None]:
    return {
        n: v if v is None or n == "lengths" else v.detach().to(dtype).clone().requires_grad_() for n, v in t.items()
    }


def run(case: Case, function, t: dict[str, Tensor | None], dtype: torch.dtype) -> dict[str, Tensor]:
    """Results and gradients of a scan under one fixed loss that weighs every result, in float64."""
    t = leaves(t, dtype)
    results = [r for r in function(case, t) if r is not None and r.numel()]
    if not (case.collect and has_memory(case.cell)):
        results = results[: 3 if has_memory(case.cell) else 2]
    g = torch.Generator().manual_seed(case.seed + 1)
    loss = sum((r * torch.randn(r.shape, generator=g, dtype=torch.float64).to(dtype)).sum() for r in results)
    names = [n for n, v in t.items() if v is not None and n != "lengths"]
    gradients = torch.autograd.grad(loss, [t[n] for n in names])
    found = dict(zip(("output", "h_n", "c_n", "cells"), results, strict=False))
    found.update({f"grad {n}": v for n, v in zip(names, gradients, strict=True)})
    return {n: v.detach().double() for n, v in found.items()}


def worst(case: Case) -> tuple[float, str]:
    """The largest error of the native scan, relative to the largest entry of each result, and where it is."""
    t = case.tensors()
    expected, found = run(case, loop, t, torch.float64), run(case, native, t, case.dtype)
    assert expected.keys() == found.keys()
    errors = {
        n: ((found[n] - e).abs().max() / (e.abs().max() + 1e-3)).item() if e.numel() else 0.0
        for n, e in expected.items()
    }
    assert all(v.isfinite().all() for v in found.values()), f"not finite: {case}"
    name = max(errors, key=errors.__getitem__)
    return errors[name], name
