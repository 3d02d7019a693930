"""Convert an existing model to the fast gate; its units keep their time scales.

Run it: python examples/swap_the_forget_gate.py
"""

import torch

import gatedrnn


class Tagger(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, _ = self.encoder(x)
        return torch.as_tensor(self.head(output))


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
before = gatedrnn.time_scales(model.encoder)["l0"]

gatedrnn.convert(model, forget_gate="fast", match="bias")  # same parameters: the optimiser keeps working

after = gatedrnn.time_scales(model.encoder)["l0"]
loss = model(torch.randn(3, 50, 8)).square().mean()
loss.backward()
optimizer.step()
print(model.encoder)
print(f"time scales before {before.mean():.4f}, after {after.mean():.4f} steps on average")
assert torch.allclose(before, after, rtol=1e-5)
