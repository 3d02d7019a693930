"""Text from generated files: plain, under other names, and out of an archive."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gatedrnn.lab.data import SETS, DataError, MissingDataError, text_files
from gatedrnn.lab.data.text import TextData, open_text
from tests.lab.data import toys

CONTENTS = toys.text_contents()
PLAIN = toys.text_set(tuple(toys.file(name, content) for name, content in CONTENTS.items()))
ARCHIVE = toys.zipped({**CONTENTS, "README": b"see there"}, "words-v1")
ZIPPED = toys.text_set((toys.file("words.zip", ARCHIVE, "sha256", members=PLAIN.files),))


def read(data: TextData, root: Path) -> dict[str, bytes]:
    return {split: path.read_bytes() for split, path in open_text(data, root).items()}


EXPECTED = {"train": b"the train set\n", "valid": b"the valid set\n", "test": b"the test set\n"}


@pytest.mark.parametrize("folder", ["words", "elsewhere"])
@pytest.mark.parametrize("data", [PLAIN, ZIPPED], ids=["plain", "zipped"])
def test_plain_files_are_given_as_they_lie(data: TextData, folder: str, tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path / folder, CONTENTS)
    assert read(data, tmp_path) == EXPECTED
    assert {path.parent for path in open_text(data, tmp_path).values()} == {tmp_path / folder}
    assert not cache.exists()


def test_other_names_are_accepted(tmp_path: Path) -> None:
    renamed = dataclasses.replace(
        PLAIN, files=tuple(dataclasses.replace(f, aliases=(f.name[4:],)) for f in PLAIN.files)
    )
    toys.write(tmp_path / "words", {name.removeprefix("toy."): content for name, content in CONTENTS.items()})
    assert read(renamed, tmp_path) == EXPECTED
    assert open_text(renamed, tmp_path)["valid"].name == "valid.txt"


def test_an_archive_is_unpacked_once(tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path / "words", {"words.zip": ARCHIVE})
    assert read(ZIPPED, tmp_path) == EXPECTED
    paths = list(open_text(ZIPPED, tmp_path).values())
    assert {path.parent.parent for path in paths} == {cache / "prepared"}
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(CONTENTS)
    times = [path.stat().st_mtime_ns for path in paths]
    open_text(ZIPPED, tmp_path)
    assert [path.stat().st_mtime_ns for path in paths] == times


def test_a_damaged_unpacked_file_is_unpacked_again(tmp_path: Path) -> None:
    toys.write(tmp_path / "words", {"words.zip": ARCHIVE})
    path = open_text(ZIPPED, tmp_path)["test"]
    for wrong in (b"the west set\n", b"the t", b""):
        path.write_bytes(wrong)
        assert read(ZIPPED, tmp_path) == EXPECTED


@pytest.mark.parametrize("name", CONTENTS)
def test_a_damaged_file_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    folder = toys.write(tmp_path / "words", {**CONTENTS, name: CONTENTS[name].replace(b"the", b"The")})
    with pytest.raises(DataError, match=f"{folder / name} is damaged: checksum mismatch, md5 "):
        open_text(PLAIN, tmp_path)


def test_a_damaged_archive_is_an_error_that_names_it(tmp_path: Path, cache: Path) -> None:
    for wrong in (ARCHIVE[:-1], ARCHIVE + b"x", ARCHIVE[:40] + b"!" + ARCHIVE[41:]):
        folder = toys.write(tmp_path / "words", {"words.zip": wrong})
        with pytest.raises(DataError, match=f"{folder / 'words.zip'} is damaged: "):
            open_text(ZIPPED, tmp_path)
    assert not cache.exists()


SHORT = toys.zipped(dict(list(CONTENTS.items())[:2]), "words-v1")
WRONG_ARCHIVES = {
    "a member missing": (SHORT, "toy.test.txt is not in it"),
    "another member": (toys.zipped({**CONTENTS, "toy.test.txt": b"the TEST set\n"}, "w"), "checksum mismatch, md5 "),
    "a member too long": (
        toys.zipped({**CONTENTS, "toy.test.txt": b"x" * 10**6}, "w"),
        "larger than the 13 bytes expected",
    ),
    "no archive": (b"not a zip file", "File is not a zip file"),
}


@pytest.mark.parametrize("what", WRONG_ARCHIVES)
def test_an_archive_that_is_wrong_inside(what: str, tmp_path: Path, cache: Path) -> None:
    """Declared with the checksum that it has: the members are checked as well."""
    archive, said = WRONG_ARCHIVES[what]
    toys.write(tmp_path / "words", {"words.zip": archive})
    data = toys.text_set((toys.file("words.zip", archive, members=PLAIN.files),))
    with pytest.raises(DataError, match=said) as raised:
        open_text(data, tmp_path)
    assert str(tmp_path / "words" / "words.zip") in str(raised.value)
    assert not any(path.name == "toy.test.txt" for path in cache.rglob("*"))


def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETS, "words", PLAIN)
    with pytest.raises(MissingDataError, match=f"words was not found in {tmp_path}"):
        text_files("words", tmp_path)
    toys.write(tmp_path / "words", CONTENTS)
    assert text_files("words", tmp_path)["test"] == tmp_path / "words" / "toy.test.txt"
    with pytest.raises(DataError, match="unknown data set 'mnist'; known data sets: ptb, wikitext-2, words"):
        text_files("mnist", tmp_path)
