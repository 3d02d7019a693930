"""Words as numbers, and what a text must not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatedrnn.lab.data import Corpus, DataError, read_corpus

TEXTS = {
    "train": "the cat sat\non the <unk>\n",
    "valid": "the dog sat\n",
    "test": "cat\n\n the  cat",
}

#: Of TEXTS, as the first version made it.
FINGERPRINT = {
    "vocabulary": "b8beddc575a473e8",
    "train": "5e526d96f51bf12b",
    "valid": "b1090fc39495dfb7",
    "test": "b588072e1938ed66",
}


def _write(folder: Path, **changed: str | bytes) -> dict[str, Path]:
    paths = {}
    for split, text in {**TEXTS, **changed}.items():
        paths[split] = folder / f"{split}.txt"
        paths[split].write_bytes(text if isinstance(text, bytes) else text.encode())
    return paths


def _said(corpus: Corpus, split: str) -> str:
    return " ".join(corpus.words[place] for place in corpus.texts[split].tolist())


def test_words_lines_and_the_unknown(tmp_path: Path) -> None:
    corpus = read_corpus(_write(tmp_path))
    assert corpus.words == ("the", "cat", "sat", "<eos>", "on", "<unk>")
    assert _said(corpus, "train") == "the cat sat <eos> on the <unk> <eos>"
    assert _said(corpus, "valid") == "the <unk> sat <eos>"
    assert _said(corpus, "test") == "cat <eos> <eos> the cat <eos>"
    assert corpus.counts("train").tolist() == [2, 1, 1, 2, 1, 1]
    assert corpus.counts("train", "valid", "test").tolist() == [4, 3, 2, 6, 1, 2]
    assert corpus.places["on"] == 4


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_ends_of_lines_of_other_systems(end: str, tmp_path: Path) -> None:
    other = read_corpus(_write(tmp_path, **{split: text.replace("\n", end) for split, text in TEXTS.items()}))
    assert other.fingerprint == read_corpus(_write(tmp_path)).fingerprint


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    marked = {split: "\ufeff" + text for split, text in TEXTS.items()}
    assert read_corpus(_write(tmp_path, **marked)).fingerprint == read_corpus(_write(tmp_path)).fingerprint
    inside = read_corpus(_write(tmp_path, train="the \ufeffcat <unk>"))
    assert inside.words == ("the", "\ufeffcat", "<unk>", "<eos>")


def test_the_fingerprint_of_a_text_stays_the_same(tmp_path: Path) -> None:
    """Checkpoints and records have it."""
    assert read_corpus(_write(tmp_path)).fingerprint == FINGERPRINT


def test_a_fingerprint_tells_what_is_another_text(tmp_path: Path) -> None:
    first = read_corpus(_write(tmp_path)).fingerprint
    other = read_corpus(_write(tmp_path, test="the the cat\n")).fingerprint
    assert [name for name in first if first[name] != other[name]] == ["test"]
    other = read_corpus(_write(tmp_path, train="the mat sat\non the <unk>\n")).fingerprint
    assert [name for name in first if first[name] != other[name]] == ["vocabulary", "test"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"train": "the cat sat\n", "valid": "the cat\nsat the dog\n"},
            "valid.txt, line 2: the word 'dog' is not in .*train.txt, which has no <unk> either",
        ),
        ({"test": ""}, "test.txt is empty"),
        ({"valid": " \n \n"}, "valid.txt is empty"),
        ({"test": "\ufeff\n"}, "test.txt is empty"),
        ({"train": b"caf\xe9 <unk>"}, "train.txt is not UTF-8 text: byte 0xe9 at 3"),
        ({"train": b"\xef\xbb\xbfcaf\xe9 <unk>"}, "train.txt is not UTF-8 text: byte 0xe9 at 6"),
    ],
)
def test_texts_that_are_refused(changed: dict[str, str | bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_corpus(_write(tmp_path, **changed))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    paths = _write(tmp_path)
    paths["valid"].unlink()
    with pytest.raises(DataError, match=r"valid.txt cannot be read: No such file or directory"):
        read_corpus(paths)
