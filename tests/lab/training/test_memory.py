from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding, Copy, Task
from gatedrnn.lab.training import Run, Training
from gatedrnn.lab.training.memory import check_memory


@pytest.fixture(autouse=True)
def _a_machine_of_16_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 4_000_000}.__getitem__)


@pytest.mark.parametrize(
    ("task", "model", "training", "message"),
    [
        (
            Adding(10),
            Model(hidden_size=8),
            Training(evaluation_size=10**9),
            "evaluation_size 1000000000 with sequences of 10 steps needs 80 GB of memory or more, this machine has "
            "16 GB: choose fewer or shorter sequences",
        ),
        (
            Adding(10**11),
            Model(hidden_size=8, num_layers=2),
            Training(batch_size=4),  # 10¹¹ steps of 4 sequences with 2 inputs and 2·8 outputs, 4 bytes each
            "batch_size 4 with sequences of 100000000000 steps needs 28.8 TB of memory or more, this machine has "
            "16 GB: choose fewer or shorter sequences",
        ),
        (
            Adding(10**400),
            Model(hidden_size=8),
            Training(),
            f"batch_size 64 with sequences of {10**400} steps needs 1000 EB of memory or more",
        ),
        (
            Copy(5),
            Model(cell="janet", hidden_size=10**6),  # two gates, with their gradients: 2·2·10¹² numbers and few more
            Training(),
            "hidden_size 1000000 with num_layers 1 needs 16 TB of memory or more, this machine has 16 GB: "
            "choose a smaller model",
        ),
        (
            Copy(5),
            Model(cell="nru", hidden_size=8, memory_size=10**6, heads=10**6),
            Training(),
            "hidden_size 8 with num_layers 1 and memory_size 1000000 needs ",
        ),
    ],
)
def test_what_cannot_fit_is_named(task: Task, model: Model, training: Training, message: str) -> None:
    with pytest.raises(ValueError, match="^") as raised:
        check_memory(Run(task, model, training))
    assert str(raised.value).startswith(message)


def test_what_may_fit_is_allowed() -> None:
    check_memory(Run(Adding(5000), Model(), Training()))
    # 31250 steps of 64 sequences with 2 inputs and 1998 outputs: 16 GB to the byte.
    largest = Model(hidden_size=1998)
    check_memory(Run(Adding(31250), largest, Training()))
    with pytest.raises(ValueError, match="^batch_size 64 with sequences of 31251 steps needs 16 GB of memory or more"):
        check_memory(Run(Adding(31251), largest, Training()))


_FAULTS = """
import resource, torch
from gatedrnn.lab.training.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def update():
    return torch.ones(1 << 24) + 1.0  # 64 MB, twice

kept = {kept}
for _ in range(5):  # until the heap has found its size
    update()
before = faults()
for _ in range(5):
    update()
print(kept, faults() - before)
"""


def _page_faults(kept: str, **environment: str) -> tuple[str, int]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", _FAULTS.format(kept=kept)]
    done = subprocess.run(command, env={**plain, **environment}, capture_output=True, text=True, check=True)
    said, count = done.stdout.split()
    return said, int(count)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_memory_is_used_again() -> None:
    """By default every tensor has new pages; where it is kept, the heap may still grow once."""
    default = _page_faults("None")[1]
    said, count = _page_faults("keep_freed_memory()")
    assert said == "True" and count < default / 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_settings_of_the_environment_take_precedence() -> None:
    said, count = _page_faults("keep_freed_memory()", MALLOC_TRIM_THRESHOLD_="131072")
    assert said == "False" and count > 5 * 32
