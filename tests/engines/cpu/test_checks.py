"""Arguments that do not belong together are refused before a pointer leaves Python, and once more by the C interface."""

from __future__ import annotations

import ctypes
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import gatedrnn
from gatedrnn.engines import ENGINES
from gatedrnn.engines.cpu import library, ops
from tests.engines.cpu.loop import CELLS, GATES, WEIGHTS, Case, arguments, native

CASES = [
    Case("lstm", "sigmoid"),
    Case("lstm", "refine", projection=2, recompute=True),
    Case("lstm_tied", "fast", ragged=True, collect=True),
    Case("gru", "refine"),
    Case("janet", "softsign", bias=False),
]


def of_case(case: Case) -> str:
    return f"{case.cell}-{case.gate}"


def wrong_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    last, front = shape[-1], shape[:-1]
    found = [
        (*front, last - 1),
        (*front, last + 1),
        (*front, 1),
        shape[::-1],
        (2 * shape[0], *shape[1:]),
        (1, *shape),
        (),
    ]
    return [wrong for wrong in found if wrong != shape]


def test_the_memory_of_the_nru_has_the_size_that_the_kernel_names() -> None:
    layer: Any = gatedrnn.NRU(3, 4096, memory_size=16, heads=4, dtype=torch.float64)
    scan = layer.first_scan(torch.zeros(2, 1, 3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"size mismatch for c_0: expected \(1, 16\), got \(1, 4096\)"):
        ENGINES["cpu"].run(replace(scan, state=(scan.state[0], scan.state[0])))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_forward(case: Case, gradient: bool) -> None:
    """Any tensor in any wrong shape, or missing, or one too many; what was computed before is still right."""
    t = case.tensors()
    expected = native(case, t)[0]
    names = ("h_0", "c_0", *WEIGHTS)
    tried = 0
    for name in names:
        value = t[name]
        if value is None:
            if not (name.startswith("bias") and not case.bias):
                with pytest.raises((RuntimeError, ValueError), match=f"has no {name}|size mismatch for|state.s., got"):
                    native(case, {**t, name: torch.zeros(3, 3, dtype=torch.float64)})
            continue
        for shape in wrong_shapes(tuple(value.shape)):
            given = torch.zeros(shape, dtype=torch.float64).requires_grad_(gradient)
            with pytest.raises(RuntimeError, match=r"size mismatch for \w+: expected \(.*\), got \(|must be \(batch"):
                native(case, {**t, name: given})
            tried += 1
        if not name.startswith("bias"):
            with pytest.raises((RuntimeError, ValueError), match=r"is missing|size mismatch|state.s., got"):
                native(case, {**t, name: None})
    assert tried > 15
    assert torch.equal(native(case, t)[0], expected)


def test_the_text_names_the_weight_and_both_shapes() -> None:
    case = Case("gru", "fast", inputs=4, hidden=6)
    with pytest.raises(RuntimeError, match=re.escape("size mismatch for weight_hh: expected (18, 6), got (18, 5)")):
        native(case, {**case.tensors(), "weight_hh": torch.zeros(18, 5, dtype=torch.float64)})


def test_input_lengths_and_options() -> None:
    case = Case("lstm", "fast")
    t = case.tensors()
    for changed, error, message in (
        ({"input": t["input"][0]}, RuntimeError, r"input must be \(steps, batch, features\)"),
        ({"input": t["input"][:, :1]}, RuntimeError, r"size mismatch for h_0: expected \(1, 4\), got \(2, 4\)"),
        (
            {"input": t["input"][..., :2]},
            RuntimeError,
            r"size mismatch for weight_ih: expected \(16, 2\), got \(16, 3\)",
        ),
        ({"lengths": torch.ones(3, dtype=torch.int64)}, RuntimeError, r"size mismatch for lengths: expected \(2,\)"),
        ({"lengths": torch.ones(2, 1, dtype=torch.int64)}, RuntimeError, "size mismatch for lengths"),
        ({"lengths": torch.ones(2, dtype=torch.int32)}, ValueError, "lengths must be a dense tensor of torch.int64"),
        ({"weight_hh": t["weight_hh"].to_sparse()}, ValueError, "weight_hh must be a dense tensor of torch.float64"),
        ({"input": t["input"].to_sparse()}, ValueError, "input must be a dense tensor"),
        ({n: v if v is None else v.half() for n, v in t.items()}, ValueError, "must be float32 or float64"),
    ):
        with pytest.raises(error, match=message):
            native(case, {**t, **changed})
    *tensors, _, reverse, keep, recompute, collect = arguments(case, t)
    for kernel, message in (
        ("cell=rnn gate=fast weights=weight_ih", "unknown cell 'rnn'; known cells: lstm"),
        ("cell=lstm gate=x weights=weight_ih", "unknown gate 'x'; known gates: sigmoid"),
        ("", "does not describe a kernel"),
        ("cell=lstm", "does not describe a kernel: 'gate'"),
        ("cell=lstm gate=fast weights=weight_ih,weight_hh beta=x", "does not describe a kernel"),
        ("cell=lstm gate=fast weights=weight_ih,weight_hh alpha=1", "unknown alpha"),
        ("cell=lstm gate=fast weights=weight_ih", "weight_hh is missing for the cell 'lstm'"),
        ("cell=lstm gate=fast weights=weight_ih,weight_hh,weight_hh", "weight_hh is named 2 times"),
        ("cell=gru gate=fast weights=weight_ih,weight_hh,weight_hr", "'gru' with the gate 'fast' has no weight_hr"),
    ):
        with pytest.raises(ValueError, match=message):
            ops.scan(*tensors, kernel, reverse, keep, recompute, collect)
    with pytest.raises(RuntimeError, match="4 weights are named, got 3"):
        ops.scan(t["input"], tensors[1], tensors[2][:3], *arguments(case, t)[3:])
    for count in (0, 1, 3):
        with pytest.raises(RuntimeError, match=rf"the cell 'lstm' has 2 state\(s\), got {count}"):
            ops.scan(t["input"], [t["h_0"]] * count, *arguments(case, t)[2:])
    for beta in (math.nan, -800.0, 88.0):
        with pytest.raises(ValueError, match="beta must lie between"):
            native(Case("janet", beta=beta), Case("janet").tensors())


def test_one_tensor_on_another_device() -> None:
    """torch hands the call to the kernel that knows shapes only; its results must not pass for computed ones."""
    case = Case("lstm", "refine", projection=2, ragged=True)
    t = case.tensors()
    for name, value in t.items():
        if value is not None:
            with pytest.raises((RuntimeError, ValueError), match="same device|on the CPU"):
                native(case, {**t, name: value.to("meta")}, keep=False)
    given = backward_arguments(case)
    for place, value in tensors_of(given):
        with pytest.raises((RuntimeError, ValueError), match="same device|on the CPU"):
            ops.scan_backward(**changed(given, place, value.to("meta")))


def test_a_tensor_without_memory() -> None:
    """What FSDP leaves of a parameter that is not needed now. Of a bias it would mean: there is none."""
    layer: Any = gatedrnn.LSTM(3, 4)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    for name in ("bias_hh_l0", "weight_ih_l0"):
        parameter = getattr(layer, name)
        size = parameter.untyped_storage().nbytes()
        parameter.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=f"{name.removesuffix('_l0')} has no memory"):
            layer(torch.zeros(2, 2, 3))
        parameter.untyped_storage().resize_(size)
        parameter.zero_()


def backward_arguments(case: Case) -> dict[str, Any]:
    t = {n: v if v is None or n == "lengths" else v.to(case.dtype) for n, v in case.tensors().items()}
    input, state, weights, lengths, batch_sizes, kernel, reverse, _, recompute, _ = arguments(case, t)
    *results, kept, threads = ops.scan(*arguments(case, t))
    return {
        "gradients": [torch.ones_like(result) for result in results],
        "input": input, "state": state, "weights": weights, "lengths": lengths, "batch_sizes": batch_sizes,
        "output": results[0], "kept": kept, "threads": threads,
        "kernel": kernel, "reverse": reverse, "recompute": recompute, "input_gradient": True,
    }  # fmt: skip


Place = tuple[str, int | None]


def tensors_of(given: dict[str, Any]) -> list[tuple[Place, Tensor]]:
    """All tensors among the arguments, each with its place: a name, and a number in a list."""
    found: list[tuple[Place, Tensor]] = []
    for name, value in given.items():
        if isinstance(value, Tensor):
            found.append(((name, None), value))
        elif isinstance(value, list):
            found += [((name, i), tensor) for i, tensor in enumerate(value)]
    return found


def changed(given: dict[str, Any], place: Place, value: Tensor) -> dict[str, Any]:
    name, i = place
    if i is not None:
        return {**given, name: [*given[name][:i], value, *given[name][i + 1 :]]}
    return {**given, name: value}


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_backward(case: Case) -> None:
    given = backward_arguments(case)
    expected = ops.scan_backward(**given)
    tried = 0
    for place, value in tensors_of(given):
        if place[0] == "threads" or not value.numel():
            continue
        with pytest.raises((ValueError, RuntimeError), match="must be a dense tensor of"):
            ops.scan_backward(**changed(given, place, value.to(torch.float32)))
        if place[0] == "input":  # says how many steps there are; another number is seen in everything else
            continue
        for wrong in wrong_shapes(tuple(value.shape)):
            with pytest.raises(RuntimeError, match=r"size mismatch for|must be \(batch"):
                ops.scan_backward(**changed(given, place, torch.zeros(wrong, dtype=value.dtype)))
            tried += 1
    assert tried > 30
    with pytest.raises(RuntimeError, match=r"size mismatch for \w+"):
        ops.scan_backward(**{**given, "input": torch.cat([given["input"]] * 2)})
    with pytest.raises(RuntimeError, match="gradients are those of output, h_n, .*got 1"):
        ops.scan_backward(**{**given, "gradients": given["gradients"][:1]})
    for threads in (0, -1):
        with pytest.raises(RuntimeError, match="threads must be positive"):
            ops.scan_backward(**{**given, "threads": torch.tensor(threads)})
    with pytest.raises(RuntimeError, match=r"size mismatch for threads: expected \(\), got \(2,\)"):
        ops.scan_backward(**{**given, "threads": torch.tensor([1, 1])})
    for found, wanted in zip(ops.scan_backward(**given), expected, strict=True):
        assert torch.equal(found, wanted)


#: Where the tensors of a case stand in the structure.
PLACES = {
    **{name: ("state", i) for i, name in enumerate(("h_0", "c_0"))},
    **{name: ("final_state", i) for i, name in enumerate(("h_n", "c_n"))},
    **{name: ("weights", i) for i, name in enumerate(WEIGHTS)},
}


def put(scan: library.Scan, name: str, value: Any) -> None:
    gradient, plain_name = ("grad_", name[5:]) if name.startswith("grad_") else ("", name)
    if plain_name in PLACES:
        array, place = PLACES[plain_name]
        getattr(scan, gradient + array)[place] = value
    else:
        setattr(scan, name, value)


def plain_scan() -> tuple[library.Scan, list[Tensor]]:
    """A description of a scan as the C interface takes it, and the memory it points to."""
    t = Case("lstm", "sigmoid", 3, 2, 3, 4).tensors()
    scan = library.Scan(dtype=1, cell=0, gate=0, steps=3, batch=2, inputs=3, hidden=4, recurrent=4, threads=1, odds=1.0)
    scan.input_strides[:] = t["input"].stride()
    room = {
        "output": torch.zeros(3, 2, 4),
        "h_n": torch.zeros(2, 4),
        "c_n": torch.zeros(2, 4),
        "kept": torch.zeros(3 * 2 * library.kept_row("float64", "lstm", "sigmoid", 4, False)),
        **{f"grad_{n}": torch.zeros(v.shape) for n, v in t.items() if v is not None},
    }
    alive = {**{n: v for n, v in t.items() if v is not None}, **{n: v.double() for n, v in room.items()}}
    for name, tensor in alive.items():
        put(scan, name, tensor.data_ptr())
    scan.kept_size = alive["kept"].numel()
    return scan, list(alive.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({name: 0}, "sizes must be positive") for name in ("steps", "batch", "hidden", "recurrent")),
        *(({name: -1}, "sizes must be positive") for name in ("steps", "batch", "inputs", "hidden", "recurrent")),
        *(({name: 2**62}, "too large|too small|weight_hr") for name in ("steps", "batch", "inputs", "hidden", "recurrent")),
        *(({name: None}, "missing") for name in ("input", "h_0", "c_0", "weight_ih", "weight_hh", "output")),
        ({"dtype": 2}, "dtype"),
        ({"dtype": -1}, "dtype"),
        ({"cell": len(CELLS)}, "unknown cell"),
        ({"gate": len(GATES)}, "unknown gate"),
        ({"gate": -1}, "unknown gate"),
        ({"gate": GATES.index("refine")}, "a weight is missing"),
        ({"threads": 0}, "threads must be positive"),
        ({"segment": -1}, "segment"),
        ({"kept_size": 10}, "too small"),
        ({"coefficient_count": -1}, "coefficients"),
        ({"coefficient_count": 1}, "coefficients"),
        ({"recurrent": 3}, "weight_hr is missing"),
        ({"cell": CELLS.index("janet"), "odds": 0.0}, "odds"),
        ({"cell": CELLS.index("janet"), "odds": math.nan}, "odds"),
        ({"cell": CELLS.index("janet"), "odds": math.inf}, "odds"),
    ],
    ids=str,
)  # fmt: skip
def test_the_c_interface(changes: dict[str, Any], message: str) -> None:
    scan, _alive = plain_scan()
    library.forward(scan)
    library.backward(scan)
    for name, value in changes.items():
        put(scan, name, value)
    for call in (library.forward, library.backward):
        with pytest.raises(RuntimeError, match=message):
            call(scan)


@pytest.mark.parametrize("name", ["grad_h_0", "grad_c_0", "grad_weight_ih", "grad_weight_hh"])
def test_the_c_interface_needs_room_for_gradients(name: str) -> None:
    scan, _alive = plain_scan()
    put(scan, name, None)
    library.forward(scan)
    with pytest.raises(RuntimeError, match="an array for a gradient is missing"):
        library.backward(scan)


@pytest.mark.parametrize(
    ("lengths", "starts", "message"),
    [
        ([3, 2], [0, 2, 4], None),
        (None, [0, 2, 4], "need their lengths"),
        ([2, 3], [0, 2, 4], "the longest first"),
        ([3, 2], [0, 2, 5], "do not fit the lengths"),
        ([3, 2], [1, 2, 4], "do not fit the lengths"),
        ([3, 2], [0, -2, 4], "do not fit the lengths"),
        ([2, 2], [0, 2, 4], "do not fit the lengths"),
        ([4, 2], [0, 2, 4], "between 1 and the number of time steps"),
    ],
)
def test_the_c_interface_of_packed_rows(lengths: list[int] | None, starts: list[int], message: str | None) -> None:
    scan, _alive = plain_scan()
    memory = [torch.tensor(v) for v in (lengths or [], starts)]
    scan.lengths = memory[0].data_ptr() if lengths else None
    scan.starts = memory[1].data_ptr()
    if message is None:
        library.forward(scan)
        return
    with pytest.raises(RuntimeError, match=message):
        library.forward(scan)


def test_the_rest_of_the_c_interface() -> None:
    lib = library.load()
    assert lib.gatedrnn_forward(None) == 1 and b"the scan is missing" in lib.gatedrnn_error()
    assert lib.gatedrnn_backward(None) == 1
    assert lib.gatedrnn_kept_row(0, 0, 0, 0, 0, 0) == -1 and lib.gatedrnn_kept_row(0, 99, 0, 4, 0, 0) == -1
    assert lib.gatedrnn_panel_width(7) == 0 and lib.gatedrnn_take(-1) is None
    z = (ctypes.c_double * 4)()
    pointer = ctypes.addressof(z)
    assert lib.gatedrnn_gate(1, 0, 0, None, None, 4, pointer, None, pointer, pointer, pointer, None) == 0
    assert lib.gatedrnn_gate(1, 0, 0, None, None, -4, pointer, None, pointer, pointer, pointer, None) == 1
    assert lib.gatedrnn_gate(1, 0, 0, None, None, 4, None, None, pointer, pointer, pointer, None) == 1
    assert (
        lib.gatedrnn_gate(
            1, GATES.index("polynomial"), 1, None, None, 4, pointer, None, pointer, pointer, pointer, None
        )
        == 1
    )
    assert (
        lib.gatedrnn_gate(1, GATES.index("refine"), 0, None, None, 4, pointer, None, pointer, pointer, pointer, None)
        == 1
    )
