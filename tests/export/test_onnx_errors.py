"""What cannot be exported is an error that names the module and the reason, and no file is left behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import gatedrnn
from gatedrnn.gates import SigmoidOf
from tests.export.running import operators, run, session


@dataclass(frozen=True)
class Looking(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z if float(z.flatten()[0]) != 17.0 else z + 0.0

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)


class Inside(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"rnn": layer})

    def forward(self, x: Any) -> Any:
        return self.encoder["rnn"](x)[0]


@pytest.mark.parametrize(
    ("layer", "options", "message"),
    [
        (gatedrnn.LSTM(3, 4, device="meta"), {}, r"encoder.rnn \(LSTM\): weight_ih_l0 is on meta.*model.cpu\(\)"),
        (
            gatedrnn.GRU(3, 4, forget_gate=Looking()),
            {},
            r"encoder.rnn \(GRU\): the gate Looking\(\) cannot be exported: alpha uses",
        ),
        (gatedrnn.GRU(3, 4, dtype=torch.bfloat16), {}, r"encoder.rnn \(GRU\): weight_ih_l0 is torch.bfloat16"),
        (gatedrnn.MGU(3, 4), {"opset_version": 17}, r"encoder.rnn \(MGU\): opset_version=17 is too old"),
        (gatedrnn.GRU(3, 4, bidirectional=True), {"step": True}, r"encoder.rnn \(GRU\): a bidirectional layer"),
        (gatedrnn.GRU(3, 4), {"step": True}, r"encoder.rnn \(GRU\): it is called without a state"),
    ],
)
def test_the_module_and_the_reason(layer: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = Inside(layer)
    with pytest.raises(ValueError, match=message):
        gatedrnn.export.onnx(model, torch.randn(1, 2, 3), tmp_path / "model.onnx", **options)
    assert list(tmp_path.iterdir()) == []
    assert layer.engine == "auto" and not layer._forward_pre_hooks and model.training


def test_a_packed_sequence_is_answered_with_lengths(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"encoder.rnn \(GRU\): a PackedSequence cannot be exported.*lengths="):
        gatedrnn.export.onnx(Inside(gatedrnn.GRU(3, 4)), pack_sequence([torch.randn(3, 3)]), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["onnx", "onnxscript"])
def test_a_missing_package_names_the_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        gatedrnn.export.onnx.__globals__, "find_spec", lambda wanted: None if wanted == name else wanted
    )
    with pytest.raises(ImportError, match=rf'^gatedrnn.export.onnx needs {name}.*pip install "\.\[export\]"'):
        gatedrnn.export.onnx(gatedrnn.GRU(3, 4), torch.randn(2, 2, 3), tmp_path / "model.onnx")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        gatedrnn.export.onnx(gatedrnn.GRU(3, 4), torch.randn(2, 2, 3), tmp_path / "no" / "model.onnx")


@pytest.mark.filterwarnings("ignore")  # torch's own, on the older exporter
@pytest.mark.parametrize("dynamo", [True, False])
def test_torchs_function_names_ours(dynamo: bool, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"gatedrnn\.export\.onnx\(model, example, path\)"):
        torch.onnx.export(gatedrnn.GRU(3, 4), (torch.randn(2, 2, 3),), tmp_path / "model.onnx", dynamo=dynamo)
    assert list(tmp_path.iterdir()) == []


def test_a_step_with_its_state(tmp_path: Path) -> None:
    """One step, without a loop in the file; step by step it gives what the layer gives on the whole sequence."""
    layer, path = gatedrnn.LSTM(3, 4, num_layers=2, forget_gate="fast"), tmp_path / "step.onnx"
    state = torch.randn(2, 1, 4), torch.randn(2, 1, 4)
    gatedrnn.export.onnx(layer, (torch.randn(1, 1, 3), state), path, step=True)
    assert not {"Scan", "Loop"} & set(operators(path))
    running, x, outputs, carried = session(path), torch.randn(20, 1, 3), [], list(state)
    assert running.get_inputs()[0].shape == [1, 1, 3]
    for t in range(20):
        output, *carried = run(running, x[t : t + 1], *carried)
        outputs.append(output)
    expected, (_, c_n) = layer(x, state)
    torch.testing.assert_close(torch.cat(outputs), expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(carried[1], c_n.detach(), rtol=1e-5, atol=1e-5)


def test_a_single_step_module(tmp_path: Path) -> None:
    cell, path = gatedrnn.JANETCell(3, 4, forget_gate="fast"), tmp_path / "cell.onnx"
    gatedrnn.export.onnx(cell, (torch.randn(2, 3), torch.randn(2, 4)), path)
    x, h = torch.randn(5, 3), torch.randn(5, 4)
    torch.testing.assert_close(run(session(path), x, h)[0], cell(x, h).detach(), rtol=1e-5, atol=1e-5)
    assert "Scan" not in operators(path)


def test_inputs_of_the_file_are_tensors_with_a_name_each(tmp_path: Path) -> None:
    layer, x, file = gatedrnn.GRU(3, 4), torch.randn(5, 2, 3), tmp_path / "layer.onnx"
    with pytest.raises(TypeError, match=r"^GRU: lengths must be a tensor to become an input of the file$"):
        gatedrnn.export.onnx(layer, {"input": x, "lengths": [5, 3]}, file)
    with pytest.raises(
        ValueError, match=r"^input_names must have one name for each tensor of the example, 2, got \['a'\]$"
    ):
        gatedrnn.export.onnx(layer, (x, torch.zeros(1, 2, 4)), file, input_names=["a"])
    assert not file.exists()
