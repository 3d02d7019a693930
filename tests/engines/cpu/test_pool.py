"""Large buffers wait to be used again, and hardly raise the peak."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest
import torch

from gatedrnn.engines.cpu import calls, library
from tests.engines.cpu.loop import Case, native

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def empty():
    gc.collect()
    library.release()
    yield
    gc.collect()
    library.release()


def address(buffer) -> int:
    return torch.frombuffer(buffer, dtype=torch.uint8).data_ptr()


def test_a_buffer_is_used_again() -> None:
    first = library.take(64 * MEGABYTE)
    place = address(first)
    del first
    assert library.release() == 64 * MEGABYTE
    first = library.take(64 * MEGABYTE)
    place = address(first)
    del first
    second = library.take(40 * MEGABYTE)  # somewhat smaller
    assert address(second) == place
    assert library.release() == 0, "it is in use"


def test_a_tensor_keeps_its_buffer() -> None:
    tensor = torch.frombuffer(library.take(8 * MEGABYTE), dtype=torch.float32)
    gc.collect()
    assert library.release() == 0
    tensor.fill_(1.0)
    view = tensor[:10]
    del tensor
    gc.collect()
    assert library.release() == 0 and view.sum() == 10
    del view
    assert library.release() == 8 * MEGABYTE


def test_what_waits_raises_the_peak_by_32_megabytes_at_most() -> None:
    small = [library.take(16 * MEGABYTE) for _ in range(4)]
    del small
    large = library.take(100 * MEGABYTE)  # 64 wait, at most 64 were in use at once: all beyond 32 must go
    assert library.release() == 32 * MEGABYTE
    del large
    medium = library.take(20 * MEGABYTE)  # beside the 100 that wait: one of them must go
    assert library.release() == 0
    del medium


def test_small_buffers_wait_beside_larger_ones() -> None:
    """A layer that needs buffers of different sizes in turns finds them again."""
    places = {}
    for _ in range(3):
        for size in (1, 3, 8):
            buffer = library.take(size * MEGABYTE)
            assert places.setdefault(size, address(buffer)) == address(buffer)
            del buffer
    assert library.release() == 12 * MEGABYTE


def test_no_more_than_a_gigabyte_waits() -> None:
    several = [library.take(300 * MEGABYTE) for _ in range(5)]  # not touched: no memory is used
    del several
    assert library.release() == 900 * MEGABYTE


def test_training_uses_the_same_buffer_at_every_update() -> None:
    case = Case("lstm", "fast", steps=50, batch=40, hidden=130, dtype=torch.float32)
    t = {n: v if v is None else v.float().requires_grad_() for n, v in case.tensors().items()}
    waiting = []
    for _ in range(3):
        native(case, t)[0].sum().backward()
        gc.collect()
        waiting.append(library.release())
    assert waiting[0] > 4 * MEGABYTE and len(set(waiting)) == 1


def test_large_results_cannot_be_made_larger() -> None:
    """torch's own error, as documented; everything else that changes a tensor in place works, and so does a copy."""
    case = Case("gru", "fast", steps=100, batch=40, hidden=300, dtype=torch.float32)
    t = {n: v if v is None else v.float() for n, v in case.tensors().items()}
    output = native(case, t)[0]
    values = output.clone()
    assert output.nbytes >= calls.POOLED
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        output.resize_(200, 40, 300)
    assert torch.equal(output.resize_(values.shape), values), "as it was"
    assert torch.equal(output.clone().resize_(200, 40, 300)[:100], values)
    assert torch.equal(output.resize_(50, 40, 300), values[:50])
    small = native(Case("gru", steps=3, batch=2, hidden=4), Case("gru", steps=3, batch=2, hidden=4).tensors())[0]
    assert small.resize_(300, 2, 4).shape == (300, 2, 4)


def test_a_child_process_has_a_pool_of_its_own() -> None:
    code = """
import os, threading
from gatedrnn.engines.cpu import calls, library
def work():
    while not done: library.take(8 << 20)
done = False
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for _ in range(50):
    child = os.fork()
    if child == 0:
        library.take(8 << 20)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
done = True
for t in threads: t.join()
print("well")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "well\n", done.stderr
