"""The real sets, as published. They are looked for where GATEDRNN_DATA says, and must all be there."""

from __future__ import annotations

import os

import pytest
import torch

from gatedrnn.lab.data import images

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("GATEDRNN_DATA"), reason="GATEDRNN_DATA does not name a folder of real data"),
]

# Published per class: MNIST's digits 0 to 9.
MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_mnist() -> None:
    found = images("mnist")
    assert found.train_images.shape == (60_000, 28, 28) and found.test_images.shape == (10_000, 28, 28)
    assert found.train_labels.bincount().tolist() == MNIST_TRAIN
    assert found.test_labels.bincount().tolist() == MNIST_TEST
    pixels = found.train_images.double() / 255
    assert round(float(pixels.mean()), 4) == 0.1307 and round(float(pixels.std()), 4) == 0.3081
    assert found.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_cifar10() -> None:
    found = images("cifar10")
    assert found.train_images.shape == (50_000, 32, 32, 3) and found.test_images.shape == (10_000, 32, 32, 3)
    assert found.train_labels.bincount().tolist() == [5000] * 10
    assert found.test_labels.bincount().tolist() == [1000] * 10
    pixels = found.train_images.reshape(-1, 3)
    mean = pixels.sum(0, dtype=torch.float64) / len(pixels) / 255
    std = torch.stack([(pixels[:, channel].double() / 255).std() for channel in range(3)])
    assert [round(float(value), 4) for value in mean] == [0.4914, 0.4822, 0.4465]
    assert [round(float(value), 3) for value in std] == [0.247, 0.243, 0.262]  # 0.24703, 0.24349, 0.26159
    assert found.train_labels[:5].tolist() == [6, 9, 9, 4, 1]  # frog, truck, truck, deer, automobile
