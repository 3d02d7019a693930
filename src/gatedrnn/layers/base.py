"""What all recurrent layers share: parameters, shapes, lengths and packing, the stack of layers and directions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter
from torch.nn.utils.rnn import PackedSequence

from gatedrnn import engines, gates
from gatedrnn.cells import Cell, Weights
from gatedrnn.engines import Collect, Scan
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.checks import (
    autocasting,
    check_alike,
    check_bool,
    check_collect,
    check_dimensions,
    check_input,
    check_packed,
    check_probability,
    check_sizes,
    check_state,
    check_weights,
    checked_lengths,
    resolve_init,
    state_tuple,
    states_given,
)
from gatedrnn.layers.drop_connect import drop_entries
from gatedrnn.layers.module import RecurrentModule
from gatedrnn.layers.parameters import reset, write_back

StateArgument = Tensor | Sequence[Tensor] | None


class RecurrentLayer(RecurrentModule):
    """Base of the layers: torch.nn's interface around a cell. Use one of its subclasses."""

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        forget_gate: str | Gate,
        forget_init: str | ForgetInit | None,
        weight_dropout: float,
        engine: str,
        recompute: bool,
    ) -> None:
        super().__init__()
        check_probability("dropout", dropout)
        check_probability("weight_dropout", weight_dropout)
        check_sizes(input_size, hidden_size, bias)
        check_bool("batch_first", batch_first)
        check_bool("recompute", recompute)
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        self.engine = engine
        self.cell = cell
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.forget_gate = forget_gate
        self.forget_init = resolve_init(forget_init, bias)
        self.weight_dropout = float(weight_dropout)
        self.recompute = recompute

        self._make_parameters(device, dtype)
        self.reset_parameters()

    def _make_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        self._all_weights: list[list[str]] = []
        self._shapes: list[dict[str, tuple[int, ...]]] = []
        self._keys: list[str] = []
        aux = self.forget_gate.preactivations > 1
        for suffix, input_size in self._suffixes():
            shapes = self.cell.parameter_shapes(input_size, self.hidden_size, self.bias, aux)
            for name, shape in shapes.items():
                self._make_parameter(name + suffix, shape, device, dtype)
            self._all_weights.append([name + suffix for name in shapes])
            self._keys.append(suffix[1:])
            self._shapes.append(shapes)

    def _suffixes(self) -> Iterator[tuple[str, int]]:
        """Ending of the parameters' names and input size, for each layer and direction."""
        directions = ("", "_reverse") if self.bidirectional else ("",)
        size = self.input_size
        for layer in range(self.num_layers):
            for direction in directions:
                yield f"_l{layer}{direction}", size
            size = self.cell.state_sizes(self.hidden_size)[0] * len(directions)

    def weights_by_layer(self) -> dict[str, Weights]:
        """The weights under the cell's names for "l0", "l0_reverse", …, looked up anew: parametrisations count."""
        return dict(zip(self._keys, self._weights(), strict=True))

    def _weights(self) -> list[Weights]:
        return [
            {name: self._weight(full) for name, full in zip(shapes, names, strict=True)}
            for shapes, names in zip(self._shapes, self._all_weights, strict=True)
        ]

    def weight_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction, as in torch.nn."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need no flattening. Here because programs written for torch.nn call it."""

    def reset_parameters(self) -> None:
        """Draw new values for all parameters; the same as torch.nn's for the same seed."""
        layers = self.weights_by_layer()
        init = resolve_init(self.forget_init, self.bias)  # a name may have been assigned
        reset(self.cell, self.forget_gate, init, list(layers.values()), self.hidden_size)
        write_back(
            self, {f"{name}_{key}": weight for key, weights in layers.items() for name, weight in weights.items()}
        )

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: StateArgument = None,
        lengths: Tensor | Sequence[int] | None = None,
        return_states: Collect = False,
    ) -> Any:
        self._refuse_trace()
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx, lengths, return_states)
        layers = self._weights()  # once: a parametrisation may be costly, or count its calls
        plain = lengths is None and return_states is False and self._repeats()
        if plain and (found := self._repeated(input, hx, layers)) is not None:
            return found
        check_dimensions(self._name, input)
        check_collect(return_states)
        batched = input.dim() == 3
        if not batched and lengths is not None:
            raise ValueError(f"{self._name}: lengths needs a batch, got unbatched 2-D input")
        state = state_tuple(self._name, self.cell, hx)
        if state is not None:
            for s in state:
                if s.dim() != input.dim():
                    shape = "batched 3-D" if batched else "unbatched 2-D"
                    raise RuntimeError(
                        f"For {shape} input, hx should also be {input.dim()}-D but got {s.dim()}-D tensor"
                    )
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if state is not None and not batched:
            state = tuple(s.unsqueeze(1) for s in state)

        output, state, collected = self._run(
            x, state, layers, checked_lengths(self._name, lengths, x), return_states, remember=plain and batched
        )

        if not batched:
            output, state = output.squeeze(1), tuple(s.squeeze(1) for s in state)
            collected = {name: sequence.squeeze(2) for name, sequence in collected.items()}
        elif self.batch_first:
            output = output.transpose(0, 1)
            collected = {name: sequence.transpose(1, 2) for name, sequence in collected.items()}
        return self._result(output, state, collected, return_states)

    def _repeats(self) -> bool:
        """Whether a call is no more than that of one layer after the other."""
        if torch.compiler.is_compiling():
            return False
        return not (self.bidirectional or (self.training and (self.dropout or self.weight_dropout)))

    def _repeated(self, input: Any, hx: Any, layers: list[Weights]) -> tuple[Tensor, Any] | None:
        """Output and state if each layer was called like this before."""
        state = states_given(self.cell, hx)
        if any([type(t) not in (Tensor, Parameter) or t.dim() != 3 for t in (input, *state)]):  # noqa: C419
            return None
        if any([len(s) != len(layers) for s in state]):  # noqa: C419
            return None
        x = input.transpose(0, 1) if self.batch_first else input
        finals = []
        for index, weights in enumerate(layers):
            given = self._state_of(index, state)
            kind = self._kind(index, x, given, weights)
            if kind is None or (repeat := engines.recall(self.engine, kind)) is None:
                return None
            x, final = repeat(x, given, weights.values())
            finals.append(final)
        several = zip(*finals, strict=True)
        states = finals[0] if len(finals) == 1 else tuple(_joined(torch.cat, entry) for entry in several)
        return x.transpose(0, 1) if self.batch_first else x, states if len(states) > 1 else states[0]

    def _state_of(self, index: int, state: Sequence[Tensor]) -> Sequence[Tensor]:
        """Of one of the layers, as that of a layer alone."""
        return state if len(self._keys) == 1 else [s[index : index + 1] for s in state]

    def _kind(self, index: int, x: Tensor, state: Sequence[Tensor], weights: Weights) -> tuple[Any, ...] | None:
        options = index > 0, self.input_size, self.hidden_size, self.bias, self.recompute
        return engines.kind_of(self.cell, self.forget_gate, options, x, state, weights.values())

    def _forward_packed(
        self, packed: PackedSequence, hx: StateArgument, lengths: object, return_states: Collect
    ) -> tuple[Any, ...]:
        check_collect(return_states)
        if torch.compiler.is_compiling():
            raise RuntimeError(
                f"{self._name}: a PackedSequence cannot be compiled or exported; pass the padded tensor and lengths="
            )
        if lengths is not None:
            raise ValueError(f"{self._name}: a PackedSequence has its own lengths; do not pass lengths")
        data, batch_sizes, order, original = packed
        check_packed(self._name, data, batch_sizes, order, original)
        state = state_tuple(self._name, self.cell, hx)
        if state is not None and order is not None:
            state = tuple(s.index_select(1, order) for s in state)

        output, state, collected = self._run(data, state, self._weights(), None, return_states, batch_sizes)

        packed_output = PackedSequence(output, batch_sizes, order, original)
        if original is not None:
            state = tuple(s.index_select(1, original) for s in state)
            collected = {name: sequence.index_select(2, original) for name, sequence in collected.items()}
        if self.batch_first:
            collected = {name: sequence.transpose(1, 2) for name, sequence in collected.items()}
        return self._result(packed_output, state, collected, return_states)

    def _result(
        self, output: Any, state: tuple[Tensor, ...], collected: dict[str, Tensor], return_states: Collect
    ) -> tuple[Any, ...]:
        final = state if len(state) > 1 else state[0]
        return (output, final, collected) if return_states else (output, final)

    def _run(
        self,
        x: Tensor,
        state: tuple[Tensor, ...] | None,
        weights: list[Weights],
        lengths: Tensor | None,
        collect: Collect,
        batch_sizes: Tensor | None = None,
        remember: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, ...], dict[str, Tensor]]:
        """All layers and directions over (T, B, I), or over packed data (N, I)."""
        self._check_weights(weights)
        self._check_input(x, weights[0])
        batch = x.shape[1] if batch_sizes is None else int(batch_sizes[0])
        given = () if state is None else state
        state = self._initial_state(x, batch) if state is None else self._checked_state(state, x, batch)
        if self.weight_dropout and self.training:
            weights = [self.cell.drop_recurrent(w, lambda p: drop_entries(p, self.weight_dropout)) for w in weights]
        rows = list(zip(*(s.unbind() for s in state), strict=True))  # one state per layer and direction
        directions = 2 if self.bidirectional else 1
        finals, collections = [], []
        for layer in range(self.num_layers):
            outputs = []
            for index in range(layer * directions, (layer + 1) * directions):
                scan = self._scan(index, x, rows[index], weights[index], lengths, batch_sizes, collect)
                output, final, collected = engines.resolve(self.engine, scan).run(scan)
                if (
                    remember
                    and (kind := self._kind(index, x, self._state_of(index, given), weights[index])) is not None
                ):
                    engines.remember(self.engine, kind, scan)
                outputs.append(output)
                finals.append(final)
                collections.append(collected)
            x = _joined(torch.cat, outputs, -1) if directions == 2 else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        stacked = {name: _joined(torch.stack, [c[name] for c in collections]) for name in collections[0]}
        # A copy, also of a single one: a view could not be detached in place, as programs for torch.nn do with states.
        return x, tuple(_joined(torch.stack, entry) for entry in zip(*finals, strict=True)), stacked

    def _scan(
        self,
        index: int,
        x: Tensor,
        state: tuple[Tensor, ...],
        weights: Weights,
        lengths: Tensor | None,
        batch_sizes: Tensor | None,
        collect: Collect,
    ) -> Scan:
        reverse = self.bidirectional and index % 2 == 1
        return Scan(
            self.cell, self.forget_gate, x, state, weights, lengths, reverse, self.recompute, collect, batch_sizes
        )

    def first_scan(self, input: Tensor | PackedSequence) -> Scan:
        """What the first layer asks of its engine for this input."""
        if isinstance(input, PackedSequence):
            check_packed(self._name, *input)
            x, sizes = input.data, input.batch_sizes
        else:
            check_dimensions(self._name, input)
            x, sizes = input, None
        if sizes is None and x.dim() == 2:
            x = x.unsqueeze(1)
        elif sizes is None and self.batch_first:
            x = x.transpose(0, 1)
        layers = self._weights()
        self._check_weights(layers)
        weights = layers[0]
        self._check_input(x, weights)
        state = tuple(s[0] for s in self._initial_state(x, x.shape[1] if sizes is None else int(sizes[0])))
        return self._scan(0, x, state, weights, None, sizes, False)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _check_weights(self, layers: list[Weights]) -> None:
        for key, weights, shapes in zip(self._keys, layers, self._shapes, strict=True):
            check_weights(self._name, key, weights, shapes)
        check_alike(self._name, dict(zip(self._keys, layers, strict=True)))

    def _check_input(self, x: Tensor, weights: Weights) -> None:
        check_input(self._name, x, next(iter(weights.values())), self.input_size)

    def _initial_state(self, x: Tensor, batch: int) -> tuple[Tensor, ...]:
        return tuple(
            torch.zeros(len(self._all_weights), batch, size, dtype=x.dtype, device=x.device)
            for size in self.cell.state_sizes(self.hidden_size)
        )

    def _checked_state(self, state: tuple[Tensor, ...], x: Tensor, batch: int) -> tuple[Tensor, ...]:
        for name, s, size in zip(self.cell.states, state, self.cell.state_sizes(self.hidden_size), strict=True):
            check_state(self._name, name, s, x, (len(self._all_weights), batch, size))
        return state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in self._options().items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value!r}"
        return text

    def _options(self) -> dict[str, object]:
        """Names of the options shown by repr, with the defaults that are left out."""
        return {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "forget_gate": gates.Sigmoid(),
            "forget_init": None,
            "weight_dropout": 0.0,
            "engine": "auto",
            "recompute": False,
        }


def _joined(join: Callable[..., Tensor], parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """cat or stack. Under autocast to one 16-bit dtype torch refuses to join tensors of the other."""
    apart = parts[0].dtype.itemsize == 2 and not torch.compiler.is_compiling() and autocasting(parts[0])
    with torch.autocast(parts[0].device.type, enabled=False) if apart else nullcontext():
        return join(parts, dim)
