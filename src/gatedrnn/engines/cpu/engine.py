"""The CPU engine: native kernels, with every built-in gate and every gate whose formula can be traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter

from gatedrnn.cells import Cell
from gatedrnn.engines.afterwards import preactivations_of
from gatedrnn.engines.cpu import library, ops
from gatedrnn.engines.cpu.kernel import Kernel, kernel_of
from gatedrnn.engines.cpu.lowered import LOWERED
from gatedrnn.engines.interface import Engine, Scan, ScanResult
from gatedrnn.engines.operator import Options, is_plain, watched
from gatedrnn.engines.packing import padded, padded_scan
from gatedrnn.gates import Gate

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
        gate = f"the {kernel.gate} gate"
        if kernel.program:
            gate = f"the gate {scan.gate!r} as a native program of {kernel.program.count(';')} instructions"
        return (
            f"native {kernel.cell} kernel with {gate}, "
            f"{library.instruction_set()}, {threads} thread{'s' if threads > 1 else ''}"
        )

    def run(self, scan: Scan) -> ScanResult:
        dtype = torch.float64 if scan.input.dtype == torch.float64 else torch.float32
        # float32 parameters and states pass as they are; only 16-bit ones are copied.
        input, own = _to(dtype, scan.input), {name: _to(dtype, w) for name, w in scan.weights.items()}
        state = [_to(dtype, s) for s in scan.state]
        keep = torch.is_grad_enabled() and any(t.requires_grad for t in _tensors(scan))
        lengths = None if scan.lengths is None else scan.lengths.to(torch.int64)
        memory = len(state) > 1
        given, weights = input, own
        if lowering := LOWERED.get(type(scan.cell)):
            if lengths is not None:  # what lies past the end, a NaN maybe, must not reach the weights
                time = torch.arange(len(input)).unsqueeze(-1)
                given = torch.where((time < lengths).unsqueeze(-1), input, 0.0)
            given, weights = lowering.arguments(scan.cell, own, given)
        text = _text(scan.cell, scan.gate, tuple(weights), dtype)
        options = Options(text, scan.reverse, keep, scan.recompute, bool(scan.collect) and memory)
        arguments = (given, state, list(weights.values()), lengths, scan.batch_sizes)
        if watched() or not _plain(scan):
            results = ops.scan(*arguments, *options)
        else:
            results = ops.OPERATOR.run(*arguments, options)
        output, finals, all_c = results[0], results[1 : 1 + len(state)], results[-3]
        collected = {}
        if scan.collect:
            collected = {"h": output, scan.cell.states[-1]: all_c} if memory else {"h": output}
            with_lengths = replace(scan, input=input)
            if scan.batch_sizes is not None:
                with_lengths, places = padded_scan(with_lengths)
                collected = {name: padded(value, places, scan.batch_sizes) for name, value in collected.items()}
            if scan.collect == "gates":
                collected.update(_gate_values(with_lengths, state[0], own, collected["h"]))
        return ScanResult(
            _to(scan.input.dtype, output),
            tuple(_to(given.dtype, s) for s, given in zip(finals, scan.state, strict=True)),
            {name: _to(scan.state[-1].dtype, value) for name, value in collected.items()},
        )


def _kind(scan: Scan) -> tuple[Cell, Gate, tuple[str, ...], torch.dtype]:
    dtype = torch.float64 if scan.input.dtype == torch.float64 else torch.float32
    return scan.cell, scan.gate, tuple(scan.weights), dtype


def _refused_kernel(cell: Cell, gate: Gate, names: tuple[str, ...], dtype: torch.dtype) -> str | None:
    kernel = kernel_of(cell, gate, names, dtype)
    return kernel if isinstance(kernel, str) else None


def _text(cell: Cell, gate: Gate, names: tuple[str, ...], dtype: torch.dtype) -> str:
    return str(kernel_of(cell, gate, names, dtype))


# torch.compile calls these and does not trace them. torch.compiler.assume_constant_result would import the compiler.
_refused_kernel._dynamo_marked_constant = True  # type: ignore[attr-defined]
_text._dynamo_marked_constant = True  # type: ignore[attr-defined]


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
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    for tensor in _tensors(scan):
        if type(tensor) not in (Tensor, Parameter) and not _is_tracer(tensor):
            return f"it does not take the tensor subclass {type(tensor).__name__}"
        if tensor.layout is not torch.strided or tensor.is_nested:
            return "it takes dense tensors only"
        if forward_mode and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            return "it has no forward-mode derivative"
    return None


def _plain(scan: Scan) -> bool:
    tensors = _tensors(scan) if scan.lengths is None else (*_tensors(scan), scan.lengths)
    return all(is_plain(tensor) for tensor in tensors)


def _is_tracer(tensor: Tensor) -> bool:
    """Whether torch itself put the subclass there, to trace a program for export."""
    return type(tensor).__module__.startswith("torch._subclasses.")


def _gate_values(scan: Scan, h_0: Tensor, weights: Mapping[str, Tensor], output: Tensor) -> dict[str, Tensor]:
    """The gates' values at all steps at once, in plain torch."""
    a, inside = preactivations_of(scan, h_0, weights, output)
    values = scan.cell.gates(scan.gate, a)
    return {name: value if inside is None else torch.where(inside, value, 0.0) for name, value in values.items()}
