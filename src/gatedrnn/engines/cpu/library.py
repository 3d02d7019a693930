"""The native library, loaded with ctypes. It is built with the package, never at import.

The structure and the functions mirror ``abi.h``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch

from gatedrnn.engines.cpu.elf import check_whole

#: The version of abi.h that Scan mirrors.
ABI = 5
#: Places for weights in the structure.
_WEIGHTS = 9


class Scan(ctypes.Structure):
    """One layer, one direction, all time steps: ``struct GatedrnnScan``."""

    _fields_ = (
        [(name, c_int64) for name in ("dtype", "cell", "gate", "steps", "batch", "inputs", "hidden", "recurrent")]  # type: ignore[assignment]
        + [(name, c_int64) for name in ("reverse", "threads", "segment", "kept_size", "heads", "relu")]
        + [("coefficient_count", c_int64)]
        + [("coefficients", c_void_p), ("odds", c_double), ("program", c_char_p)]
        + [("input_strides", c_int64 * 3), ("grad_output_strides", c_int64 * 2), ("grad_cells_strides", c_int64 * 2)]
        + [("lengths", c_void_p), ("starts", c_void_p), ("input", c_void_p)]
        + [("state", c_void_p * 2), ("weights", c_void_p * _WEIGHTS)]
        + [("output", c_void_p), ("final_state", c_void_p * 2), ("cells", c_void_p), ("kept", c_void_p)]
        + [("grad_output", c_void_p), ("grad_final_state", c_void_p * 2), ("grad_cells", c_void_p)]
        + [("grad_input", c_void_p), ("grad_state", c_void_p * 2), ("grad_weights", c_void_p * _WEIGHTS)]
    )


class CellFacts(NamedTuple):
    """What the library says of a cell."""

    #: Names of the row blocks of its weights, in order.
    rows: tuple[str, ...]
    #: h, or h and c.
    states: int
    #: Pre-activations of a step, the auxiliary one not counted; none if they are not all of the size of h.
    blocks: int


class Facts(NamedTuple):
    """The lists of facts.h; the position in a list is the number used in the structure."""

    dtypes: tuple[str, ...]
    weights: tuple[str, ...]
    #: Instructions of gate programs.
    operations: tuple[str, ...]
    #: Pre-activations by name.
    gates: dict[str, int]
    cells: dict[str, CellFacts]


class UnavailableError(RuntimeError):
    """The native library cannot be used here; the text says why, and what to do."""


def load() -> ctypes.CDLL:
    """The library, or UnavailableError with the reason."""
    if reason := reason_missing():
        raise UnavailableError(reason)
    assert _library is not None
    return _library


def _open() -> ctypes.CDLL:
    name = "libgatedrnn_cpu" + (".dylib" if sys.platform == "darwin" else ".so")
    if chosen := os.environ.get("GATEDRNN_CPU_LIBRARY"):  # another build of it, such as the sanitizers'
        return _load(Path(chosen), "GATEDRNN_CPU_LIBRARY names this file: unset it, or name a build of this version")
    # An editable install keeps what was built apart from the sources; the package's path names both places.
    folders = [Path(folder) for folder in sys.modules[__package__].__path__]
    files = [folder / name for folder in folders if (folder / name).exists()]
    if not files:
        raise UnavailableError(
            f"{name} was not built: neither GCC nor Clang was found when the package was installed. "
            "Install one of them, then reinstall the package"
        )
    return _load(files[0], "Install the package again")


def _load(file: Path, advice: str) -> ctypes.CDLL:
    """The library in this file, with declared functions; UnavailableError with the reason if it cannot be loaded."""
    try:
        check_whole(file)
        library = ctypes.CDLL(str(file))
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error).removeprefix(f"{file}: ")
        raise UnavailableError(f"{file} could not be loaded: {reason}. {advice}") from error
    try:
        library.gatedrnn_abi.restype = c_int64
        if (found := library.gatedrnn_abi()) != ABI:
            raise UnavailableError(
                f"{file} belongs to another version of the package (interface {found}, not {ABI}). {advice}"
            )
        _declare(library)
        if (size := library.gatedrnn_scan_size()) != ctypes.sizeof(Scan):
            raise UnavailableError(
                f"{file} belongs to another version of the package "
                f"(interface {found} with a structure of {size} bytes, not {ctypes.sizeof(Scan)}). {advice}"
            )
    except AttributeError as error:
        reason = str(error).removeprefix(f"{file}: ")
        raise UnavailableError(f"{file} is not the CPU engine of this version: {reason}. {advice}") from error
    return library


def _declare(library: ctypes.CDLL) -> None:
    for name, restype, argtypes in (
        ("forward", c_int, (ctypes.POINTER(Scan),)),
        ("backward", c_int, (ctypes.POINTER(Scan),)),
        ("gate", c_int, (c_int64, c_int64, c_int64, c_void_p, c_char_p, c_int64) + (c_void_p,) * 6),
        ("program", c_int, (c_int64, c_char_p, c_int64) + (c_void_p,) * 3),
        ("error", c_char_p, ()),
        ("isa", c_char_p, ()),
        ("select_isa", c_int, (c_char_p,)),
        ("panel_width", c_int64, (c_int64,)),
        ("kept_row", c_int64, (c_int64,) * 6),
        ("borrow_threads", None, (c_void_p,) * 3),
        ("take", c_void_p, (c_int64,)),
        ("give", None, (c_void_p,)),
        ("release", c_int64, ()),
        ("scan_size", c_int64, ()),
        ("facts", c_char_p, ()),
    ):
        function = getattr(library, f"gatedrnn_{name}")
        function.restype, function.argtypes = restype, argtypes


def _read_facts(library: ctypes.CDLL) -> Facts:
    lines = [line.split() for line in library.gatedrnn_facts().decode().splitlines()]

    def listed(kind: str) -> list[list[str]]:
        return [words for first, *words in lines if first == kind]

    return Facts(
        tuple(listed("dtypes")[0]),
        tuple(listed("weights")[0]),
        tuple(listed("operations")[0]),
        {name: int(preactivations) for name, preactivations in listed("gate")},
        {
            name: CellFacts(tuple(rows.split(",")), int(states), int(blocks))
            for name, rows, states, blocks in listed("cell")
        },
    )


def torch_threads() -> tuple[int | None, int | None, int | None]:
    """Where the functions are that run code on torch's own threads; None each if torch has no such runtime."""
    torch_library = ctypes.CDLL(torch._C.__file__)  # looks through everything that it was linked with
    names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
    try:
        parallel, thread, threads = (ctypes.cast(getattr(torch_library, name), c_void_p).value for name in names)
    except AttributeError:
        return None, None, None
    return parallel, thread, threads


def reason_missing() -> str | None:
    """Why the library cannot be used, or None if it can."""
    return _wrong_setting or _reason


def wrong_setting() -> str | None:
    """What is wrong with GATEDRNN_CPU_ISA, or None."""
    return _wrong_setting


def instruction_set() -> str:
    """The instruction set in use: "baseline", "avx2" or "avx512"."""
    return str(load().gatedrnn_isa().decode())


def select_instruction_set(name: str | None) -> None:
    """Use this instruction set from now on (None: the environment variable GATEDRNN_CPU_ISA, else the widest)."""
    _check(load().gatedrnn_select_isa(name.encode() if name else None))
    panel_width.cache_clear()


@lru_cache
def panel_width(dtype: str) -> int:
    """Hidden units are padded to a multiple of this in everything that is kept."""
    return int(load().gatedrnn_panel_width(FACTS.dtypes.index(dtype)))


def kept_row(dtype: str, cell: str, gate: str, hidden: int, recompute: bool, late: int = 0) -> int:
    """Elements kept for one row of the batch and one step (recompute: one checkpoint). ``late``: see Kernel.

    As the library's gatedrnn_kept_row, in arithmetic that torch.compile can trace with a symbolic size.
    """
    facts = FACTS.cells[cell]
    if not facts.blocks:
        return hidden if recompute else hidden + late
    blocks, memory = facts.blocks + FACTS.gates[gate] - 1, facts.states - 1
    width = panel_width(dtype)
    return (hidden + width - 1) // width * width * (memory if recompute else blocks + memory)


def take(size: int) -> ctypes.Array[ctypes.c_char]:
    """A buffer of so many bytes, undefined; the library has it back, to be used again, when nothing refers to it."""
    address = load().gatedrnn_take(size)
    if not address:
        raise RuntimeError(f"out of memory: the CPU engine could not allocate {size} bytes for the backward pass.")
    buffer = (ctypes.c_char * size).from_address(address)
    weakref.finalize(buffer, load().gatedrnn_give, address).atexit = False
    return buffer


def release() -> int:
    """Free the buffers that wait to be used again (at most 1 GiB); the number of bytes."""
    return int(load().gatedrnn_release())


def run_program(text: str, dtype: str, count: int, z: int, alpha: int, slope: int) -> None:
    """α and α′ of a gate program at ``count`` places; the last three are addresses."""
    _check(load().gatedrnn_program(FACTS.dtypes.index(dtype), text.encode(), count, z, alpha, slope))


def forward(scan: Scan) -> None:
    _check(load().gatedrnn_forward(ctypes.byref(scan)))


def backward(scan: Scan) -> None:
    _check(load().gatedrnn_backward(ctypes.byref(scan)))


def _check(status: int) -> None:
    if status:
        raise RuntimeError(load().gatedrnn_error().decode())


# Opened once, at import: torch.compile traces the calls that ask for it, and must find only values there. An import
# never fails; what is wrong is said when the engine is asked for.
_library: ctypes.CDLL | None = None
#: What the library knows; nothing where there is none.
FACTS = Facts((), (), (), {}, {})
_reason: str | None = None
_wrong_setting: str | None = None
try:
    _library = _open()
except UnavailableError as error:
    _reason = str(error)
else:
    FACTS = _read_facts(_library)
    if _library.gatedrnn_isa() is None:
        _wrong_setting = _library.gatedrnn_error().decode()
    _library.gatedrnn_borrow_threads(*torch_threads())
