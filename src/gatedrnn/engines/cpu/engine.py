"""The CPU engine: native kernels for LSTM, GRU and JANET with every built-in gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import _disable_current_modes

from gatedrnn.engines.cpu import calls, library, ops
from gatedrnn.engines.cpu.names import cell_name, cell_named, gate_name, gate_named
from gatedrnn.engines.interface import Engine, Scan, ScanResult
from gatedrnn.engines.packing import packed, packed_places, padded, padded_scan

_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class CPUEngine(Engine):
    """float32 and float64 natively; 16-bit input is computed in float32."""

    name: ClassVar[str] = "cpu"

    def refuses(self, scan: Scan) -> str | None:
        if cell_name(scan.cell) is None:
            return f"it has no kernel for the cell {scan.cell!r}"
        if gate_name(scan.gate) is None:
            return f"it has no kernel for the gate {scan.gate!r}"
        return _refused_tensors(scan) or self.missing()

    def missing(self) -> str | None:
        return library.reason_missing()

    def wrong_setting(self) -> str | None:
        return library.wrong_setting()

    def describe(self, scan: Scan) -> str:
        threads = torch.get_num_threads()
        return (
            f"native {cell_name(scan.cell)} kernel with the {gate_name(scan.gate)} gate, "
            f"{library.instruction_set()}, {threads} thread{'s' if threads > 1 else ''}"
        )

    def run(self, scan: Scan) -> ScanResult:
        dtype = torch.float64 if scan.input.dtype == torch.float64 else torch.float32
        # float32 parameters and states pass as they are; only 16-bit ones are copied.
        input, weights = _to(dtype, scan.input), {name: _to(dtype, w) for name, w in scan.weights.items()}
        h_0, c_0 = [*(_to(dtype, s) for s in scan.state), None][:2]
        assert h_0 is not None
        keep = torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(scan))
        cell = cell_name(scan.cell)
        assert cell is not None
        # The operator costs as much as a short scan; where nobody looks on, its function alone will do.
        watched = keep or _watched() or not _plain(scan)
        function: Callable[..., tuple[Tensor, ...]] = ops.scan if watched else calls.run_forward
        output, h_n, c_n, all_c, _, _ = function(
            input,
            h_0,
            c_0,
            *(weights.get(name) for name in library.WEIGHTS),
            None if scan.lengths is None else scan.lengths.to(torch.int64),
            scan.batch_sizes,
            cell,
            gate_name(scan.gate),
            list(getattr(scan.gate, "coefficients", ())),
            float(getattr(scan.cell, "beta", 0.0)),
            scan.reverse,
            keep,
            scan.recompute,
            bool(scan.collect) and c_0 is not None,
        )
        state = (h_n,) if c_0 is None else (h_n, c_n)
        collected = {}
        if scan.collect:
            collected = {"h": output} if c_0 is None else {"h": output, "c": all_c}
            with_lengths = replace(scan, input=input)
            if scan.batch_sizes is not None:
                with_lengths, places = padded_scan(with_lengths)
                collected = {name: padded(value, places, scan.batch_sizes) for name, value in collected.items()}
            if scan.collect == "gates":
                collected.update(_gate_values(with_lengths, h_0, weights, collected["h"]))
        return ScanResult(
            _to(scan.input.dtype, output),
            tuple(_to(given.dtype, s) for s, given in zip(state, scan.state, strict=True)),
            {name: _to(scan.state[-1].dtype, value) for name, value in collected.items()},
        )


def _to(dtype: torch.dtype, tensor: Tensor) -> Tensor:
    """As Tensor.to, whose own test of the dtype costs a microsecond."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def _tensors(scan: Scan) -> Iterator[Tensor]:
    yield scan.input
    yield from scan.state
    yield from scan.weights.values()


def _refused_tensors(scan: Scan) -> str | None:
    if not all(t.is_cpu for t in _tensors(scan)):
        return f"the tensors are on {scan.input.device}"
    dtypes = {t.dtype for t in _tensors(scan)}
    if not dtypes.issubset(_DTYPES) or (torch.float64 in dtypes and len(dtypes) > 1):
        return f"it takes float32, float64, bfloat16 and float16, not {', '.join(sorted(map(str, dtypes)))}"
    if torch.compiler.is_compiling():
        return None  # the tracer's own tensors are plain where the program runs
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "it does not run inside torch.func transforms (vmap, grad, jvp)"
    for tensor in _tensors(scan):
        if type(tensor) not in (Tensor, Parameter) and not _is_tracer(tensor):
            return f"it does not take the tensor subclass {type(tensor).__name__}"
        if tensor.layout is not torch.strided or tensor.is_nested:
            return "it takes dense tensors only"
        if torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            return "it has no forward-mode derivative"
    return None


def _watched() -> bool:
    """Whether torch compiles, traces or otherwise intercepts what is called."""
    return (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._get_tracing_state() is not None
    )


def _plain_keys() -> frozenset[int]:
    """The dispatch keys of tensors whose memory holds their values, with and without autograd."""
    found = []
    with _disable_current_modes():  # the package may be imported under a mode that makes other tensors
        for inference in (False, True):
            with torch.inference_mode(inference):
                found.append(torch._C._dispatch_keys(torch.empty(0, device="cpu")).raw_repr())
    return frozenset(found)


_PLAIN = _plain_keys()


def _plain(scan: Scan) -> bool:
    """Whether the memory of all tensors holds their values: no negative view, zero tensor or wrapper of any kind."""
    tensors = _tensors(scan) if scan.lengths is None else (*_tensors(scan), scan.lengths)
    return all(torch._C._dispatch_keys(tensor).raw_repr() in _PLAIN for tensor in tensors)


def _is_tracer(tensor: Tensor) -> bool:
    """Whether torch itself put the subclass there, to trace a program for export."""
    return type(tensor).__module__.startswith("torch._subclasses.")


def _gate_values(scan: Scan, h_0: Tensor, weights: Mapping[str, Tensor], output: Tensor) -> dict[str, Tensor]:
    """The gates' values at all steps at once, in plain torch: with h known, no step waits for another."""
    steps, input = output.shape[0], scan.input
    before = torch.cat([output[1:], h_0[None]] if scan.reverse else [h_0[None], output[:-1]])
    inside: Tensor | None = None
    if scan.lengths is not None:
        time = torch.arange(steps, device=output.device)[:, None, None]
        lengths = scan.lengths[None, :, None]
        inside = time < lengths
        input = torch.where(inside, input, 0.0)  # what lies past the end must not reach the weights' gradient
        if scan.reverse:
            before = torch.where(time == lengths - 1, h_0[None], before)
    w = scan.cell.prepare(weights)
    a = scan.cell.preactivations(w, scan.cell.project(w, input), (before, *scan.state[1:]))
    values = scan.cell.gates(scan.gate, a)
    return {name: value if inside is None else torch.where(inside, value, 0.0) for name, value in values.items()}


def _reference_scan(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    weights: Mapping[str, Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    coefficients: Sequence[float],
    beta: float,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The same scan by the reference engine, for the second derivative."""
    from gatedrnn.engines.reference import ReferenceEngine

    projection = weights.get("weight_hr")
    made = cell_named(cell, 0 if projection is None else projection.shape[0], beta)
    chosen = gate_named(gate, coefficients)
    state = (h_0,) if c_0 is None else (h_0, c_0)
    result = ReferenceEngine().run(
        Scan(made, chosen, input, state, weights, lengths, reverse, collect=True, batch_sizes=batch_sizes)
    )
    if c_0 is None:
        return result.output, result.state[0], None, None
    all_c = result.collected["c"]
    if batch_sizes is not None:
        all_c = packed(all_c, packed_places(batch_sizes)[0])
    return result.output, result.state[0], result.state[1], all_c


ops.use_reference(_reference_scan)
