"""The settings GATEDRNN_CPU_ISA and GATEDRNN_CPU_LIBRARY, and files that are not the library."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gatedrnn import gates
from gatedrnn.cells.base import FusedCell
from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.kernel import Kernel
from gatedrnn.gates.program import OPERATIONS
from tests.engines.cpu.conftest import ISAS, run_python

KNOWN = ("baseline", "avx2", "avx512")


def test_environment_variable_forces_the_instruction_set() -> None:
    code = "from gatedrnn.engines.cpu import library; print(library.instruction_set())"
    assert run_python(code, GATEDRNN_CPU_ISA="baseline").stdout == "baseline\n"


USES = """
import warnings
import torch, gatedrnn
from gatedrnn import gates
from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.kernel import Kernel
from gatedrnn.gates.program import OPERATIONS
warnings.simplefilter("error")
x = torch.randn(4, 1, 2)
gatedrnn.LSTM(2, 3, engine="reference")(x)
gatedrnn.NRU(2, 4, engine="reference")(x)
layers = [gatedrnn.LSTM(2, 3), gatedrnn.GRU(2, 3, engine="cpu")]
for use in (*(lambda l=l: l(x) for l in layers), lambda: gatedrnn.explain(layers[0], x), library.instruction_set):
    try:
        print(use())
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["vax", "AVX2", "avx512 ", *(name for name in KNOWN if name not in ISAS)])
def test_an_instruction_set_that_is_not_there(name: str) -> None:
    """An error with every engine that would use it, "auto" too; not at import, and not for those that do not."""
    reason = "this machine lacks" if name in KNOWN else f"unknown instruction set; known: {', '.join(KNOWN)}"
    done = run_python(USES, GATEDRNN_CPU_ISA=name)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert f"GATEDRNN_CPU_ISA={name}: {reason}" in line and f"this machine runs: {', '.join(ISAS)}" in line
        assert "compiler" not in line and "install" not in line.lower()
    assert lines[1].startswith("the engine 'cpu' cannot run this: ")


def test_selecting_an_instruction_set_that_is_not_there() -> None:
    for name in ("vax", *(name for name in KNOWN if name not in ISAS)):
        with pytest.raises(RuntimeError, match=f"^{name}: .*this machine runs: baseline"):
            library.select_instruction_set(name)
    assert library.instruction_set() == ISAS[-1]


LOAD = """
import sys
from pathlib import Path
from gatedrnn import gates
from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.kernel import Kernel
from gatedrnn.gates.program import OPERATIONS
for file in sys.argv[1:]:
    try:
        library._load(Path(file), "Advice")
        print("loaded")
    except library.UnavailableError as error:
        print(error)
"""


def reasons(*files: Path) -> list[str]:
    """What is said of each file, from a process that may die of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOAD, *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"died after {done.stdout.splitlines()}: {done.stderr}"
    return done.stdout.splitlines()


def test_truncated_libraries(tmp_path: Path) -> None:
    """A part of the library at any length: the loader alone would die of a bus error at many of them."""
    data = Path(library.load()._name).read_bytes()
    size = len(data)
    files = []
    for length in (*range(0, 200, 7), *range(200, size, size // 40), size - 64, size - 1):
        files.append(tmp_path / f"{length}.so")
        files[-1].write_bytes(data[:length])
    whole = tmp_path / "whole.so"
    whole.write_bytes(data)
    *said, last = reasons(*files, whole)
    for file, line in zip(files, said, strict=True):
        assert line.startswith(f"{file} could not be loaded: ") and line.endswith(". Advice"), line
        assert "truncated" in line or "too short" in line or "invalid ELF header" in line, line
    assert last == "loaded"


def test_files_that_are_no_library(tmp_path: Path) -> None:
    text, damaged = tmp_path / "text.so", tmp_path / "damaged.so"
    text.write_text("not a library\n" * 1000)
    damaged.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(200))
    files = [text, damaged, tmp_path, tmp_path / "nowhere.so", Path("/dev/null")]
    said = reasons(*files)
    assert all(line.startswith(f"{file} could not be loaded: ") for file, line in zip(files, said, strict=True)), said
    for line, reason in zip(
        said,
        ("invalid ELF header", "its header is damaged", "it is not a file", "No such file", "it is not a file"),
        strict=True,
    ):
        assert reason in line


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler to make other libraries")
def test_foreign_older_and_incomplete_libraries(tmp_path: Path) -> None:
    names = ("forward", "backward", "gate", "error", "isa", "select_isa", "panel_width", "kept_row", "facts")
    names += ("borrow_threads", "take", "give", "release", "program")
    functions = "".join(f"void gatedrnn_{name}(void) {{}}" for name in names)
    functions += "long long gatedrnn_scan_size(void) { return 8; }"
    sources = {
        "foreign": "int add(int a, int b) { return a + b; }",
        "older": "long long gatedrnn_abi(void) { return 1; }",
        "incomplete": f"long long gatedrnn_abi(void) {{ return {library.ABI}; }}",
        "other": functions + f"long long gatedrnn_abi(void) {{ return {library.ABI}; }}",
    }
    files = []
    for name, source in sources.items():
        files.append(tmp_path / f"{name}.so")
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(files[-1])]
        subprocess.run(command, input=source, text=True, check=True)
    foreign, older, incomplete, other = reasons(*files)
    assert foreign == f"{files[0]} is not the CPU engine of this version: undefined symbol: gatedrnn_abi. Advice"
    assert older == f"{files[1]} belongs to another version of the package (interface 1, not {library.ABI}). Advice"
    assert "not the CPU engine of this version: undefined symbol: gatedrnn_forward" in incomplete
    sizes = f"interface {library.ABI} with a structure of 8 bytes, not {ctypes.sizeof(library.Scan)}"
    assert other == f"{files[3]} belongs to another version of the package ({sizes}). Advice"


def test_a_wrong_library_is_told_once_and_the_reference_engine_runs(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.so"
    wrong.write_bytes(Path(library.load()._name).read_bytes()[:5000])
    code = """
import warnings
import torch, gatedrnn
layer, x = gatedrnn.LSTM(2, 3), torch.randn(4, 1, 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    results = [layer(x)[0] for _ in range(2)]
layer.engine = "reference"
print(len(caught), torch.equal(results[1], layer(x)[0]), caught[0].message)
layer.engine = "cpu"
try:
    layer(x)
except RuntimeError as error:
    print(error)
"""
    done = run_python(code, GATEDRNN_CPU_LIBRARY=str(wrong))
    assert done.returncode == 0, done.stderr
    warned, error = done.stdout.splitlines()
    assert warned.startswith(f"1 True engine 'cpu' is not available ({wrong} could not")
    for line in (warned, error):
        assert "truncated" in line and "GATEDRNN_CPU_LIBRARY names this file: unset it" in line
        assert "compiler" not in line


def test_facts_are_those_of_the_cells_and_gates() -> None:
    """What the library says of itself is what the package says: names, row blocks, states, pre-activations."""
    facts = library.FACTS
    assert facts.gates == {**{name: kind.preactivations for name, kind in gates.GATES.items()}, "program": 1}
    assert set(facts.operations) == set(OPERATIONS)
    for name, said in facts.cells.items():
        cell = Kernel(name, "sigmoid", (), memory=(16, 4, 1) if name == "nru" else ()).made_cell()
        shapes = cell.parameter_shapes(1, 2, bias=True, aux=True)
        if said.blocks:  # else it has no weights in blocks of rows
            assert shapes["weight_ih"][0] == 2 * len(said.rows)
        if isinstance(cell, FusedCell):
            assert said.rows == cell.row_blocks()
        assert said.states == len(cell.states)
        assert set(shapes) <= set(facts.weights)
