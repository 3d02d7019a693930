"""The kernel that a scan needs, as one string that can be passed to an operator and stored in an exported graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

from gatedrnn import cells, gates
from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.lowered import LOWERED, LoweredNRU
from gatedrnn.gates import tracing
from gatedrnn.gates.program import Program, ProgramGate

# A subclass may change the maths, so only the classes themselves have a name.
BUILT_IN: dict[type[gates.Gate], str] = {kind: name for name, kind in gates.GATES.items()}
CELLS: dict[type[cells.Cell], Callable[[cells.Cell], str]] = {
    cells.LSTMEquations: lambda cell: "lstm_tied" if cell.tied else "lstm",  # type: ignore[attr-defined]
    cells.GRUEquations: lambda cell: "gru",
    cells.JANETEquations: lambda cell: "janet",
    cells.UGRNNEquations: lambda cell: "ugrnn",
    cells.MinimalRNNEquations: lambda cell: "minimal_rnn",
    cells.FastGRNNEquations: lambda cell: "fastgrnn",
    cells.MGUEquations: lambda cell: "mgu",
    cells.NRUEquations: lambda cell: "nru",
}

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """A cell and a gate by the library's names, their numbers, and the names of the weights in the order given."""

    cell: str
    gate: str
    weights: tuple[str, ...]
    #: Of the polynomial gate.
    coefficients: tuple[float, ...] = ()
    #: Of JANET.
    beta: float = 0.0
    #: Of a custom gate.
    program: str = ""
    #: Of the NRU: memory_size, heads and whether there is a ReLU.
    memory: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Numbers in hexadecimal, so that nothing is lost."""
        words = [f"cell={self.cell}", f"gate={self.gate}", f"weights={','.join(self.weights)}"]
        if self.coefficients:
            words.append(f"coefficients={','.join(c.hex() for c in self.coefficients)}")
        if self.beta:
            words.append(f"beta={self.beta.hex()}")
        if self.program:
            words.append(f"program={self.program}")
        if self.memory:
            words.append(f"memory={','.join(map(str, self.memory))}")
        return " ".join(words)

    @property
    def late(self) -> int:
        """Pre-activations of the NRU's heads."""
        return self._nru().late() if self.memory else 0

    def _nru(self) -> LoweredNRU:
        memory_size, heads, relu = self.memory
        return LoweredNRU(memory_size, heads, bool(relu))

    @property
    def states(self) -> int:
        return library.FACTS.cells[self.cell].states

    @property
    def aux(self) -> bool:
        return library.FACTS.gates[self.gate] == 2

    def made_cell(self, proj_size: int = 0) -> cells.Cell:
        """The cell; one with a projection needs its size."""
        if self.cell.startswith("lstm"):
            return cells.LSTMEquations(tied=self.cell == "lstm_tied", proj_size=proj_size)
        if self.cell == "janet":
            return cells.JANETEquations(beta=self.beta)
        if self.cell == "nru":
            return self._nru()
        kind = cells.CELLS[self.cell]
        return LOWERED[kind].cell() if kind in LOWERED else kind()

    def made_gate(self) -> gates.Gate:
        if self.gate == "program":
            return ProgramGate(self.program)
        if self.gate == "polynomial":
            return gates.Polynomial(self.coefficients)
        return gates.GATES[self.gate]()

    def shapes(self, inputs: int, hidden: int, recurrent: int) -> tuple[Shape, ...]:
        """What the weights must have for so many inputs, hidden units and entries of h."""
        return _shapes(self, inputs, hidden, recurrent)


def kernel_of(cell: cells.Cell, gate: gates.Gate, weights: tuple[str, ...], dtype: torch.dtype) -> Kernel | str:
    """The kernel for a cell and a gate, or why there is none; the names are those of the weights that it takes."""
    if type(cell) not in CELLS:
        return f"it has no kernel for the cell {cell!r}"
    name, beta = CELLS[type(cell)](cell), float(getattr(cell, "beta", 0.0))
    if isinstance(cell, cells.NRUEquations):
        return Kernel(name, "sigmoid", weights, memory=(cell.memory_size, cell.heads, int(cell.relu)))
    if type(gate) in BUILT_IN:
        return Kernel(name, BUILT_IN[type(gate)], weights, tuple(getattr(gate, "coefficients", ())), beta)
    program = gates.program_of(gate, dtype)
    if isinstance(program, str):
        return f"it has no kernel for the gate {gate!r}: {program}"
    if reason := _refused_program(str(program), dtype):
        return f"it has no kernel for the gate {gate!r}: {reason}"
    return Kernel(name, "program", weights, beta=beta, program=str(program))


def _refused_program(text: str, dtype: torch.dtype) -> str | None:
    """Why the library does not compute the program as torch does, or None."""
    if library.reason_missing():
        return None  # and the engine says so
    return _tried(text, dtype, library.instruction_set())


@lru_cache(maxsize=1024)
def _tried(text: str, dtype: torch.dtype, instruction_set: str) -> str | None:
    """The kernels flush what lies below the normal numbers to zero, which is not always the same."""

    def compare() -> str | None:
        z = tracing.grid_of(dtype)
        found = torch.empty_like(z), torch.empty_like(z)
        try:
            library.run_program(
                text, str(dtype).removeprefix("torch."), z.numel(), z.data_ptr(), *(t.data_ptr() for t in found)
            )
        except RuntimeError as error:
            return str(error).rstrip(".")
        for method, native, right in zip(("alpha", "alpha_derivative"), found, Program.parse(text).run(z), strict=True):
            if not tracing.agree(native, right):
                return f"its native program does not reproduce {method}"
        return None

    return tracing.alone(compare)


@lru_cache(maxsize=1024)
def parse(text: str) -> Kernel:
    """The kernel described by a string; ValueError if the library does not have it."""
    try:
        words = dict(word.split("=", 1) for word in text.split(" "))
        kernel = Kernel(
            words.pop("cell"),
            words.pop("gate"),
            tuple(words.pop("weights").split(",")),
            tuple(float.fromhex(c) for c in words.pop("coefficients", "").split(",") if c),
            float.fromhex(words.pop("beta", "0")),
            words.pop("program", ""),
            tuple(int(n) for n in words.pop("memory", "").split(",") if n),
        )
        if kernel.program:
            Program.parse(kernel.program)
        if kernel.cell == "nru":
            kernel._nru()
            if kernel.gate != "sigmoid":
                raise ValueError("the cell 'nru' has no gate; use gate=sigmoid")
        elif kernel.memory:
            raise ValueError(f"the cell {kernel.cell!r} has no memory={','.join(map(str, kernel.memory))}")
    except (KeyError, ValueError) as error:
        raise ValueError(f"{text!r} does not describe a kernel: {error}") from error
    facts = library.FACTS
    if kernel.cell not in facts.cells:
        raise ValueError(f"unknown cell {kernel.cell!r}; known cells: {', '.join(facts.cells)}")
    if kernel.gate not in facts.gates:
        raise ValueError(f"unknown gate {kernel.gate!r}; known gates: {', '.join(facts.gates)}")
    if words:
        raise ValueError(f"{text!r} does not describe a kernel: unknown {', '.join(words)}")
    possible = kernel.made_cell(proj_size=1).parameter_shapes(1, 2, bias=True, aux=kernel.aux)
    for name in kernel.weights:
        if name not in possible:
            raise ValueError(f"the cell {kernel.cell!r} with the gate {kernel.gate!r} has no {name}")
        if kernel.weights.count(name) > 1:
            raise ValueError(f"{name} is named {kernel.weights.count(name)} times in {text!r}")
    needed = kernel.made_cell().parameter_shapes(1, 2, bias=False, aux=kernel.aux)
    if missing := [name for name in needed if name not in kernel.weights]:
        raise ValueError(f"{missing[0]} is missing for the cell {kernel.cell!r} with the gate {kernel.gate!r}")
    return kernel


@lru_cache(maxsize=1024)
def _shapes(kernel: Kernel, inputs: int, hidden: int, recurrent: int) -> tuple[Shape, ...]:
    projection = recurrent if "weight_hr" in kernel.weights else 0
    h = recurrent if kernel.memory else hidden
    shapes = kernel.made_cell(projection).parameter_shapes(inputs, h, bias=True, aux=kernel.aux)
    return tuple(shapes[name] for name in kernel.weights)
