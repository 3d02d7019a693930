"""Random small cases against the plain loop; ten thousand of them in the slow run."""

from __future__ import annotations

import random

import pytest
import torch

from gatedrnn.engines.cpu import library
from tests.engines.cpu.conftest import ISAS
from tests.engines.cpu.loop import CELLS, GATES, Case, worst


def draw(seed: int) -> tuple[Case, str, int]:
    r = random.Random(seed)
    cell, gate = r.choice(CELLS), r.choice(GATES)
    case = Case(
        cell,
        gate,
        r.choice([1, 2, 3, 5, 9, 20]),
        r.choice([1, 2, 3, 7, 13, 70]),
        r.choice([0, 1, 2, 5, 17, 40]),
        r.choice([1, 2, 3, 8, 15, 16, 17, 33]),
        r.choice([0, 0, 1, 4]) if cell.startswith("lstm") else 0,
        bias=r.random() < 0.8,
        reverse=r.random() < 0.5,
        ragged=r.random() < 0.5,
        recompute=r.random() < 0.3,
        collect=r.random() < 0.3,
        dtype=r.choice([torch.float64, torch.float32]),
        beta=r.choice([0.0, 1.0, 2.5]),
        memory=r.choice([(1, 1, 1), (9, 4, 1), (16, 4, 0), (64, 4, 1), (18, 2, 0)]),
        coefficients=[r.random() for _ in range(r.randint(0, 3))] if gate == "polynomial" else [],
        seed=seed,
    )
    case.packed = case.ragged and r.random() < 0.4
    if cell == "nru":  # with weights of size 1 its memory grows at every step, and soon past the limit of its norm
        case.steps, case.scale = min(case.steps, 5), 0.3
    return case, r.choice(ISAS), r.choice([1, 2, 3])


def check(seeds: range) -> None:
    before = torch.get_num_threads()
    try:
        for seed in seeds:
            case, isa, threads = draw(seed)
            library.select_instruction_set(isa)
            torch.set_num_threads(threads)
            error, name = worst(case)
            # float32: a gate that multiplies a rounding error of z by its slope, over twenty steps; the NRU divides by the
            # length of a direction, which may be hardly any.
            single = 1e-2 if case.cell == "nru" else 1e-3
            assert error < (1e-9 if case.dtype == torch.float64 else single), (
                f"{name} is off by {error:.1e}: {seed} {case}"
            )
    finally:
        torch.set_num_threads(before)
        library.select_instruction_set(None)


@pytest.mark.parametrize("part", range(4))
def test_random_cases(part: int) -> None:
    check(range(part * 50, part * 50 + 50))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_ten_thousand_random_cases(part: int) -> None:
    check(range(part * 500, part * 500 + 500))
