"""``gatedrnn generate``: text from a trained language model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.streams import without_controls

_COLDEST = 1e-100  # no score of float32 divided by it overflows


@dataclass(frozen=True)
class Generate:
    """Generate text with a trained language model, word by word."""

    checkpoint: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of a run on a text, or one of its checkpoints."""
    prompt: str = ""
    """Words to start with; an empty prompt is the start of a line."""
    words: int = 100
    """Number of words to generate."""
    temperature: float = 1.0
    """Sampling temperature: larger values give more varied text; 0 always takes the most probable word."""
    seed: int = 0
    """Seed of the sampling."""
    data: str | None = None
    """Folder with the data set, whose vocabulary is needed. (default: that of the run, else the environment variable
    GATEDRNN_DATA, else gatedrnn/data in the user's cache)"""

    def run(self) -> None:
        """Print each word as it is generated."""
        from gatedrnn.cli.evaluate import opened
        from gatedrnn.lab.data import END_OF_LINE, UNKNOWN
        from gatedrnn.lab.tasks import LanguageTask

        if self.words < 1:
            raise Failure(f"--words must be at least 1, got {self.words}")
        if self.temperature != 0 and not _COLDEST <= self.temperature < math.inf:
            raise Failure(f"--temperature must be 0 or at least {_COLDEST:g}, got {self.temperature}")
        if not 0 <= self.seed < 2**63:
            raise Failure(f"--seed must be at least 0 and below 2**63, got {self.seed}")
        try:
            trained = opened(self.checkpoint, data=self.data)
        except (ValueError, OSError) as why:
            raise Failure(str(why), several_lines="\n" in str(why)) from why
        task = trained.run.task
        if not isinstance(task, LanguageTask):
            raise Failure(f"{self.checkpoint} is a run of the task {task.name}, which is not a text task")
        places, written = task.corpus.places, self.prompt.split()
        strange = [word for word in written if word not in places]
        if strange and UNKNOWN not in places:
            raise Failure(f"the vocabulary of the model does not have the word {strange[0]!r} of --prompt")
        begin = [places[END_OF_LINE], *(places.get(word, places.get(UNKNOWN, 0)) for word in written)]
        line: list[str] = []
        for word in (*written, *self._made(trained.network, begin, task.corpus.words)):
            if word == END_OF_LINE:
                print(flush=True)
                line = []
            else:
                print(f"{' ' if line else ''}{without_controls(word)}", end="", flush=True)
                line.append(word)
        if line:
            print()

    def _made(self, network: Any, begin: list[int], words: tuple[str, ...]) -> Iterator[str]:
        import torch

        generator = torch.Generator().manual_seed(self.seed)
        network.eval()
        x, carry = torch.tensor(begin).unsqueeze(-1), None
        for _ in range(self.words):
            with torch.no_grad():
                scores, carry, _ = network(x.to(network.bias.device), carry)
            last = scores[-1, 0].double().cpu()
            if self.temperature:
                chances = torch.softmax(last / self.temperature, -1)
                chosen = torch.multinomial(chances, 1, generator=generator)
            else:
                chosen = last.argmax().unsqueeze(0)
            yield words[int(chosen)]
            x = chosen.unsqueeze(-1)
