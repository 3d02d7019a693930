"""Train a model, write it to an ONNX file, and run it in onnxruntime at a different length.

Run it: pip install ".[export]" onnxruntime && python examples/export_to_onnx.py
"""

import tempfile
from pathlib import Path

import onnxruntime  # type: ignore[import-untyped]
import torch
from torch import Tensor, nn

import gatedrnn


class Last(nn.Module):
    """Predicts the first number of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = gatedrnn.GRU(1, 16, forget_gate="fast", forget_init=gatedrnn.inits.Chrono(t_max=100))
        self.head = nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.rnn(x)
        return torch.as_tensor(self.head(output[-1]))


torch.manual_seed(0)
model = Last()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(100):
    x = torch.randn(20, 32, 1)
    loss = (model(x) - x[0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss after training: {loss.item():.3f}")

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.onnx"
    gatedrnn.export.onnx(model, torch.randn(20, 2, 1), file, input_names=["x"], output_names=["first"])
    session = onnxruntime.InferenceSession(file)

x = torch.randn(50, 3, 1)  # another length, another batch size
(first,) = session.run(["first"], {"x": x.numpy()})
difference = (torch.from_numpy(first) - model(x).detach()).abs().max().item()
print(f"onnxruntime differs from the layer by {difference:.1e}")
assert difference < 1e-5
