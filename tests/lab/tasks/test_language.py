"""Text for language models: chunks, the published evaluation, perplexity by frequency."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from gatedrnn.lab.data import DataError
from gatedrnn.lab.tasks import LanguageTask, OwnText, PennTreebank, WikiText2
from gatedrnn.lab.tasks.language import BINS, Chunks, side_by_side

WORDS = [f"w{place}" for place in range(30)]


def own_text(folder: Path, train: int = 2000, valid: int = 205, test: int = 103, bptt: int = 12) -> OwnText:
    """Words from a rule; the same for all tests."""
    generator = torch.Generator().manual_seed(9)
    paths = {}
    for split, count in {"train": train, "valid": valid, "test": test}.items():
        chosen = torch.randint(len(WORDS), (count - 1,), generator=generator).tolist()
        paths[split] = folder / f"{split}.txt"
        paths[split].write_text(" ".join(WORDS[place] for place in chosen) + "\n")
    return OwnText(bptt=bptt, **{split: str(path) for split, path in paths.items()})


@pytest.fixture
def task(tmp_path: Path) -> OwnText:
    return own_text(tmp_path)


def test_every_pass_reads_every_word_once_in_as_many_chunks(task: OwnText) -> None:
    stream = task.stream(batch_size=3, seed=4)
    columns = side_by_side(task.corpus.texts["train"], 3)
    assert columns.shape == (666, 3) and stream.updates_an_epoch == round(665 / (12 * 0.975))
    passes = []
    for _ in range(2):
        batches = [stream.next() for _ in range(stream.updates_an_epoch)]
        assert [batch.continues for batch in batches] == [False, *[True] * (len(batches) - 1)]
        assert torch.equal(torch.cat([batch.input for batch in batches]), columns[:-1])
        assert torch.equal(torch.cat([batch.target for batch in batches]), columns[1:])
        assert all(batch.rate == len(batch.input) / 12 for batch in batches)
        passes.append([len(batch.input) for batch in batches])
    assert passes[0] != passes[1]


def test_lengths_have_the_published_distribution() -> None:
    stream = Chunks(torch.zeros(1_000_000, 1, dtype=torch.long), bptt=70, seed=0)
    lengths = torch.tensor([float(len(stream.next().input)) for _ in range(stream.updates_an_epoch or 0)])
    halved = lengths < 52
    assert float(halved.double().mean()) == pytest.approx(0.05, abs=0.006)
    # Rounded down, as in the published code: half a step less; then scaled by about 1 %.
    assert float(lengths[~halved].mean()) == pytest.approx(70, abs=0.6)
    assert float(lengths[~halved].std()) == pytest.approx(5, abs=0.2)
    assert float(lengths[halved].mean()) == pytest.approx(35, abs=0.6)


@pytest.mark.parametrize("batches", [0, 5, 56, 57, 70])
def test_a_position_in_the_text_is_exact(task: OwnText, batches: int) -> None:
    stream = task.stream(3, seed=4)
    for _ in range(batches):
        stream.next()
    position = {name: tensor.clone() for name, tensor in stream.position().items()}
    expected = [stream.next() for _ in range(80)]
    other = task.stream(3, seed=5)
    other.next()
    other.seek(position)
    for batch in expected:
        again = other.next()
        assert torch.equal(again.input, batch.input) and again.continues == batch.continues


def test_the_first_word_is_no_target_and_what_rows_drop_is_known(task: OwnText) -> None:
    splits = task.splits(None)
    for name, rows, dropped in (("validation", 10, 204 - 190), ("test", 1, 0)):
        batches = list(splits[name].batches(1))
        columns = side_by_side(task.corpus.texts["valid" if name == "validation" else name], rows)
        assert torch.equal(torch.cat([batch.target for batch in batches]), columns[1:])
        assert torch.equal(torch.cat([batch.input for batch in batches]), columns[:-1])
        assert [batch.continues for batch in batches] == [False, *[True] * (len(batches) - 1)]
        assert splits[name].dropped == dropped


@pytest.mark.parametrize("frequencies", ["train", "all"])
def test_perplexity_by_frequency(frequencies: str, tmp_path: Path) -> None:
    """Words of 1, 100, 1,000 and 10,000 occurrences, against sums by hand."""
    counts = {"rare": 99, "some": 999, "many": 9_999, "most": 10_000}
    train = " ".join(f"{word} " * count for word, count in counts.items())
    for split, text in {"train": train, "valid": "rare " * 30, "test": "many some rare most most some"}.items():
        (tmp_path / f"{split}.txt").write_text(text)
    files = {split: str(tmp_path / f"{split}.txt") for split in ("train", "valid", "test")}
    task = OwnText(frequencies=frequencies, **files)
    # With all files "rare" occurs 99 + 30 + 1 times, "some" 999 + 2 and "many" 9,999 + 1; <eos> never often.
    words = ["rare", "some", "many", "most", "<eos>"]
    kind = dict(zip(words, [3, 2, 1, 0, 3] if frequencies == "train" else [2, 1, 0, 0, 3], strict=True))
    target = task.corpus.texts["test"].unsqueeze(-1)
    output = torch.randn(len(target), 1, 5, generator=torch.Generator().manual_seed(0))
    measured = task.measure(output, target)
    means = {name: float(values.double().mean()) for name, values in measured.items()}
    found = task.summary(means)
    losses = -torch.log_softmax(output, -1).gather(-1, target.unsqueeze(-1)).flatten()
    assert found["perplexity"] == pytest.approx(math.exp(float(losses.mean())), rel=1e-6)
    said = [task.corpus.words[place] for place in target.flatten().tolist()]
    for place, name in enumerate(BINS):
        inside = [float(loss) for loss, word in zip(losses, said, strict=True) if kind[word] == place]
        expected = math.exp(sum(inside) / len(inside)) if inside else None
        assert found["bins"][name] == pytest.approx(expected, rel=1e-6), name


def test_a_loss_that_no_perplexity_holds_is_infinite(task: OwnText) -> None:
    means = {f"{what} {name}": 0.0 for what in ("loss", "targets") for name in BINS}
    found = task.summary({**means, "loss": 1000.0})
    assert found["perplexity"] == math.inf and set(found["bins"].values()) == {None}


def test_texts_that_are_too_short(tmp_path: Path) -> None:
    task = own_text(tmp_path, valid=19)
    with pytest.raises(DataError, match=r"the validation text has 19 words; it needs at least 20"):
        task.splits(None)
    with pytest.raises(DataError, match=r"the training text has 2000 words, fewer than batch_size × bptt = 2400"):
        task.stream(200, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bptt": 4}, "bptt must be between 5 and 1000000, got 4"),
        ({"frequencies": "test"}, "frequencies must be one of train, all, got 'test'"),
        ({"words": 19}, "words must be at least 20, got 19"),
        ({"valid": ""}, "valid must name a file of text"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    files = {"train": "a", "valid": "b", "test": "c"}
    with pytest.raises(ValueError, match=message):
        OwnText(**{**files, **options}).check()  # type: ignore[arg-type]


real = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("GATEDRNN_DATA"), reason="GATEDRNN_DATA does not name a folder of real data"),
]


@pytest.mark.parametrize(
    ("task", "words", "vocabulary", "bins", "updates"),
    [
        pytest.param(
            *(PennTreebank(), (929_589, 73_760, 82_430), 10_000, (24_844, 19_790, 22_412, 15_384), 681), marks=real
        ),
        pytest.param(*(WikiText2(), (2_088_628, 217_646, 245_569), 33_278, None, 1530), marks=real),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_real_texts_are_as_published(
    task: LanguageTask, words: tuple[int, ...], vocabulary: int, bins: tuple[int, ...] | None, updates: int
) -> None:
    assert tuple(map(len, task.corpus.texts.values())) == words
    assert task.input_size == task.output_size == vocabulary
    assert task.stream(20, 0).updates_an_epoch == updates
    test = task.corpus.texts["test"]
    found = Counter(task._bins[test].tolist())
    if bins is not None:
        assert tuple(found[place] for place in range(4)) == bins
    assert task.splits(None)["test"].dropped == 0
    # The first word of each row is no target, and the words that do not fill a row are none.
    assert task.splits(None)["validation"].dropped == 9 + words[1] % 10
