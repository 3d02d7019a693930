"""What all single-step modules share: torch.nn.LSTMCell's interface around a cell."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatedrnn import engines, gates
from gatedrnn.cells import Cell, Weights
from gatedrnn.engines import Scan
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.base import StateArgument
from gatedrnn.layers.checks import (
    check_alike,
    check_dense,
    check_sizes,
    check_state,
    check_step_input,
    check_untraced,
    check_weights,
    resolve_init,
    state_tuple,
    states_given,
)
from gatedrnn.layers.module import RecurrentModule
from gatedrnn.layers.parameters import reset, write_back


class RecurrentStep(RecurrentModule):
    """Base of the single-step modules. Use one of its subclasses."""

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        forget_gate: str | Gate,
        forget_init: str | ForgetInit | None,
    ) -> None:
        super().__init__()
        check_sizes(input_size, hidden_size, bias)
        self.cell = cell
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.forget_gate = forget_gate
        self.forget_init = resolve_init(forget_init, bias)
        self._make_parameters(device, dtype)
        self.reset_parameters()

    def _make_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        aux = self.forget_gate.preactivations > 1
        self._shapes = self.cell.parameter_shapes(self.input_size, self.hidden_size, self.bias, aux)
        for name in self.cell.parameter_shapes(self.input_size, self.hidden_size, True, aux):
            self._make_parameter(name, self._shapes.get(name), device, dtype)

    @property
    def _kind(self) -> tuple[int, int, bool]:
        """What its checks depend on, beside the tensors."""
        return self.input_size, self.hidden_size, self.bias

    @property
    def _name(self) -> str:
        return type(self).__name__

    def weights_by_layer(self) -> dict[str, Weights]:
        """The weights under the cell's names, looked up at each call because of parametrisations."""
        return {"l0": self._weights()}

    def weight_names(self) -> list[str]:
        return list(self._shapes)

    def _weights(self) -> Weights:
        return {name: self._weight(name) for name in self._shapes}

    def reset_parameters(self) -> None:
        """Draw new values for all parameters."""
        weights = self._weights()
        init = resolve_init(self.forget_init, self.bias)  # a name may have been assigned
        reset(self.cell, self.forget_gate, init, [weights], self.hidden_size)
        write_back(self, weights)

    def forward(self, input: Tensor, hx: StateArgument = None) -> Any:
        self._refuse_trace()
        weights = self._weights()
        given = states_given(self.cell, hx)
        kind = engines.kind_of(self.cell, self.forget_gate, self._kind, input, given, weights.values())
        if kind is not None and (repeat := engines.recall(self._engine, kind)) is not None:
            result = repeat(input, given, weights.values())[1]
            return result if len(result) > 1 else result[0]
        check_untraced(self._name, input)
        x, state = self._arguments(input, hx)
        scan = self._scan(x, state, weights)
        result = self._run(scan)
        if kind is not None and input.dim() == 2:
            engines.remember(self._engine, kind, scan)
        if input.dim() == 1:
            result = tuple(s.squeeze(0) for s in result)
        return result if len(result) > 1 else result[0]

    def _run(self, scan: Scan) -> tuple[Tensor, ...]:
        return engines.resolve(self.engine, scan).run(scan).state

    def _arguments(self, input: Tensor, hx: StateArgument) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The input (B, I) and the state, checked."""
        if not isinstance(input, Tensor):
            raise TypeError(f"{self._name}: Expected input to be a Tensor, got {type(input).__name__}")
        check_dense(self._name, "input", input)
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        return x, self._state(hx, x, batched)

    def _scan(self, x: Tensor, state: tuple[Tensor, ...], weights: Weights) -> Scan:
        """One step of time for an engine."""
        check_weights(self._name, "", weights, self._shapes)
        check_alike(self._name, {"": weights})
        check_step_input(x, next(iter(weights.values())), self.input_size)
        return Scan(self.cell, self.forget_gate, x.unsqueeze(0), state, weights)

    def first_scan(self, input: Tensor) -> Scan:
        """What the module asks of its engine for this input."""
        return self._scan(*self._arguments(input, None), self._weights())

    def _state(self, hx: StateArgument, x: Tensor, batched: bool) -> tuple[Tensor, ...]:
        sizes = self.cell.state_sizes(self.hidden_size)
        state = state_tuple(self._name, self.cell, hx)
        if state is None:
            return tuple(torch.zeros(x.shape[0], size, dtype=x.dtype, device=x.device) for size in sizes)
        for s in state:
            if s.dim() not in (1, 2):
                raise ValueError(f"{self._name}: Expected hidden to be 1D or 2D, got {s.dim()}D instead")
        if not batched:
            state = tuple(s.unsqueeze(0) for s in state)
        for entry, s, size in zip(self.cell.states, state, sizes, strict=True):
            check_state(self._name, entry, s, x, (x.shape[0], size))
        return state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in self._options().items():
            if (value := getattr(self, name)) != default:
                text += f", {name}={value!r}"
        return text

    def _options(self) -> dict[str, object]:
        return {"bias": True, "forget_gate": gates.Sigmoid(), "forget_init": None}
