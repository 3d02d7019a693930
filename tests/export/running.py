"""Exported files, run by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch
from torch import Tensor


def session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path.read_bytes(), options)


def run(running: Any, *inputs: Tensor) -> list[Tensor]:
    names = [entry.name for entry in running.get_inputs()]
    feed = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
    return [torch.from_numpy(array) for array in running.run(None, feed)]


def operators(path: Path) -> list[str]:
    """Those of the main graph."""
    return [node.op_type for node in onnx.load(path).graph.node]
