"""Gate and engine may be assigned and are checked; saved weights say what they were trained with."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gatedrnn

KINDS: list[type[Any]] = [gatedrnn.LSTM, gatedrnn.LSTMCell, gatedrnn.GRU, gatedrnn.GRUCell, gatedrnn.MGU]


def _saved(module: nn.Module) -> Any:
    """Through a file, as tensors alone."""
    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_assigned_gate_is_the_one_that_runs(kind: type[Any]) -> None:
    torch.manual_seed(0)
    module, other = kind(3, 4, forget_gate="fast"), kind(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.load_state_dict(module.state_dict())
    x = torch.randn(5, 2, 3)
    assert not torch.equal(_output(module, x), _output(other, x))
    other.forget_gate = "fast"
    assert torch.equal(_output(module, x), _output(other, x))
    assert other.forget_gate == gatedrnn.gates.Fast() and "forget_gate=Fast()" in repr(other)


def _output(module: Any, x: torch.Tensor) -> torch.Tensor:
    """Of a layer; or of the second of two steps, because there is nothing to forget at the first."""
    if not isinstance(module, gatedrnn.layers.RecurrentStep):
        output: torch.Tensor = module(x)[0]
        return output
    state = module(x[1], module(x[0]))
    return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_cannot_be_is_refused_when_it_is_assigned(kind: type[Any]) -> None:
    module = kind(3, 4, forget_gate="fast")
    with pytest.raises(ValueError, match="unknown gate 'quick'"):
        module.forget_gate = "quick"
    with pytest.raises(
        ValueError, match=rf"{kind.__name__}: the gate Refine\(\) has different parameters than Fast\(\)"
    ):
        module.forget_gate = "refine"
    with pytest.raises(ValueError, match="unknown engine 'gpu'; known engines: auto"):
        module.engine = "gpu"
    assert module.forget_gate == gatedrnn.gates.Fast() and module.engine == "auto"
    module.engine = "reference"
    assert copy.deepcopy(module).engine == "reference"


def test_weights_of_another_gate_load_with_a_warning_that_names_both() -> None:
    model = nn.ModuleDict({"encoder": gatedrnn.LSTM(2, 3, forget_gate="fast", tied=True)})
    other = nn.ModuleDict({"encoder": gatedrnn.LSTM(2, 3, tied=True)})
    with pytest.warns(
        UserWarning,
        match=r"encoder: the weights were saved with forget_gate=Fast\(\), this module has forget_gate=Sigmoid\(\)",
    ):
        other.load_state_dict(_saved(model))
    janet = gatedrnn.JANET(2, 3, beta=0.5)
    with pytest.warns(UserWarning, match=r"JANET: the weights were saved with beta=0.5, this module has beta=1.0"):
        gatedrnn.JANET(2, 3).load_state_dict(_saved(janet))


@pytest.mark.parametrize("gate", ["fast", gatedrnn.gates.Polynomial((0.5,)), "refine"], ids=str)
def test_the_same_gate_loads_in_silence(gate: Any) -> None:
    layer = gatedrnn.LSTM(2, 3, forget_gate=gate)
    again = gatedrnn.LSTM(2, 3, forget_gate=gate)
    again.load_state_dict(_saved(layer), strict=True)
    assert all(torch.equal(a, b) for a, b in zip(layer.parameters(), again.parameters(), strict=True))


def test_weights_without_a_word_load_as_ever(tmp_path: Path) -> None:
    theirs, ours = nn.LSTM(2, 3), gatedrnn.LSTM(2, 3, forget_gate="fast")
    ours.load_state_dict(_saved(theirs), strict=True)
    theirs.load_state_dict(_saved(ours), strict=True)
    ours.load_state_dict(dict(theirs.state_dict()), strict=True)  # a plain dictionary has no metadata


def test_convert_asks_for_its_gate() -> None:
    with pytest.raises(TypeError, match="forget_gate"):
        gatedrnn.convert(nn.LSTM(2, 3))  # type: ignore[call-arg]


OPTIONS = [
    (gatedrnn.LSTM, "tied", True),
    (gatedrnn.LSTM, "proj_size", 2),
    (gatedrnn.LSTMCell, "tied", True),
    (gatedrnn.JANET, "beta", 5.0),
    (gatedrnn.JANETCell, "beta", 5.0),
    (gatedrnn.NRU, "relu", False),
    (gatedrnn.NRU, "heads", 1),
    (gatedrnn.NRUCell, "memory_size", 16),
]


@pytest.mark.parametrize(("kind", "name", "value"), OPTIONS, ids=lambda part: getattr(part, "__name__", str(part)))
def test_an_option_of_the_equations_is_read_from_them_and_cannot_be_changed(
    kind: type[Any], name: str, value: object
) -> None:
    assert getattr(kind(4, 4, **{name: value}), name) == value
    module = kind(4, 4)
    before = getattr(module, name)
    message = f"{kind.__name__}: {name} cannot be changed; make a new {kind.__name__} with {name}={value}"
    with pytest.raises(AttributeError, match=f"^{message}$"):
        setattr(module, name, value)
    assert getattr(module, name) == before and f"{name}={value}" not in repr(module)
    assert getattr(copy.deepcopy(module), name) == before


@pytest.mark.parametrize("kind", [gatedrnn.NRU, gatedrnn.NRUCell])
def test_a_module_without_a_gate_takes_none(kind: type[Any]) -> None:
    module = kind(2, 3)
    with pytest.raises(AttributeError, match=f"^{kind.__name__} has no forget gate$"):
        module.forget_gate = "fast"


def test_the_same_options_do_not_warn() -> None:
    """2 and 2.0, and a function that has another address."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gatedrnn.JANET(2, 3, beta=2.0).load_state_dict(gatedrnn.JANET(2, 3, beta=2).state_dict())
        saved = gatedrnn.LSTM(2, 3, forget_gate=_OfFunction(lambda z: z)).state_dict()
        gatedrnn.LSTM(2, 3, forget_gate=_OfFunction(lambda z: z)).load_state_dict(saved)


@dataclass(frozen=True)
class _OfFunction(gatedrnn.gates.SigmoidOf):
    function: Callable[[Tensor], Tensor]

    def alpha(self, z: Tensor) -> Tensor:
        return self.function(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)
