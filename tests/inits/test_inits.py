"""The initialisers against closed forms, laws and scipy, for every gate of the registry."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch

from gatedrnn import inits
from gatedrnn.gates import GATES, Polynomial
from gatedrnn.inits import INITS, Chrono, Constant, ForgetInit, PowerLaw, Uniform
from tests import tolerances

EXAMPLES: dict[str, ForgetInit] = {
    "constant": Constant(),
    "chrono": Chrono(t_max=784),
    "uniform": Uniform(),
    "power_law": PowerLaw(),
}
#: The bias with φ(b) = σ(1), to the digits of the table or in closed form.
BIASES = {
    "sigmoid": 1.0,
    "softsign": math.e - 1.0,
    "fast": math.asinh(1.0),
    "iterated_fast": math.asinh(math.asinh(1.0)),
    "polynomial": 0.6823278038280193,
    "refine": 1.0,
}


def seeded(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_registry() -> None:
    assert set(EXAMPLES) == set(INITS)
    assert set(BIASES) == set(GATES)
    for name, kind in INITS.items():
        assert type(EXAMPLES[name]) is kind


@pytest.mark.parametrize("name", GATES)
def test_constant(name: str) -> None:
    biases = Constant()(GATES[name](), 3)
    assert len(biases) == GATES[name].preactivations
    assert all(b.dtype == torch.float64 and b.shape == (3,) for b in biases)
    np.testing.assert_allclose(biases[0].numpy(), BIASES[name], rtol=tolerances.INIT_RELATIVE)
    assert all(b.tolist() == [0.0] * 3 for b in biases[1:])
    for value in (1e-300, 0.25, 0.5, 1 - 2**-50):
        again = GATES[name]().value(*Constant(value)(GATES[name](), 2))
        np.testing.assert_allclose(again.numpy(), value, rtol=1e-12)


def test_table_of_the_method() -> None:
    assert round(BIASES["iterated_fast"], 6) == 0.794958
    assert round(BIASES["polynomial"], 6) == 0.682328
    assert BIASES["polynomial"] + BIASES["polynomial"] ** 3 == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("t_max", [2.5, 784.0, 1e15])
def test_chrono_law(name: str, t_max: float) -> None:
    gate, init = GATES[name](), Chrono(t_max)
    biases = init(gate, 20_000, generator=seeded())
    u = gate.value(*biases) / gate.complement(*biases)
    assert float(u.min()) >= 1 - 1e-9
    assert float(u.max()) <= (t_max - 1) * (1 + 1e-9)
    law = scipy.stats.uniform(1.0, t_max - 2.0)
    assert scipy.stats.kstest(u.numpy(), law.cdf).pvalue > tolerances.KS_P_VALUE
    # b_i = −log u, for every gate the same draw.
    plain = 1.0 + (t_max - 2.0) * torch.rand(20_000, dtype=torch.float64, generator=seeded())
    torch.testing.assert_close(init.input_bias(gate, biases), -plain.log(), rtol=1e-11, atol=1e-13)
    assert all(b.abs().max() == 0 for b in biases[1:])
    assert init.sets_input


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("size", [2, 3, 20_000])
def test_uniform_law(name: str, size: int) -> None:
    gate = GATES[name]()
    first, *rest = Uniform()(gate, size, generator=seeded())
    f = gate.value(first, *(torch.zeros_like(first) for _ in rest))
    expected = 1 / size + (1 - 2 / size) * torch.rand(size, dtype=torch.float64, generator=seeded())
    torch.testing.assert_close(f, expected, rtol=1e-12, atol=1e-15)
    if size > 3:
        law = scipy.stats.uniform(1 / size, 1 - 2 / size)
        assert scipy.stats.kstest(f.numpy(), law.cdf).pvalue > tolerances.KS_P_VALUE
    assert len(rest) == gate.preactivations - 1
    assert all(torch.equal(auxiliary, -first) for auxiliary in rest)
    assert not Uniform().sets_input


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("law", [PowerLaw(), PowerLaw(shape=2.0, scale=30.0), PowerLaw(scale=0.05)], ids=repr)
@pytest.mark.parametrize("size", [1, 7, 1150])
def test_power_law(name: str, law: PowerLaw, size: int) -> None:
    gate = GATES[name]()
    levels = np.arange(1, size + 1) / (size + 1)
    T = scipy.stats.invgamma(law.shape, scale=law.scale).isf(levels)
    np.testing.assert_allclose(law.time_scales(size).numpy(), T, rtol=tolerances.QUANTILE_RELATIVE)
    assert (np.diff(T) < 0).all()
    biases = law(gate, size)
    np.testing.assert_allclose(gate.time_scale(*biases).numpy(), T, rtol=1e-10)
    torch.testing.assert_close(
        torch.sigmoid(law.input_bias(gate, biases)), gate.complement(*biases), rtol=1e-10, atol=0
    )
    assert law.sets_input


@pytest.mark.parametrize("init", EXAMPLES.values(), ids=repr)
def test_generators(init: ForgetInit) -> None:
    gate = Polynomial()
    before = torch.get_rng_state()
    one, two = init(gate, 16, generator=seeded(1)), init(gate, 16, generator=seeded(1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one[0], two[0])
    draws = type(init) in (Chrono, Uniform)
    assert torch.equal(one[0], init(gate, 16, generator=seeded(2))[0]) is not draws
    torch.manual_seed(1)
    assert torch.equal(init(gate, 16)[0], one[0])
    assert torch.equal(torch.get_rng_state(), torch.Generator().manual_seed(1).get_state()) is not draws


@pytest.mark.parametrize("init", EXAMPLES.values(), ids=repr)
@pytest.mark.parametrize("name", GATES)
def test_meta(init: ForgetInit, name: str) -> None:
    gate, generator = GATES[name](), seeded()
    states = torch.get_rng_state(), generator.get_state()
    with torch.device("meta"):
        inside = init(gate, 5, generator=generator)
    for biases in (inside, init(gate, 5, generator=generator, device="meta")):
        assert len(biases) == gate.preactivations
        assert all(b.is_meta and b.shape == (5,) and b.dtype == torch.float64 for b in biases)
    assert torch.equal(states[0], torch.get_rng_state())
    assert torch.equal(states[1], generator.get_state())
    with torch.device("meta"):
        real = init(gate, 5, generator=generator, device="cpu")
    assert all(torch.equal(a, b) for a, b in zip(real, init(gate, 5, generator=seeded()), strict=True))


@pytest.mark.parametrize("init", [*EXAMPLES.values(), Constant(0.9), PowerLaw(0.7, 2.0)], ids=repr)
def test_values_not_identities(init: Any) -> None:
    words = {kind.__name__: kind for kind in INITS.values()}
    for twin in (eval(repr(init), words), copy.deepcopy(init), pickle.loads(pickle.dumps(init))):
        assert twin == init
        assert hash(twin) == hash(init)
    with pytest.raises(dataclasses.FrozenInstanceError):
        init.t_max = 5.0


def test_resolve() -> None:
    assert inits.resolve("constant") == Constant()
    assert inits.resolve("uniform") == Uniform()
    assert inits.resolve("power_law") == PowerLaw(shape=0.56, scale=1.0)
    chrono = Chrono(10)
    assert inits.resolve(chrono) is chrono
    with pytest.raises(ValueError, match=r"'chrono' needs an argument: pass Chrono\(t_max=…\)"):
        inits.resolve("chrono")
    with pytest.raises(ValueError, match="unknown initialiser 'ones'; known initialisers: " + ", ".join(INITS)):
        inits.resolve("ones")
    with pytest.raises(TypeError, match="a name or an object"):
        inits.resolve(3.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("t_max", [2, 1.5, 0, -3, math.nan, math.inf])
def test_chrono_refuses(t_max: float) -> None:
    with pytest.raises(ValueError, match=rf"finite t_max above 2, got t_max={t_max}"):
        Chrono(t_max)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_constant_refuses(value: float) -> None:
    with pytest.raises(ValueError, match=rf"between 0 and 1, got value={value}"):
        Constant(value)


@pytest.mark.parametrize("name", ["shape", "scale"])
@pytest.mark.parametrize("number", [0.0, -1.0, math.nan, math.inf])
def test_power_law_refuses(name: str, number: float) -> None:
    with pytest.raises(ValueError, match=rf"positive {name}, got {name}={number}"):
        PowerLaw(**{name: number})


@pytest.mark.parametrize("init", EXAMPLES.values(), ids=repr)
@pytest.mark.parametrize("device", [None, "meta"])
def test_sizes_refused(init: ForgetInit, device: str | None) -> None:
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"needs hidden_size ≥ [12], got {size}"):
            init(Polynomial(), size, device=device)
    if isinstance(init, Uniform):
        with pytest.raises(ValueError, match=r"needs hidden_size ≥ 2, got 1"):
            init(Polynomial(), 1, device=device)
    else:
        assert init(Polynomial(), 1, device=device)[0].shape == (1,)


@pytest.mark.parametrize(
    "law", [PowerLaw(scale=1e-5), PowerLaw(shape=1e-4, scale=1e300), PowerLaw(shape=1e-3)], ids=repr
)
def test_time_scales_out_of_reach(law: PowerLaw) -> None:
    with pytest.raises(ValueError, match=r"PowerLaw.*hidden_size 99 gives time scales that no float64 gate value has"):
        law(Polynomial(), 99)
