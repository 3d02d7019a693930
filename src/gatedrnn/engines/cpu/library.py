"""The native library, loaded with ctypes. It is built with the package, never at import.

The structure and the functions mirror ``abi.h``.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from pathlib import Path

import torch

from gatedrnn.engines.cpu.elf import check_whole

ABI = 2
DTYPES = ("float32", "float64")
CELLS = ("lstm", "lstm_tied", "gru", "janet")
GATES = ("sigmoid", "softsign", "fast", "iterated_fast", "polynomial", "refine")
WEIGHTS = (
    "weight_ih",
    "weight_hh",
    "bias_ih",
    "bias_hh",
    "weight_hr",
    "weight_ih_aux",
    "weight_hh_aux",
    "bias_ih_aux",
    "bias_hh_aux",
)

_POINTERS = (
    *("lengths", "starts", "input", "h_0", "c_0", *WEIGHTS, "output", "h_n", "c_n", "cells", "kept"),
    *("grad_output", "grad_h_n", "grad_c_n", "grad_cells", "grad_input", "grad_h_0", "grad_c_0"),
    *(f"grad_{name}" for name in WEIGHTS),
)


class Scan(ctypes.Structure):
    """One layer, one direction, all time steps: ``struct GatedrnnScan``."""

    _fields_ = (
        [(name, c_int64) for name in ("dtype", "cell", "gate", "steps", "batch", "inputs", "hidden", "recurrent")]  # type: ignore[assignment]
        + [(name, c_int64) for name in ("reverse", "threads", "segment", "kept_size", "coefficient_count")]
        + [("coefficients", c_void_p), ("odds", c_double)]
        + [("input_strides", c_int64 * 3), ("grad_output_strides", c_int64 * 2), ("grad_cells_strides", c_int64 * 2)]
        + [(name, c_void_p) for name in _POINTERS]
    )


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
            f"{name} was not built: no C++ compiler was found when the package was installed. "
            "Install a C++ compiler and then the package again"
        )
    return _load(files[0], "Install the package again")


def _load(file: Path, advice: str) -> ctypes.CDLL:
    """The library in this file, its functions declared; whatever the file is, UnavailableError says what is wrong."""
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
    except AttributeError as error:
        reason = str(error).removeprefix(f"{file}: ")
        raise UnavailableError(f"{file} is not the CPU engine of this version: {reason}. {advice}") from error
    return library


def _declare(library: ctypes.CDLL) -> None:
    for name, restype, argtypes in (
        ("forward", c_int, (ctypes.POINTER(Scan),)),
        ("backward", c_int, (ctypes.POINTER(Scan),)),
        ("gate", c_int, (c_int64, c_int64, c_int64, c_void_p, c_int64) + (c_void_p,) * 6),
        ("error", c_char_p, ()),
        ("isa", c_char_p, ()),
        ("select_isa", c_int, (c_char_p,)),
        ("panel_width", c_int64, (c_int64,)),
        ("kept_row", c_int64, (c_int64,) * 5),
        ("borrow_threads", None, (c_void_p,) * 3),
        ("take", c_void_p, (c_int64,)),
        ("give", None, (c_void_p,)),
        ("release", c_int64, ()),
    ):
        function = getattr(library, f"gatedrnn_{name}")
        function.restype, function.argtypes = restype, argtypes


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


def panel_width(dtype: str) -> int:
    """Hidden units are padded to a multiple of this in everything that is kept."""
    return int(load().gatedrnn_panel_width(DTYPES.index(dtype)))


def kept_row(dtype: str, cell: str, gate: str, hidden: int, recompute: bool) -> int:
    """Elements kept for one row of the batch and one step (recompute: one checkpoint).

    As the library's gatedrnn_kept_row, in arithmetic that torch.compile can trace with a symbolic size.
    """
    memory = cell in ("lstm", "lstm_tied")
    blocks = {"lstm": 4, "lstm_tied": 3, "gru": 4, "janet": 2}[cell] + (gate == "refine")
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
_reason: str | None = None
_wrong_setting: str | None = None
try:
    _library = _open()
except UnavailableError as error:
    _reason = str(error)
else:
    if _library.gatedrnn_isa() is None:
        _wrong_setting = _library.gatedrnn_error().decode()
    _library.gatedrnn_borrow_threads(*torch_threads())
