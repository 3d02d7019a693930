"""Time of a step in onnxruntime and in our engine: LSTM with the fast gate, and the sigmoid's native operator.

Run it on an idle machine: python benchmarks/exported.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime
import torch

import gatedrnn

HIDDEN, STEPS, ROUNDS = 128, 100, 15


def running(layer: gatedrnn.LSTM, path: Path) -> Any:
    gatedrnn.export.onnx(layer, torch.randn(4, 2, HIDDEN), path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(path, options)


def seconds(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def main() -> None:
    torch.set_num_threads(1)
    print(f"H = {HIDDEN}, T = {STEPS}, one thread, microseconds per step, median of {ROUNDS} interleaved rounds")
    for gate in ("fast", "sigmoid"):
        layer = gatedrnn.LSTM(HIDDEN, HIDDEN, forget_gate=gate)
        with tempfile.TemporaryDirectory() as folder:
            session = running(layer, Path(folder) / "layer.onnx")
        for batch in (1, 64):
            x = torch.randn(STEPS, batch, HIDDEN)
            feed = {"input": x.numpy()}
            with torch.no_grad():
                difference = (torch.from_numpy(session.run(None, feed)[0]) - layer(x)[0]).abs().max().item()
                if difference > 1e-5:
                    raise SystemExit(f"wrong result, off by {difference}: not timed")
                pairs = [(seconds(partial(session.run, None, feed)), seconds(partial(layer, x))) for _ in range(ROUNDS)]
            there, here = (1e6 * statistics.median(column) / STEPS for column in zip(*pairs, strict=True))
            print(f"{gate:8} B = {batch:2}: onnxruntime {there:7.1f}, our engine {here:7.1f}, ratio {there / here:.2f}")


if __name__ == "__main__":
    main()
