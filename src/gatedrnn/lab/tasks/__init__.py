"""The tasks: what a model is trained to do. Each is one documented dataclass of options."""

from __future__ import annotations

from gatedrnn.lab.tasks.adding import Adding
from gatedrnn.lab.tasks.base import FreshTask, Task
from gatedrnn.lab.tasks.classification import class_loss, class_measures
from gatedrnn.lab.tasks.copy import Copy
from gatedrnn.lab.tasks.images import PermutedMNIST, PixelTask, SequentialCIFAR, SequentialMNIST
from gatedrnn.lab.tasks.language import LanguageTask, OwnText, PennTreebank, WikiText2
from gatedrnn.lab.tasks.speech import Speech
from gatedrnn.lab.tasks.streams import Batch, Drawn, Epochs, Fresh, Samples, Split, Stream
from gatedrnn.lab.tasks.tones import Tones

#: The tasks by name.
TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        *(Adding, Copy),
        *(SequentialMNIST, PermutedMNIST, SequentialCIFAR),
        *(PennTreebank, WikiText2, OwnText),
        *(Speech, Tones),
    )
}

__all__ = [
    "TASKS",
    "Adding",
    "Batch",
    "Copy",
    "Drawn",
    "Epochs",
    "Fresh",
    "FreshTask",
    "LanguageTask",
    "OwnText",
    "PennTreebank",
    "PermutedMNIST",
    "PixelTask",
    "Samples",
    "SequentialCIFAR",
    "SequentialMNIST",
    "Speech",
    "Split",
    "Stream",
    "Task",
    "Tones",
    "WikiText2",
    "class_loss",
    "class_measures",
]
