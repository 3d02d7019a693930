"""The real sets, as published. They are looked for where GATEDRNN_DATA says, and must all be there."""

from __future__ import annotations

import csv
import os
import wave
from collections import Counter

import pytest
import torch

from gatedrnn.lab.data import SETS, clips, data_folder, images, official_split, speaker_of, speech_folder, text_files
from gatedrnn.lab.data.text import TextData

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("GATEDRNN_DATA"), reason="GATEDRNN_DATA does not name a folder of real data"),
]

# The full set of speech is 2.4 GB and not needed: its subset is.
NEEDED = ["mnist", "cifar10", "ptb", "wikitext-2", "speech_commands_10_small"]


@pytest.mark.parametrize("name", NEEDED)
def test_every_file_has_its_published_checksum(name: str) -> None:
    results = list(SETS[name].verify(data_folder()))
    assert results and [checked.damage for checked in results if checked.damage] == []


def test_mnist() -> None:
    found = images("mnist")
    assert found.train_images.shape == (60_000, 28, 28) and found.test_images.shape == (10_000, 28, 28)
    assert found.train_labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert found.test_labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
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
    assert [round(float(value), 4) for value in std] == [0.2470, 0.2435, 0.2616]
    assert found.train_labels[:5].tolist() == [6, 9, 9, 4, 1]  # frog, truck, truck, deer, automobile


@pytest.mark.parametrize(
    ("name", "tokens", "vocabulary"),
    [("ptb", (929_589, 73_760, 82_430), 10_000), ("wikitext-2", (2_088_628, 217_646, 245_569), 33_278)],
)
def test_text(name: str, tokens: tuple[int, ...], vocabulary: int) -> None:
    data = SETS[name]
    assert isinstance(data, TextData) and (data.tokens, data.vocabulary) == (tokens, vocabulary)
    words = {
        split: [word for line in path.read_text(encoding="utf-8").split("\n")[:-1] for word in [*line.split(), "<eos>"]]
        for split, path in text_files(name).items()
    }
    assert tuple(len(split) for split in words.values()) == tokens
    assert len(set(words["train"])) == vocabulary
    assert len({word for split in words.values() for word in split}) == vocabulary


def test_the_small_set_of_speech() -> None:
    folder = speech_folder(subset=True)
    with open(folder / "manifest.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2_000
    assert Counter(row["path"].partition("/")[0] for row in rows) == dict.fromkeys(
        ["down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes"], 200
    )
    splits = Counter((row["path"].partition("/")[0], row["split"]) for row in rows)
    assert {splits[word, split] for word, split in splits if split == "training"} == {140}
    assert {splits[word, split] for word, split in splits if split in ("validation", "testing")} == {30}
    speakers = {
        split: {row["path"][:-4].partition("/")[2].partition("_nohash_")[0] for row in rows if row["split"] == split}
        for split in ("training", "validation", "testing")
    }
    assert not speakers["training"] & speakers["validation"] and not speakers["training"] & speakers["testing"]
    assert not speakers["validation"] & speakers["testing"]
    assert all(official_split(speaker_of(row["path"])) == row["split"] for row in rows)
    found = clips(("go", "yes"), subset=True)
    assert found.samples.shape == (400, 16_000) and found.unusable == {}
    for row in rows[::50]:
        with wave.open(str(folder / row["path"])) as clip:
            assert (clip.getframerate(), clip.getsampwidth(), clip.getnchannels(), clip.getnframes()) == (
                16_000,
                2,
                1,
                16_000,
            )
