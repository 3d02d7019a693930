from __future__ import annotations

import math

import pytest
import torch

from gatedrnn.lab.tasks import Tones
from gatedrnn.lab.tasks.tones import frequencies


def test_the_ten_frequencies_differ_by_one_factor() -> None:
    found = frequencies().double()
    assert len(found) == 10
    assert found[0].item() == pytest.approx(1 / 40) and found[-1].item() == pytest.approx(1 / 4)
    factors = found[1:] / found[:-1]
    torch.testing.assert_close(factors, torch.full_like(factors, 10 ** (1 / 9)), rtol=1e-5, atol=0)


def test_the_tone_that_is_heard_is_the_target() -> None:
    """By the energy at each frequency, which does not depend on the phase."""
    batch = Tones(length=900, tone=400).batch(200, torch.Generator().manual_seed(0))
    assert batch.input.shape == (900, 200, 1) and batch.target.shape == (1, 200)
    sound = batch.input[:400, :, 0].double()
    waves = torch.exp(-2j * math.pi * torch.outer(frequencies().double(), torch.arange(400).double()))
    energy = (waves @ sound.to(waves.dtype)).abs() / 400
    assert torch.equal(energy.argmax(0), batch.target[0])
    torch.testing.assert_close(energy.amax(0), torch.full((200,), 0.5, dtype=torch.float64), rtol=0.1, atol=0)
    assert batch.target.unique().tolist() == list(range(10))


def test_after_the_tone_there_is_noise_alone() -> None:
    batch = Tones(length=3000, tone=50, noise=0.3).batch(20, torch.Generator().manual_seed(1))
    noise = batch.input[50:]
    assert noise.std().item() == pytest.approx(0.3, rel=0.02) and abs(noise.mean().item()) < 0.01
    assert batch.input[:50].std().item() == pytest.approx((0.5 + 0.3**2) ** 0.5, rel=0.05)


def test_phases_are_random() -> None:
    batch = Tones(length=10, noise=0.0).batch(2000, torch.Generator().manual_seed(2))
    first = batch.input[0, :, 0]  # sin of a phase from U(0, 2π)
    assert abs(first.mean().item()) < 0.05 and first.std().item() == pytest.approx(0.5**0.5, rel=0.03)


def test_a_tone_longer_than_the_sound_lasts_to_its_end() -> None:
    long, exact = (Tones(30, tone, 0.0).batch(4, torch.Generator().manual_seed(3)).input for tone in (100, 30))
    assert torch.equal(long, exact) and long[-1].abs().min() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tone": 0}, "tone must be at least 1, got 0"),
        ({"noise": -0.1}, "noise must be between 0 and 1000, got -0.1"),
        ({"noise": math.nan}, "noise must be between 0 and 1000, got nan"),
        ({"noise": math.inf}, "noise must be between 0 and 1000, got inf"),
    ],
)
def test_what_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Tones(**options).check()  # type: ignore[arg-type]


def test_the_longest_dependency() -> None:
    assert (Tones().steps, Tones().t_max, Tones(500).steps) == (16_000, 16_000.0, 500)
