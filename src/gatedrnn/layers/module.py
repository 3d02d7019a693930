"""What layers and single-step modules share: a checked gate and engine, and weights that name their gate."""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from gatedrnn import engines, gates
from gatedrnn.cells import Cell
from gatedrnn.engines import Engine
from gatedrnn.gates import Gate

ENTRY = "gatedrnn"
#: What decides, beside the weights, about what is computed.
_TOLD = ("forget_gate", "tied", "beta", "relu")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def option_of_equations(name: str) -> property:
    """An option that decides about the equations: it is read from the cell, and assigning to it raises an error."""

    def read(self: RecurrentModule) -> Any:
        return getattr(self.cell, name)

    def refuse(self: RecurrentModule, value: object) -> None:
        kind = type(self).__name__
        raise AttributeError(f"{kind}: {name} cannot be changed; make a new {kind} with {name}={value!r}")

    return property(read, refuse)


class RecurrentModule(nn.Module):
    """Base of the layers and of the single-step modules.

    Its entry in the metadata of a state_dict says what the weights were trained with. Loading them into a module with a
    different gate warns; weights without that entry, such as torch.nn's, load without a check.
    """

    cell: Cell
    _forget_gate: Gate | None = None
    _engine: str | Engine = "auto"

    @property
    def forget_gate(self) -> Gate:
        """The forget gate. A gate with the same parameters, or its name, can be assigned."""
        assert self._forget_gate is not None
        return self._forget_gate

    @forget_gate.setter
    def forget_gate(self, gate: str | Gate) -> None:
        new, old = gates.resolve(gate), self._forget_gate
        if old is not None and not self.cell.takes_gate:
            raise AttributeError(f"{type(self).__name__} has no forget gate")
        if old is not None and new.preactivations != old.preactivations:
            raise ValueError(
                f"{type(self).__name__}: the gate {new!r} has different parameters than {old!r}; "
                "use gatedrnn.convert to change the gate"
            )
        self._forget_gate = new

    @property
    def engine(self) -> str | Engine:
        """The engine for the loop over time: "auto", the name of an engine, or an engine."""
        return self._engine

    @engine.setter
    def engine(self, name: str | Engine) -> None:
        engines.check_name(name)
        self._engine = name

    def add_auxiliary_gate(self, gate: Gate) -> None:
        """Take a gate that has an auxiliary one, where the gate so far has none. Its parameters are not drawn yet."""
        self._forget_gate = gate
        kept = dict(self._parameters)
        self._parameters.clear()
        self._make_parameters("meta", None)  # all of them, in the order of a new module: optimisers number them
        self._parameters.update(kept)

    def _make_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Make the parameters, without values."""
        raise NotImplementedError

    def _make_parameter(
        self,
        name: str,
        shape: tuple[int, ...] | None,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        made = None if shape is None else nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_parameter(name, made)

    def _refuse_trace(self) -> None:
        if torch._C._get_tracing_state() is not None and not torch.onnx.is_in_onnx_export():
            raise RuntimeError(
                f"{type(self).__name__}: torch.jit.trace would fix the number of steps; use torch.export.export"
            )

    def __prepare_scriptable__(self) -> nn.Module:
        """Called by torch.jit.script."""
        raise RuntimeError(f"{type(self).__name__}: torch.jit.script cannot compile it; use torch.export.export")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "qconfig":  # set by torch.ao.quantization, which then leaves alone what it does not know
            warnings.warn(
                f"{type(self).__name__}: not quantized by torch.ao.quantization; "
                ".bfloat16() halves the size of its weights",
                stacklevel=2,
            )
        if name == "forget_gate" and isinstance(value, nn.Module):  # which nn.Module would take as a submodule
            gates.refuse_module(value)
        super().__setattr__(name, value)

    def _weight(self, name: str) -> Tensor:
        """A parameter or its replacement, looked up at each call because of parametrisations."""
        own = self._parameters.get(name)  # as getattr does in the end, sooner
        return getattr(self, name) if own is None else own

    def state_dict_entry(self) -> dict[str, str]:
        """What the weights are trained with: the entry of this module in the metadata of a state_dict."""
        # Without the address of a function, which is another one in every process.
        return {name: _ADDRESS.sub("", repr(getattr(self, name))) for name in _TOLD if hasattr(self, name)}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        metadata = getattr(destination, "_metadata", {}).get(prefix[:-1])
        if metadata is not None:
            metadata[ENTRY] = self.state_dict_entry()

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, local_metadata: dict[str, Any], *arguments: Any
    ) -> None:
        saved, own = local_metadata.get(ENTRY, {}), self.state_dict_entry()
        other = [name for name in own if name in saved and saved[name] != own[name]]
        if other:
            theirs, ours = (", ".join(f"{name}={told[name]}" for name in other) for told in (saved, own))
            warnings.warn(
                f"{prefix[:-1] or type(self).__name__}: the weights were saved with {theirs}, this module has {ours}; "
                "its outputs will differ",
                stacklevel=4,
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *arguments)
