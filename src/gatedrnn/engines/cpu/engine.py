"""The CPU engine: native kernels, with every built-in gate and every gate whose formula can be traced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter

from gatedrnn.cells import Cell
from gatedrnn.engines.afterwards import preactivations_of
from gatedrnn.engines.cpu import calls, library, ops
from gatedrnn.engines.cpu.kernel import BUILT_IN, CELLS, Kernel, kernel_of
from gatedrnn.engines.cpu.lowered import LOWERED
from gatedrnn.engines.interface import Engine, Repeat, Scan, ScanResult, wants_gradient
from gatedrnn.engines.operator import Options, watched
from gatedrnn.engines.packing import padded, padded_scan
from gatedrnn.gates import Gate
from gatedrnn.gates.stable import is_tracer

_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class CPUEngine(Engine):
    """float32 and float64 natively; 16-bit input is computed in float32."""

    name: ClassVar[str] = "cpu"

    def refuses(self, scan: Scan) -> str | None:
        return _refused_tensors(scan) or _refused_kernel(*_kind(scan)) or self.missing()

    def missing(self) -> str | None:
        return library.reason_missing()

    def wrong_setting(self) -> str | None:
        return library.wrong_setting()

    def describe(self, scan: Scan) -> str:
        kernel, threads = kernel_of(*_kind(scan)), torch.get_num_threads()
        assert isinstance(kernel, Kernel)
        gate = f" with the {kernel.gate} gate" if scan.cell.takes_gate else ""
        if kernel.program:
            gate = f" with the gate {scan.gate!r} as a native program of {kernel.program.count(';')} instructions"
        return (
            f"native {kernel.cell} kernel{gate}, "
            f"{library.instruction_set()}, {threads} thread{'s' if threads > 1 else ''}"
        )

    def run(self, scan: Scan) -> ScanResult:
        cell, gate, names, dtype = _kind(scan)
        alone = not watched() and scan.plain
        input, state, own = scan.input, scan.state, scan.weights
        if any(t.dtype is not dtype for t in scan.tensors):  # 16-bit ones are copied, float32 is passed unchanged
            input, own = _to(dtype, input), {name: _to(dtype, w) for name, w in own.items()}
            state = tuple(_to(dtype, s) for s in state)
        keep = wants_gradient(scan)
        lengths = None if scan.lengths is None else scan.lengths.to(torch.int64)
        memory = len(state) > 1
        given, weights = input, own
        if lowering := LOWERED.get(type(cell)):
            if lengths is not None:  # values past the end, such as NaN, must not reach the weights
                time = torch.arange(input.shape[0], device=input.device).unsqueeze(-1)  # len() would be fixed by export
                given = torch.where((time < lengths).unsqueeze(-1), input, 0.0)
            with torch.autocast("cpu", enabled=False):  # what the kernel would compute stays in its dtype
                given, weights = lowering.arguments(cell, own, given)
            names = tuple(weights)
        text = _text(cell, gate, names, dtype)
        options = Options(text, scan.reverse, keep, scan.recompute, bool(scan.collect) and memory)
        output, finals, all_c = ops.OPERATOR.run(
            given, state, list(weights.values()), lengths, scan.batch_sizes, options, alone
        )
        if not scan.collect and output.dtype is scan.input.dtype and all(s.dtype is dtype for s in scan.state):
            return ScanResult(output, tuple(finals), {})
        collected = {}
        if scan.collect:
            collected = {"h": output} if all_c is None else {"h": output, cell.states[-1]: all_c}
            with_lengths = replace(scan, input=input)
            if scan.batch_sizes is not None:
                with_lengths, places = padded_scan(with_lengths)
                collected = {name: padded(value, places, scan.batch_sizes) for name, value in collected.items()}
            if scan.collect == "gates" and scan.cell.takes_gate:
                collected.update(_gate_values(with_lengths, state[0], own, collected["h"]))
        return ScanResult(
            _to(scan.input.dtype, output),
            tuple(_to(given.dtype, s) for s, given in zip(finals, scan.state, strict=True)),
            {name: _to(scan.state[-1].dtype, value) for name, value in collected.items()},
        )

    def repeat(self, scan: Scan) -> Repeat | None:
        cell, gate, names, dtype = _kind(scan)
        tensors = scan.tensors
        if type(cell) in LOWERED or not all(t.dtype is dtype and t.numel() for t in tensors):
            return None
        if scan.lengths is not None or scan.batch_sizes is not None or scan.collect:
            return None
        text = _text(cell, gate, names, dtype)
        if wants_gradient(scan):
            sizes = [s.shape[-1] for s in scan.state]
            return _Recorded(Options(text, scan.reverse, True, scan.recompute, False), sizes)
        return calls.Repeated(text, scan.input, scan.state, list(scan.weights.values()), scan.reverse)


class _Recorded:
    """Scans that autograd records, of tensors of the same kind as before."""

    def __init__(self, options: Options, sizes: Sequence[int]) -> None:
        self._options, self._sizes = options, sizes

    def __call__(
        self, input: Tensor, state: Sequence[Tensor], weights: Iterable[Tensor]
    ) -> tuple[Tensor | None, tuple[Tensor, ...]]:
        one = input.dim() == 2  # step; otherwise the states are those of the only layer
        if not state:
            rows = [input.new_zeros(input.shape[-2], size) for size in self._sizes]
        else:
            rows = list(state) if one else [s.squeeze(0) for s in state]
        x = input.unsqueeze(0) if one else input
        output, finals, _ = ops.KNOWN.run(x, rows, list(weights), None, None, self._options, True)
        # In place: a view could not be detached in place, as programs for torch.nn do with states.
        return (None, tuple(finals)) if one else (output, tuple(s.unsqueeze_(0) for s in finals))


def _kind(scan: Scan) -> tuple[Cell, Gate, tuple[str, ...], torch.dtype]:
    dtype = torch.float64 if scan.input.dtype == torch.float64 else torch.float32
    return scan.cell, scan.gate, tuple(scan.weights), dtype


def _refused_kernel(cell: Cell, gate: Gate, names: tuple[str, ...], dtype: torch.dtype) -> str | None:
    if type(gate) in BUILT_IN and type(cell) in CELLS:
        return None
    kernel = kernel_of(cell, gate, names, dtype)
    return kernel if isinstance(kernel, str) else None


def _text(cell: Cell, gate: Gate, names: tuple[str, ...], dtype: torch.dtype) -> str:
    return _built_in(cell, gate, names) if type(gate) in BUILT_IN else str(kernel_of(cell, gate, names, dtype))


@lru_cache(maxsize=1024)
def _built_in(cell: Cell, gate: Gate, names: tuple[str, ...]) -> str:
    """Of a gate of the library's own, whose value says all about it."""
    return str(kernel_of(cell, gate, names, torch.float32))


# torch.compile calls these and does not trace them. torch.compiler.assume_constant_result would import the compiler.
_refused_kernel._dynamo_marked_constant = True  # type: ignore[attr-defined]
_text._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _to(dtype: torch.dtype, tensor: Tensor) -> Tensor:
    """As Tensor.to, whose own test of the dtype costs a microsecond."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def _refused_tensors(scan: Scan) -> str | None:
    tensors, compiling = scan.tensors, torch.compiler.is_compiling()
    if (compiling or not scan.plain) and not all(t.is_cpu for t in tensors):
        return f"the tensors are on {scan.input.device}"
    dtypes = {t.dtype for t in tensors}
    if not dtypes.issubset(_DTYPES) or (torch.float64 in dtypes and len(dtypes) > 1):
        return f"it takes float32, float64, bfloat16 and float16, not {', '.join(sorted(map(str, dtypes)))}"
    if compiling:
        return None  # the tracer's own tensors are plain where the program runs
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "it does not run inside torch.func transforms (vmap, grad, jvp)"
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    if scan.plain and not forward_mode:
        return None
    for tensor in tensors:
        if type(tensor) not in (Tensor, Parameter) and not is_tracer(tensor):
            return f"it does not take the tensor subclass {type(tensor).__name__}"
        if tensor.layout is not torch.strided or tensor.is_nested:
            return "it takes dense tensors only"
        if forward_mode and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            return "it has no forward-mode derivative"
    return None


def _gate_values(scan: Scan, h_0: Tensor, weights: Mapping[str, Tensor], output: Tensor) -> dict[str, Tensor]:
    """The gates' values at all steps at once, in plain torch; autocast has no effect, as in the kernel."""
    with torch.autocast("cpu", enabled=False):
        a, inside = preactivations_of(scan, h_0, weights, output)
        values = scan.cell.gates(scan.gate, a)
    return {name: value if inside is None else torch.where(inside, value, 0.0) for name, value in values.items()}
