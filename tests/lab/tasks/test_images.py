"""Images pixel by pixel: order, values, splits; on generated images, and on the real sets where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from gatedrnn.lab.data import ImageSet
from gatedrnn.lab.tasks import Batch, PermutedMNIST, PixelTask, SequentialCIFAR, SequentialMNIST, images
from gatedrnn.lab.tasks.images import bit_reversal

KINDS: tuple[type[PixelTask], ...] = (SequentialMNIST, PermutedMNIST, SequentialCIFAR)
each = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def _generated(name: str, train: int = 60, test: int = 30) -> ImageSet:
    shape = (28, 28) if name == "mnist" else (32, 32, 3)
    generator = torch.Generator().manual_seed(5)

    def pixels(count: int) -> torch.Tensor:
        return torch.randint(256, (count, *shape), generator=generator, dtype=torch.uint8)

    labels = torch.arange(train + test, dtype=torch.uint8) % 10
    return ImageSet(pixels(train), labels[:train], pixels(test), labels[train:])


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def open_set(name: str, root: Path | None = None) -> ImageSet:
        opened.append(name)
        return _generated(name)

    monkeypatch.setattr(images, "images", open_set)
    return opened


def _undone(task: PixelTask, batch: Batch, row: int) -> torch.Tensor:
    """The bytes of the image that a row of the batch was made of."""
    x = batch.input[:, row]
    if isinstance(task, SequentialCIFAR):
        x = x * torch.tensor([0.247, 0.243, 0.261]) + torch.tensor([0.4914, 0.4822, 0.4465])
    if isinstance(task, PermutedMNIST):
        restored = torch.empty_like(x)
        restored[bit_reversal(784)] = x
        x = restored
    return (x * 255).round().to(torch.uint8)


def test_bit_reversal_is_the_published_order() -> None:
    order = bit_reversal(784).tolist()
    assert order[:16] == [0, 512, 256, 768, 128, 640, 384, 64, 576, 320, 192, 704, 448, 32, 544, 288]
    assert order[-8:] == [703, 447, 127, 639, 383, 255, 767, 511]
    assert sorted(order) == list(range(784))


@each
def test_a_batch_undone_is_the_images(kind: type[PixelTask], generated: list[str]) -> None:
    task = kind()
    batch = next(task.splits(None)["test"].batches(7))
    original = _generated(task.data_set)
    assert batch.input.shape == (task.steps, 7, task.input_size) and batch.input.dtype == torch.float32
    assert torch.equal(batch.target, original.test_labels[:7].long()[None])
    for row in range(7):
        assert torch.equal(_undone(task, batch, row), original.test_images[row].reshape(task.steps, -1))


def test_pixels_are_read_row_by_row(generated: list[str]) -> None:
    x = next(SequentialMNIST().splits(None)["test"].batches(1)).input[:, 0, 0]
    image = _generated("mnist").test_images[0]
    assert x[28 * 3 + 5] == image[3, 5].float() / 255
    colours = next(SequentialCIFAR().splits(None)["test"].batches(1)).input[:, 0]
    green = _generated("cifar10").test_images[0, 2, 9, 1].float() / 255
    assert colours[32 * 2 + 9, 1] == pytest.approx(float((green - 0.4822) / 0.243), rel=1e-5)


@each
def test_splits_do_not_overlap_and_are_the_same_for_every_run(kind: type[PixelTask], generated: list[str]) -> None:
    """54 images are shown once in an epoch, and the other 6 are those of the validation."""
    stream = kind().stream(10, seed=1)
    assert stream.updates_an_epoch == 6
    train = torch.cat([stream.next().input for _ in range(6)], 1)
    validation = [torch.cat([b.input for b in kind().splits(None)["validation"].batches(4)], 1) for _ in range(2)]
    assert torch.equal(*validation) and validation[0].shape[1] == 6
    rows = {tuple(row.tolist()) for x in (train, validation[0]) for row in x[:, :, 0].t()}
    assert len(rows) == 60
    other = kind().stream(10, seed=2)
    again = torch.cat([other.next().input for _ in range(6)], 1)
    assert {tuple(row.tolist()) for row in again[:, :, 0].t()} == {tuple(row.tolist()) for row in train[:, :, 0].t()}
    assert not torch.equal(again, train)


def test_the_set_is_opened_once_and_only_when_needed(generated: list[str]) -> None:
    task = PermutedMNIST()
    task.check()
    assert (task.input_size, task.output_size, task.steps, task.t_max, generated) == (1, 10, 784, 784.0, [])
    task.stream(5, 0).next()
    task.splits(None)
    assert generated == ["mnist"]


def test_a_few_images_for_a_quick_look(generated: list[str]) -> None:
    task = SequentialMNIST(images=40)
    assert task.stream(6, 0).updates_an_epoch == 6  # 36 images
    counts = {name: sum(b.input.shape[1] for b in split.batches(3)) for name, split in task.splits(None).items()}
    assert counts == {"validation": 4, "test": 4}
    with pytest.raises(ValueError, match="^images must be at least 20, got 19$"):
        SequentialMNIST(images=19).check()


def test_where_the_data_lies_is_not_the_run() -> None:
    from gatedrnn.lab.training import Run

    assert Run(PermutedMNIST(data="here")).key() == Run(PermutedMNIST()).key() != Run(PermutedMNIST(images=50)).key()


real = pytest.mark.skipif(
    "GATEDRNN_DATA" not in os.environ, reason="needs the real data sets in the folder GATEDRNN_DATA"
)


@pytest.mark.slow
@real
@each
def test_real_images(kind: type[PixelTask]) -> None:
    task = kind()
    stream, splits = task.stream(50, 0), task.splits(None)
    cifar = kind is SequentialCIFAR
    assert stream.updates_an_epoch == (900 if cifar else 1080)
    batches = {name: list(split.batches(1000)) for name, split in splits.items()}
    counts = {name: sum(batch.input.shape[1] for batch in found) for name, found in batches.items()}
    assert counts == {"validation": 5000 if cifar else 6000, "test": 10000}
    labels = torch.cat([batch.target[0] for batch in batches["test"]]).bincount()
    published = [1000] * 10 if cifar else [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert labels.tolist() == published
    pixels = torch.cat([batch.input for batch in batches["test"]], 1).double()
    if cifar:
        assert pixels.mean((0, 1)).abs().max() < 0.05 and (pixels.std((0, 1)) - 1).abs().max() < 0.05
    else:
        assert float(pixels.mean()) == pytest.approx(0.1325, abs=2e-4)  # of the test images
        assert float(pixels.std()) == pytest.approx(0.3105, abs=2e-4)
    from gatedrnn.lab.data import images as open_images

    assert torch.equal(
        _undone(task, batches["test"][0], 3), open_images(task.data_set).test_images[3].reshape(task.steps, -1)
    )
