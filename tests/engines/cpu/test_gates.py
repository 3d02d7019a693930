"""The library's gate functions against mpmath, to the accuracy that the package promises for every engine."""

from __future__ import annotations

import ctypes
import itertools

import mpmath
import numpy as np
import pytest

from gatedrnn.engines.cpu import library
from tests.engines.cpu.loop import GATES

DTYPES = {"float32": np.float32, "float64": np.float64}
#: Programs are as exact as their formulas: test_programs.py.
NAMED = [gate for gate in GATES if gate != "program"]
COEFFICIENTS = (1.0, 0.5)
DIGITS = 40


def sweep(gate: str, dtype: str, z: np.ndarray, aux: np.ndarray | None = None) -> list[np.ndarray]:
    """value, complement, slope, slope_aux as the library computes them."""
    coefficients = COEFFICIENTS if gate == "polynomial" else ()
    numbers = (ctypes.c_double * 8)(*coefficients)
    results = [np.full_like(z, np.nan) for _ in range(4)]
    pointers = [a.ctypes.data if a is not None else None for a in (z, aux, *results)]
    status = library.load().gatedrnn_gate(
        library.FACTS.dtypes.index(dtype),
        GATES.index(gate),
        len(coefficients),
        ctypes.addressof(numbers),
        None,
        z.size,
        *pointers,
    )
    assert status == 0, library.load().gatedrnn_error()
    return results


def exact(gate: str, z: float, z_r: float = 0.0) -> list[mpmath.mpf]:
    """value, complement, derivatives for z and z_r."""
    with mpmath.workdps(DIGITS):
        z = mpmath.mpf(z)

        def sigma(s):
            return 1 / (1 + mpmath.exp(-s))

        if gate == "refine":
            f, q, r, p = sigma(z), sigma(-z), sigma(mpmath.mpf(z_r)), sigma(-mpmath.mpf(z_r))
            return [f * (f + 2 * r * q), q * (q + 2 * p * f), 2 * f * q * (r * q + p * f), 2 * f * q * r * p]
        if gate == "softsign":
            small = 1 / (abs(z) + 2)
            value = [1 - small, small] if z >= 0 else [small, 1 - small]
            return [*value, small * small, mpmath.mpf(0)]
        s, slope = {
            "sigmoid": lambda: (z, mpmath.mpf(1)),
            "fast": lambda: (mpmath.sinh(z), mpmath.cosh(z)),
            "iterated_fast": lambda: (mpmath.sinh(mpmath.sinh(z)), mpmath.cosh(mpmath.sinh(z)) * mpmath.cosh(z)),
            "polynomial": lambda: (
                z + sum(c * z ** (2 * k + 3) for k, c in enumerate(COEFFICIENTS)),
                1 + sum((2 * k + 3) * c * z ** (2 * k + 2) for k, c in enumerate(COEFFICIENTS)),
            ),
        }[gate]()
        if abs(s) > 20000:  # mpmath would take 10^8000 seriously
            return [mpmath.mpf(s > 0), mpmath.mpf(s < 0), mpmath.mpf(0), mpmath.mpf(0)]
        f, q = sigma(s), sigma(-s)
        return [f, q, f * q * slope, mpmath.mpf(0)]


def allowed(gate: str, z: float, z_r: float, place: int, expected: mpmath.mpf, kind: type) -> mpmath.mpf:
    """Four units in the last place and what half a unit of z makes of it."""
    assert mpmath.mp.dps == DIGITS
    rounded = kind(float(expected)) if abs(expected) < np.finfo(kind).max else np.finfo(kind).max
    unit = mpmath.mpf(float(np.spacing(np.abs(rounded))))
    total = 4 * unit
    step = mpmath.mpf(float(np.spacing(np.abs(kind(z))))) / 2
    moved = [exact(gate, mpmath.mpf(z) + d, z_r)[place] for d in (step, -step)]
    total += max(abs(m - expected) for m in moved)
    if gate == "refine":
        step = mpmath.mpf(float(np.spacing(np.abs(kind(z_r))))) / 2
        total += max(abs(exact(gate, z, mpmath.mpf(z_r) + d)[place] - expected) for d in (step, -step))
    return total


def points(gate: str, kind: type) -> np.ndarray:
    end = {"sigmoid": 120, "softsign": 1e6, "fast": 7, "iterated_fast": 3.2, "polynomial": 8, "refine": 100}[gate]
    if kind is np.float64:
        end = {"sigmoid": 760, "softsign": 1e12, "fast": 9, "iterated_fast": 3.4, "polynomial": 20, "refine": 720}[gate]
    rng = np.random.default_rng(0)
    z = np.concatenate([np.linspace(-end, end, 401), np.geomspace(1e-30, end, 150), -np.geomspace(1e-30, end, 150)])
    z = np.concatenate([z, rng.uniform(-end, end, 200), [0.0, -0.0]])
    return z.astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gate", NAMED)
def test_accuracy(gate: str, dtype: str, isa: str) -> None:
    kind = DTYPES[dtype]
    z = points(gate, kind)
    aux = np.random.default_rng(1).uniform(-30, 30, z.size).astype(kind) if gate == "refine" else None
    found = sweep(gate, dtype, z, aux)
    tiny = mpmath.mpf(float(np.finfo(kind).tiny))
    for i, place in itertools.product(range(z.size), range(4 if gate == "refine" else 3)):
        z_r = float(aux[i]) if aux is not None else 0.0
        got = mpmath.mpf(float(found[place][i]))
        with mpmath.workdps(DIGITS):
            expected = exact(gate, float(z[i]), z_r)[place]
            if expected < tiny:
                assert 0 <= got <= tiny, (gate, place, z[i], z_r, got)
                continue
            share = abs(got - expected) / allowed(gate, float(z[i]), z_r, place, expected, kind)
            assert share <= 1, (gate, place, z[i], z_r, float(got), float(expected), float(share))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gate", NAMED)
def test_extremes_are_finite_and_nan_stays(gate: str, dtype: str, isa: str) -> None:
    kind = DTYPES[dtype]
    largest = np.finfo(kind).max
    z = np.array([np.inf, -np.inf, largest, -largest, np.finfo(kind).tiny, 1e-320, np.nan], kind)
    aux = np.zeros_like(z) if gate == "refine" else None
    value, complement, slope, _ = sweep(gate, dtype, z, aux)
    np.testing.assert_array_equal(value[:4], [1, 0, 1, 0])
    np.testing.assert_array_equal(complement[:4], [0, 1, 0, 1])
    assert np.all(slope[:4] == 0) or (gate == "softsign" and np.all(slope[:4] < 1e-30))
    np.testing.assert_allclose(value[4:6], 0.5)
    assert np.isnan([value[6], complement[6], slope[6]]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_coefficients_do_not_make_nan(dtype: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "COEFFICIENTS", (1e30, 0.0, 1e30))
    z = np.array([0.0, 1.0, -1.0, 1e30, -np.inf, 1e-3], DTYPES[dtype])
    value, complement, slope, _ = sweep("polynomial", dtype, z)
    np.testing.assert_array_equal(value, [0.5, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(complement, [0.5, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(slope, [0.25, 0, 0, 0, 0, 0])


def test_every_length_is_written_and_no_more(isa: str) -> None:
    for n in range(40):
        z = np.linspace(-1, 1, n + 1, dtype=np.float32)[:n].copy()
        value = np.full(n + 8, 7.0, np.float32)
        rest = [np.empty(n + 8, np.float32) for _ in range(2)]
        pointers = [a.ctypes.data for a in (z,)] + [None] + [a.ctypes.data for a in (value, *rest)] + [None]
        assert library.load().gatedrnn_gate(0, 0, 0, None, None, n, *pointers) == 0
        np.testing.assert_allclose(value[:n], 1 / (1 + np.exp(-z)), rtol=1e-6)
        assert (value[n:] == 7).all()
