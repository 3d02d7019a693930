"""A model with layers of this library as an ONNX file."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from gatedrnn import files
from gatedrnn.export.example import distinct
from gatedrnn.export.onnx_engine import OnnxEngine
from gatedrnn.gates import GATES, Gate, program_of
from gatedrnn.gates.program import ProgramGate
from gatedrnn.layers import RecurrentLayer, RecurrentStep

#: torch translates its operators into this version of ONNX's and later ones.
OLDEST_OPSET = 18


def onnx(
    model: nn.Module,
    example: Tensor | tuple[Any, ...] | dict[str, Any],
    path: str | PathLike[str],
    *,
    exact: bool = False,
    step: bool = False,
    opset_version: int | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_shapes: Any = None,
) -> None:
    """Write a model that contains layers of this library to an ONNX file, which onnxruntime runs without Python.

    Every layer becomes a loop with the equations of its cell, with 1−f computed directly. LSTM and GRU with the sigmoid
    gate, untied and without projection, become ONNX's own operators, which are faster and lose values close to 0 and 1:
    1−f below 1e-6, input gates below e^−16. The model is exported in eval mode. Needs the extra ``[export]``.

    Args:
        model: any module; its parameters on the CPU, those of our layers in float32 or float64.
        example: what the model is called with: a tensor, a tuple of arguments, or a dict of keyword arguments.
        path: the file; written atomically.
        exact: write the loop for LSTM and GRU with the sigmoid gate as well.
        step: export one step of time, with the state as an argument and a result of the model: for streams. The
            example has one step. Its sizes of 1 stay 1, so that a batch of one is written as such.
        opset_version: of the file, 18 or later; torch's default if None.
        input_names: of the file's inputs, one for each tensor. A layer's own: ``input, h_0, c_0, lengths``.
        output_names: likewise. A layer's own: ``output, h_n, c_n``.
        dynamic_shapes: as in torch.export. By default batch and time may have any size, and every other size that
            the model leaves open.

    >>> layer = gatedrnn.LSTM(4, 8, forget_gate="fast")
    >>> gatedrnn.export.onnx(layer, torch.randn(5, 2, 4), "layer.onnx")  # doctest: +SKIP
    """
    _check_packages()
    if not isinstance(model, nn.Module):
        raise TypeError(f"gatedrnn.export.onnx takes a torch.nn.Module, got {type(model).__name__}")
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}")
    files.check_folder(target.parent)
    arguments, keywords = _arguments(example)
    named = inspect.signature(model.forward).bind(*arguments, **keywords).arguments
    if input_names is None:  # the names of the inputs follow the signature
        keywords = {name: keywords[name] for name in named if name in keywords} | keywords
    engines = {
        module: _engine(_place(name, module), module, exact, step, opset_version)
        for name, module in model.named_modules()
        if isinstance(module, RecurrentLayer | RecurrentStep)
    }
    if any(isinstance(value, PackedSequence) for value in (*arguments, *keywords.values())):
        where = next((engine.where for engine in engines.values()), type(model).__name__)
        raise RuntimeError(f"{where}: a PackedSequence cannot be exported; pass padded input and lengths=")
    if isinstance(model, RecurrentLayer) and not isinstance(named.get("lengths"), Tensor | None):
        raise TypeError(f"{_place('', model)}: lengths must be a tensor to become an input of the file")
    arguments, keywords = distinct((arguments, keywords))
    inputs, outputs = _names(model, named)
    tensors = sum(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves((arguments, keywords)))
    if input_names is not None and len(input_names) != tensors:
        raise ValueError(f"input_names must have one name for each tensor of the example, {tensors}, got {input_names}")
    if isinstance(dynamic_shapes, tuple | list) and inputs:
        dynamic_shapes = dict(zip(named, dynamic_shapes, strict=True))
    shapes = _sizes(model, named, step) if dynamic_shapes is None else dynamic_shapes
    dimensions = {name: Dim(name) for name in ("time", "batch")}
    free = pytree.tree_map(lambda size: dimensions.get(size, size) if isinstance(size, str) else size, shapes)
    with _evaluating(model), _running_on(engines), _quiet(), _any_size():
        captured = torch.export.export(model, arguments, keywords, dynamic_shapes=free, strict=False)
        program = torch.onnx.export(
            captured,
            opset_version=opset_version,
            input_names=input_names or inputs,
            output_names=output_names or outputs,
            # For the names of the sizes.
            dynamic_shapes={name: sizes for name, sizes in shapes.items() if sizes} if inputs else None,
            custom_translation_table={torch.ops.aten.scalar_tensor.default: _number},
            verbose=False,
        )
    assert program is not None
    files.write(target, program.model_proto.SerializeToString())


def _check_packages() -> None:
    for name in ("onnx", "onnxscript"):
        if find_spec(name) is None:
            raise ImportError(
                f"gatedrnn.export.onnx needs {name}, which comes with the extra: "
                'pip install ".[export]" in a clone of gatedrnn'
            )


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, PackedSequence) or not isinstance(example, tuple):
        return (example,), {}
    return example, {}


def _place(name: str, module: nn.Module) -> str:
    kind = type(module).__name__
    return f"{name} ({kind})" if name else kind


def _engine(
    where: str, module: RecurrentLayer | RecurrentStep, exact: bool, step: bool, opset_version: int | None
) -> OnnxEngine:
    """The engine for a module, or an error that says why it cannot be exported."""
    if opset_version is not None and opset_version < OLDEST_OPSET:
        raise ValueError(
            f"{where}: opset_version={opset_version} is too old, it must be {OLDEST_OPSET} or later; "
            "onnx.version_converter may convert the file"
        )
    for name, parameter in module.named_parameters():
        if parameter.device.type != "cpu":
            raise ValueError(f"{where}: {name} is on {parameter.device}; move the model to the CPU first: model.cpu()")
        if parameter.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{where}: {name} is {parameter.dtype}, which onnxruntime does not compute with on every machine; "
                "convert the model first: model.float()"
            )
    if step and getattr(module, "bidirectional", False):
        raise ValueError(f"{where}: a bidirectional layer needs the whole sequence, so it has no step to export")
    dtype = next(module.parameters()).dtype
    gate = _gate(where, module.forget_gate, dtype) if module.cell.takes_gate else module.forget_gate
    return OnnxEngine(where, gate, exact, step, fixed_steps=step or isinstance(module, RecurrentStep))


def _gate(where: str, gate: Gate, dtype: torch.dtype) -> Gate:
    """A built-in gate unchanged, a custom gate as its program."""
    if type(gate) in GATES.values():
        return gate
    program = program_of(gate, dtype)
    if isinstance(program, str):
        raise ValueError(f"{where}: the gate {gate!r} cannot be exported: {program}")
    return ProgramGate(str(program))


def _number(s: Any, dtype: int = 1, layout: str = "", device: str = "", pin_memory: bool = False) -> Any:
    """A number of a formula as ONNX has it. torch's own translation rounds it to float32 in models in float64 as well.

    ``dtype`` is ONNX's number of the type, 1 for float32. A complex number is a pair of real ones.
    """
    from onnxscript import ir, opset18

    if not isinstance(s, bool | int | float | complex):  # a size that is only known when the model runs
        return opset18.Cast(s, to=dtype)
    kind = ir.DataType(dtype)
    parts = {ir.DataType.COMPLEX64: ir.DataType.FLOAT, ir.DataType.COMPLEX128: ir.DataType.DOUBLE}.get(kind)
    value = ir.tensor(s, kind) if parts is None else ir.tensor([complex(s).real, complex(s).imag], parts)
    return opset18.Constant(value=value)  # type: ignore[arg-type]  # its annotation knows onnx's own tensors only


def _any_size() -> AbstractContextManager[None]:
    """Sizes of 1 in the example are sizes like others; without this, torch would keep them."""
    return torch.fx.experimental._config.patch(backed_size_oblivious=True)  # type: ignore[no-any-return,attr-defined]


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def _running_on(engines: Mapping[RecurrentLayer | RecurrentStep, OnnxEngine]) -> Iterator[None]:
    """The modules with these engines. One that is exported as a step must be given its state."""
    before = {module: module.engine for module in engines}
    hooks = []
    try:
        for module, engine in engines.items():
            module.engine = engine
            if engine.step:
                hooks.append(module.register_forward_pre_hook(_state_is_given(engine.where), with_kwargs=True))
        yield
    finally:
        for module, old in before.items():
            module.engine = old
        for hook in hooks:
            hook.remove()


def _state_is_given(where: str) -> Any:
    def check(module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if keywords.get("hx", arguments[1] if len(arguments) > 1 else None) is None:
            raise ValueError(
                f"{where}: it is called without a state, so that every step would begin at zero; "
                "with step=True the model takes the state as an argument and returns the next one"
            )

    return check


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's notes on packages that it does not find and on its own deprecated calls."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning, message=r"`isinstance\(treespec, LeafSpec\)`")
            warnings.filterwarnings("ignore", message="# The axis name")  # each size is named once for each argument
            yield
    finally:
        logger.setLevel(level)


def _sizes(model: nn.Module, named: Mapping[str, Any], step: bool) -> dict[str, Any]:
    """Which sizes of each argument are free. A layer's are known; of another model's, torch finds out which can be."""
    own = _own_axes(model)

    def of(name: str, tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            return None
        axes = dict(own(name, tensor)) if own else dict.fromkeys(range(tensor.dim()), Dim.AUTO)
        return {axis: Dim.STATIC if step and tensor.shape[axis] == 1 else size for axis, size in axes.items()}

    return {name: pytree.tree_map(partial(of, name), value) for name, value in named.items()}


def _own_axes(model: nn.Module) -> Callable[[str, Tensor], Mapping[int, Any]] | None:
    """(argument, tensor) -> the names of its free sizes, for a layer or a single step alone."""
    time, batch = "time", "batch"
    if isinstance(model, RecurrentStep):
        return lambda name, tensor: {0: batch} if tensor.dim() == 2 else {}
    if not isinstance(model, RecurrentLayer):
        return None
    sequence = {0: batch, 1: time} if model.batch_first else {0: time, 1: batch}

    def axes(name: str, tensor: Tensor) -> Mapping[int, Any]:
        if name == "input":
            return sequence if tensor.dim() == 3 else {0: time}
        return {"hx": {1: batch} if tensor.dim() == 3 else {}, "lengths": {0: batch}}.get(name, {})

    return axes


def _names(model: nn.Module, named: Mapping[str, Any]) -> tuple[list[str] | None, list[str] | None]:
    """Names of the inputs and outputs of a layer or a single step; None for other models, which torch names."""
    if not isinstance(model, RecurrentLayer | RecurrentStep):
        return None, None
    given = {"input": ["input"], "hx": [f"{entry}_0" for entry in model.cell.states], "lengths": ["lengths"]}
    inputs = [name for argument, names in given.items() if named.get(argument) is not None for name in names]
    if isinstance(model, RecurrentStep):
        return inputs, [f"{entry}_1" for entry in model.cell.states]
    outputs = ["output", *(f"{entry}_n" for entry in model.cell.states)]
    return inputs, None if named.get("return_states") else outputs
