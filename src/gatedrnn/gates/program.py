"""Gate programs: α and α′ of a gate as a short list of elementwise instructions, which any engine can execute.

A program is data. As text it is passed to native engines and stored in exported graphs; nothing is compiled at
run time. This file says what the instructions mean, in plain torch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from gatedrnn.gates.base import SigmoidOf

#: A register (0 is z, k+1 the result of instruction k) or a constant.
Operand = int | float

#: The instructions by name. Every number but 0 counts as true.
OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sign": torch.sign,
    "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "sigmoid": torch.sigmoid,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "pow": torch.pow,
    "powi": torch.pow,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "not": torch.logical_not,
    "where": lambda condition, a, b: torch.where(condition != 0, a, b),
    "copy": torch.clone,
}
#: Those whose result is 1 or 0, in the dtype of z.
LOGICAL = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not"))
#: Exponents of ``powi``, by multiplications, lie between ± this.
LARGEST_POWER = 64
#: The largest number of instructions of a program.
MOST_INSTRUCTIONS = 256


@dataclass(frozen=True)
class Program:
    """Instructions, and the registers in which α(z) and α′(z) are at the end."""

    instructions: tuple[tuple[str, tuple[Operand, ...]], ...]
    value: int
    slope: int

    def __str__(self) -> str:
        """Constants are the bits of a double in hexadecimal: exact, and no number for torch.compile to generalise."""
        lines = [",".join([name, *map(_written, operands)]) for name, operands in self.instructions]
        return ";".join([*lines, f"=,{self.value},{self.slope}"])

    @staticmethod
    def parse(text: str) -> Program:
        """The program of a text; ValueError if it is none."""
        *lines, last = text.split(";")
        mark, *results = last.split(",")
        if mark != "=" or len(results) != 2 or len(lines) > MOST_INSTRUCTIONS:
            raise ValueError(f"{text!r} is not a gate program")
        instructions = []
        for known, line in enumerate(lines, 1):
            name, *operands = line.split(",")
            if name not in OPERATIONS:
                raise ValueError(f"unknown instruction {name!r} in a gate program")
            instructions.append((name, tuple(_read(operand, known) for operand in operands)))
        value, slope = (_read(result, len(lines) + 1) for result in results)
        return Program(tuple(instructions), int(value), int(slope))

    def run(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """α(z) and α′(z), differentiable by autograd."""
        registers = [z]
        for name, operands in self.instructions:
            given = [registers[o] if isinstance(o, int) else torch.full_like(z, o) for o in operands]
            result = OPERATIONS[name](*given)
            registers.append(result.to(z.dtype) if name in LOGICAL else result)
        return registers[self.value], registers[self.slope]


def _written(operand: Operand) -> str:
    return str(operand) if isinstance(operand, int) else f"#{struct.pack('>d', operand).hex()}"


def _read(text: str, known: int) -> Operand:
    if text.startswith("#"):
        if len(text) != 17:
            raise ValueError(f"{text!r} is not the bits of a double")
        (constant,) = struct.unpack(">d", bytes.fromhex(text[1:]))
        return float(constant)
    register = int(text)
    if not 0 <= register < known:
        raise ValueError(f"register {register} is read before it is computed")
    return register


@lru_cache(maxsize=256)
def _parsed(text: str) -> Program:
    return Program.parse(text)


@dataclass(frozen=True)
class ProgramGate(SigmoidOf):
    """The gate of a program's text: what a traced gate is where its object is not at hand."""

    program: str

    def alpha(self, z: Tensor) -> Tensor:
        return _parsed(self.program).run(z)[0]

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return _parsed(self.program).run(z)[1]
