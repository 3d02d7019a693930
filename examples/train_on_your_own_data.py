"""A custom task: classify the frequency of a noisy wave. One file, outside the package.

gatedrnn train examples/train_on_your_own_data.py --forget-gate fast --epochs 5 --out runs/waves
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Batch, Epochs, Samples, Split, Stream, Task, class_loss, class_measures
from gatedrnn.lab.training import Run, Training, train


@dataclass(frozen=True)
class Waves(Task):
    """Recognise which of four frequencies a noisy wave has."""

    noise: float = 0.5
    """Standard deviation of the noise."""
    name, metric, lower_is_better = "waves", "accuracy", False
    input_size, output_size, last, steps, t_max = 1, 4, 1, 60, 60.0

    def check(self) -> None:
        if self.noise < 0:
            raise ValueError(f"noise must be at least 0, got {self.noise}")

    @cached_property
    def waves(self) -> tuple[Tensor, Tensor]:  # opened once; here it is made, yours may be read from a file
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(4, (700,), generator=generator)
        phase = 6.28 * torch.rand(700, generator=generator) + 0.2 * (1 + labels) * torch.arange(60.0)[:, None]
        return phase.sin() + self.noise * torch.randn(60, 700, generator=generator), labels

    def take(self, chosen: Tensor, begin: int = 0) -> Batch:
        waves, labels = self.waves
        return Batch(waves[:, begin + chosen, None], labels[begin + chosen][None])  # (T, B, 1) and (1, B)

    def stream(self, batch_size: int, seed: int) -> Stream:
        return Epochs(500, self.take, batch_size, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        parts = {"validation": 500, "test": 600}
        return {name: Samples(100, partial(self.take, begin=begin)) for name, begin in parts.items()}

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)


if __name__ == "__main__":
    with TemporaryDirectory() as out:
        record = train(Run(Waves(), Model(hidden_size=32), Training(lr=0.01, batch_size=50, epochs=10)), out)
    print(f"validation {record['validation']['accuracy']:.2f}, test {record['test']['accuracy']:.2f}")
