"""The time scales of uniform initialisation, against what can be worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from gatedrnn.gates import resolve
from gatedrnn.inits import Uniform
from gatedrnn.theory.initial import uniform_time_scales

GATES = [resolve(name) for name in ("softsign", "sigmoid", "fast", "refine")]


def test_the_refine_gate_is_the_one_that_is_not_uniform() -> None:
    """Its value is 2u − 3u² + 2u³, farthest from u at u = (1 ± 1/√3)/2: by √3/18."""
    found = uniform_time_scales(GATES)["gates"]
    for name in ("softsign", "sigmoid", "fast"):
        assert found[name]["distance_from_uniform"] < 0.005
    assert found["refine"]["distance_from_uniform"] == pytest.approx(math.sqrt(3) / 18, abs=0.005)


def test_half_as_many_units_of_refine_have_long_time_scales() -> None:
    found = uniform_time_scales(GATES)
    law = found["share_above_where_uniform"]
    assert law["100"] == pytest.approx(1 - math.exp(-1 / 100), rel=1e-12)
    shares = {name: one["share_above"]["100"] / law["100"] for name, one in found["gates"].items()}
    # Of 100,000 units about 995 are above: a standard deviation of 3 %.
    assert [shares[name] for name in ("softsign", "sigmoid", "fast")] == pytest.approx([1.0] * 3, abs=0.1)
    assert shares["refine"] == pytest.approx(0.5, abs=0.08)


def test_the_value_of_refine_by_its_formula() -> None:
    refine, sigmoid = resolve("refine"), resolve("sigmoid")
    u = sigmoid.value(Uniform()(sigmoid, 1000, torch.Generator().manual_seed(0))[0])
    value = refine.value(*Uniform()(refine, 1000, torch.Generator().manual_seed(0)))
    torch.testing.assert_close(value, 2 * u - 3 * u**2 + 2 * u**3, rtol=1e-12, atol=1e-14)
