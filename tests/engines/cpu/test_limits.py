"""Unusual input: layouts, sizes, NaN, too much memory."""

from __future__ import annotations

import sys

import pytest
import torch

from gatedrnn.engines.cpu import calls, library
from gatedrnn.engines.cpu.kernel import Kernel
from tests.engines.cpu.conftest import run_python
from tests.engines.cpu.loop import CELLS, GATES, Case, leaves, loop, native, run


@pytest.mark.parametrize("cell", CELLS)
def test_any_strides(cell: str, isa: str) -> None:
    case = Case(cell, "fast", 5, 4, 6, 7)
    t = case.tensors()
    strange = {
        "batch first": t["input"].transpose(0, 1).contiguous().transpose(0, 1),
        "features first": t["input"].permute(2, 0, 1).contiguous().permute(1, 2, 0),
        "every other": torch.stack([t["input"], t["input"]], 3).flatten(2)[..., ::2],
        "backwards storage": t["input"].flip(0).contiguous().flip(0),
    }
    expected = native(case, t)[0]
    for name, x in strange.items():
        assert torch.equal(x, t["input"])
        assert torch.equal(native(case, {**t, "input": x})[0], expected), name
    transposed = {n: v.t().contiguous().t() if v is not None and v.dim() == 2 else v for n, v in t.items()}
    assert torch.equal(native(case, transposed)[0], expected)
    wide = t["input"][:1].expand(5, -1, -1)
    assert torch.equal(native(case, {**t, "input": wide})[0], native(case, {**t, "input": wide.contiguous()})[0])


@pytest.mark.parametrize("cell", CELLS)
def test_any_strides_of_the_incoming_gradient(cell: str) -> None:
    case = Case(cell, "fast", 5, 4, 6, 7)
    t = leaves(case.tensors(), torch.float64)
    g = torch.randn(5, 4, 7, dtype=torch.float64)
    output = native(case, t)[0]
    expected = torch.autograd.grad(output, t["weight_hh"], g, retain_graph=True)[0]
    for strange in (g.transpose(0, 1).contiguous().transpose(0, 1), g.permute(2, 1, 0).contiguous().permute(2, 1, 0)):
        assert torch.equal(torch.autograd.grad(output, t["weight_hh"], strange, retain_graph=True)[0], expected)
    torch.autograd.grad(output.sum(), t["weight_hh"])  # a gradient of stride 0


def test_a_candidate_of_another_size() -> None:
    case = Case("minimal_rnn", hidden=4)
    for inputs in (0, 3, 5):
        with pytest.raises(RuntimeError, match="as many features as its state"):
            native(case, {**case.tensors(), "input": torch.zeros(3, 2, inputs, dtype=torch.float64)})


def test_misaligned() -> None:
    case = Case("lstm", "fast", 5, 4, 6, 7, dtype=torch.float32)
    t = {n: v if v is None or n == "lengths" else v.float() for n, v in case.tensors().items()}
    shifted = {}
    for name, value in t.items():
        if value is None:
            shifted[name] = None
            continue
        room = torch.empty(value.numel() + 1)
        room[1:] = value.flatten()
        shifted[name] = room[1:].view(value.shape)
    assert torch.equal(native(case, shifted)[0], native(case, t)[0])


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("steps", "batch"), [(0, 3), (4, 0)])
def test_zero_sizes(cell: str, steps: int, batch: int) -> None:
    case = Case(cell, "refine", steps, batch, 2, 3)
    t = leaves(case.tensors(), torch.float64)
    output, h_n, c_n, _ = native(case, t)
    assert output.shape == (steps, batch, 3)
    assert torch.equal(h_n, t["h_0"])
    (output.sum() + h_n.sum() + c_n.sum()).backward()
    assert torch.equal(t["h_0"].grad, torch.ones_like(t["h_0"]))
    assert t["weight_hh"].grad.abs().sum() == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("cell", CELLS)
def test_bad_values_stay_in_their_row(cell: str, bad: float, isa: str) -> None:
    for hidden in (5, 16, 33):
        case = Case(cell, "fast", 4, 9, 2, hidden, ragged=True)
        t = case.tensors()
        clean, (expected_output, _, _, _) = native(case, t)[0], loop(case, t)
        dirty = {**t, "input": t["input"].clone()}
        dirty["input"][1, 4] = bad
        found = native(case, dirty)[0]
        others = [b for b in range(9) if b != 4]
        assert torch.equal(found[:, others], clean[:, others])
        expected_output = loop(case, dirty)[0]
        torch.testing.assert_close(found[:, 4], expected_output[:, 4], equal_nan=True)
        x = dirty["input"].clone().requires_grad_()
        native(case, {**dirty, "input": x})[0].sum().backward()
        y = t["input"].clone().requires_grad_()
        native(case, {**t, "input": y})[0].sum().backward()
        assert torch.equal(x.grad[:, others], y.grad[:, others])


def test_nothing_past_the_length_is_read_or_written(isa: str) -> None:
    for cell in CELLS:
        case = Case(cell, "sigmoid", 6, 5, 3, 4, ragged=True, reverse=True)
        t = case.tensors()
        x = t["input"].clone()
        for b, length in enumerate(t["lengths"].tolist()):
            x[length:, b] = float("nan")
        x.requires_grad_()
        output = native(case, {**t, "input": x})[0]
        gradient = torch.full_like(output, 1.0)
        for b, length in enumerate(t["lengths"].tolist()):
            assert output[length:, b].abs().sum() == 0
            gradient[length:, b] = float("nan")
        output.backward(gradient)
        assert x.grad.isfinite().all()
        for b, length in enumerate(t["lengths"].tolist()):
            assert x.grad[length:, b].abs().sum() == 0


def test_poisoned_buffers(monkeypatch: pytest.MonkeyPatch, isa: str) -> None:
    """Every buffer the operators make is full of NaN first: nothing is read before it is written, all is written."""
    empty = torch.Tensor.new_empty

    def poisoned(self, *args, **kwargs):
        return empty(self, *args, **kwargs).fill_(float("nan"))

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    for cell in CELLS:
        for recompute in (False, True):
            case = Case(cell, "refine", 7, 5, 3, 19, ragged=True, recompute=recompute, collect=True)
            found = run(case, native, case.tensors(), torch.float64)
            assert all(value.isfinite().all() for value in found.values())


@pytest.mark.parametrize("lengths", [[0, 3], [4, 1], [-1, 2]])
def test_impossible_lengths(lengths: list[int]) -> None:
    case = Case(steps=3, batch=2)
    with pytest.raises(RuntimeError, match="length"):
        native(case, {**case.tensors(), "lengths": torch.tensor(lengths)})


def test_mixed_dtypes_and_wrong_lengths() -> None:
    t = Case().tensors()
    with pytest.raises(ValueError, match="float64"):
        native(Case(), {**t, "weight_hh": t["weight_hh"].float()})
    with pytest.raises(ValueError, match="int64"):
        native(Case(), {**t, "lengths": torch.tensor([1.0, 2.0])})


OUT_OF_MEMORY = """
import resource, torch
from gatedrnn.engines.cpu import ops
def arguments(H):
    w = [torch.zeros(4 * H, 1), torch.zeros(4 * H, H)]
    x, s = torch.zeros(2, 2, 1), torch.zeros(2, H)
    return x, [s, s], w, None, None, "cell=lstm gate=fast weights=weight_ih,weight_hh", False, False, False, False
ops.scan(*arguments(8))  # everything is imported and loaded before memory is short
large = arguments(4000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (30 << 20), resource.RLIM_INFINITY))
for _ in range(3):
    try:
        ops.scan(*large)
    except RuntimeError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(ops.scan(*large)[0].sum().item())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_out_of_memory_is_a_clean_error() -> None:
    result = run_python(OUT_OF_MEMORY)
    assert result.stdout.count("out of memory") == 3, result
    assert result.stdout.strip().endswith("0.0"), result


@pytest.mark.slow
def test_more_than_two_to_the_31_pre_activations(isa: str) -> None:
    """A forward without gradient whose pre-activations pass 2^31 elements: rows and steps at the far end are right."""
    steps, batch, hidden = 2**21, 1, 256
    assert steps * batch * 4 * hidden >= 2**31
    if isa == "baseline":
        pytest.skip("the widest instruction set is enough")
    case = Case("lstm", "sigmoid", steps, batch, 1, hidden, dtype=torch.float32)
    w = {
        n: v for n, v in Case("lstm", "sigmoid", 1, 1, 1, hidden).tensors().items() if n.startswith(("weight", "bias"))
    }
    t = {n: v if v is None else v.float() for n, v in w.items()}
    x = torch.zeros(1, 1, 1).expand(steps, 1, 1).contiguous()
    x[-3:] = torch.tensor([0.5, -1.0, 2.0])[:, None, None]
    t.update(input=x, h_0=torch.zeros(1, hidden), c_0=torch.zeros(1, hidden), lengths=None)
    with torch.no_grad():
        output, h_n, c_n, _ = native(case, t, keep=False)
        # The constant input has led to a fixed point; the last three steps are computed again from there.
        again = native(case, {**t, "input": x[-1003:].contiguous()}, keep=False)
    torch.testing.assert_close(output[-1], again[0][-1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(h_n, output[-1])
    torch.testing.assert_close(c_n, again[2], rtol=1e-4, atol=1e-5)


def test_offsets_beyond_two_to_the_31() -> None:
    """Strides that step over more than 2^31 elements, in memory that is never touched in between."""
    far = 2**31 + 11
    room = torch.empty(2 * far + 10, dtype=torch.float32)  # virtual memory only: a few pages are written
    x = room.as_strided((3, 2, 2), (far, 5, 1))
    values = torch.randn(3, 2, 2)
    x.copy_(values)
    case = Case("gru", "fast", 3, 2, 2, 5, dtype=torch.float32)
    t = {n: v if v is None else v.float() for n, v in case.tensors().items()}
    with torch.no_grad():
        assert torch.equal(
            native(case, {**t, "input": x}, keep=False)[0], native(case, {**t, "input": values}, keep=False)[0]
        )


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("cell", CELLS)
def test_kept_size(cell: str, gate: str, isa: str) -> None:
    """The size computed in Python is the library's."""
    for dtype in library.FACTS.dtypes:
        for hidden, recompute in ((1, False), (128, True), (130, False)):
            kind = library.FACTS.dtypes.index(dtype), CELLS.index(cell), GATES.index(gate)
            kernel = Kernel(cell, gate, (), memory=(hidden, 4 * hidden, 1) if cell == "nru" else ())
            expected = library.load().gatedrnn_kept_row(*kind, hidden, 4 * hidden, recompute)
            assert library.kept_row(dtype, cell, gate, hidden, recompute, kernel.late) == expected


def test_segments() -> None:
    assert calls.segment_length(100) == 16
    assert calls.segment_length(1) == 8
