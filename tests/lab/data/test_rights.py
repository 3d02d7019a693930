"""Folders and files without rights, and a disk that is full: errors that name the file, nothing half-written."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatedrnn.lab.data import fetch
from gatedrnn.lab.data.image_sets import open_images
from gatedrnn.lab.data.speech import open_speech
from gatedrnn.lab.data.text import open_text
from tests.lab.data import toys
from tests.lab.data.server import serving, whole
from tests.lab.data.unprivileged import open_folder, said_without_rights

CONTENTS = toys.idx_contents()
DATA = toys.idx_set(CONTENTS)
TEXT = toys.text_contents()
ARCHIVE = toys.tar(toys.speech_contents(), ".")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with open_folder() as path:
        (path / "cache").mkdir()
        (path / "cache").chmod(0o777)
        monkeypatch.setenv("GATEDRNN_CACHE", str(path / "cache"))
        yield path


def left_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_with_rights_nothing_is_said(folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)
    assert said_without_rights(lambda: open_images(DATA, folder)) == "nothing"
    assert len(left_in(folder / "cache" / "prepared")) == 1


def test_a_data_folder_that_may_only_be_read_is_enough(folder: Path) -> None:
    toys.write(folder / "toy", toys.packed(CONTENTS))
    (folder / "toy").chmod(0o555)
    assert said_without_rights(lambda: open_images(DATA, folder)) == "nothing"


def test_a_file_that_must_not_be_read(folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)
    wrong = folder / "toy" / "t10k-labels-idx1-ubyte"
    wrong.chmod(0)
    said = said_without_rights(lambda: open_images(DATA, folder))
    assert said == f"DataError: cannot read {wrong}: Permission denied"


def test_a_folder_that_must_not_be_entered(folder: Path) -> None:
    """It is not said to be missing: it may well be there."""
    toys.write(folder / "toy", CONTENTS)
    (folder / "toy").chmod(0)
    said = said_without_rights(lambda: open_images(DATA, folder))
    assert said.startswith(f"DataError: cannot read {folder / 'toy'}/") and said.endswith(": Permission denied")


def test_a_folder_of_speech_that_must_not_be_entered(folder: Path) -> None:
    toys.write(folder / "spoken", toys.speech_contents())
    (folder / "spoken").chmod(0)
    said = said_without_rights(lambda: open_speech(toys.speech_set(ARCHIVE), folder))
    assert said == f"DataError: cannot read {folder / 'spoken'}: Permission denied"


@pytest.mark.parametrize("kind", ["images", "text", "speech"])
def test_a_cache_that_must_not_be_written_to(kind: str, folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)
    archive = toys.zipped(TEXT, "words")
    members = tuple(toys.file(name, content) for name, content in TEXT.items())
    toys.write(folder / "words", {"words.zip": archive})
    toys.write(folder, {"spoken.tar.gz": ARCHIVE})
    opened = {
        "images": lambda: open_images(DATA, folder),
        "text": lambda: open_text(toys.text_set((toys.file("words.zip", archive, members=members),)), folder),
        "speech": lambda: open_speech(toys.speech_set(ARCHIVE), folder),
    }
    (folder / "cache").chmod(0o555)
    said = said_without_rights(opened[kind])
    assert said.startswith(f"DataError: cannot write {folder}/cache/prepared/") and said.endswith(": Permission denied")
    assert left_in(folder / "cache") == []


def test_a_prepared_file_that_must_not_be_read(folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)
    open_images(DATA, folder)
    (prepared,) = left_in(folder / "cache" / "prepared")
    prepared.chmod(0)
    said = said_without_rights(lambda: open_images(DATA, folder))
    assert said.startswith(f"DataError: cannot read {prepared}: ") and "Permission denied" in said


def test_what_another_user_prepared_can_be_read(folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)
    open_images(DATA, folder)
    (prepared,) = left_in(folder / "cache" / "prepared")
    prepared.chmod(0o444)
    for path in (prepared.parent, folder / "cache", folder / "toy"):
        path.chmod(0o555)
    assert said_without_rights(lambda: open_images(DATA, folder)) == "nothing"


def test_a_data_folder_that_must_not_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (folder / "data").mkdir()
    (folder / "data").chmod(0o555)
    with serving({}) as server:
        data = toys.idx_set(CONTENTS, at=server.address)
        said = said_without_rights(lambda: fetch(data, folder / "data", lambda *news: None))
        assert server.requests == []
    assert said == f"DataError: cannot write {folder}/data/toy/train-images-idx3-ubyte.gz.part: Permission denied"


def _limited(size: int) -> None:
    """From here on no file of this process may grow beyond this: writing fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_while_images_are_prepared(folder: Path) -> None:
    toys.write(folder / "toy", CONTENTS)

    def open_on_a_full_disk() -> None:
        _limited(40)
        open_images(DATA, folder)

    said = said_without_rights(open_on_a_full_disk)
    assert said == f"DataError: cannot write {folder}/cache/prepared/{DATA.key}.images: File too large"
    assert left_in(folder / "cache" / "prepared") == []


def test_a_full_disk_while_speech_is_unpacked(folder: Path) -> None:
    toys.write(folder, {"spoken.tar.gz": ARCHIVE})

    def open_on_a_full_disk() -> None:
        _limited(100)
        open_speech(toys.speech_set(ARCHIVE), folder)

    said = said_without_rights(open_on_a_full_disk)
    assert said.startswith(f"DataError: cannot write {folder}/cache/prepared/spoken-") and "File too large" in said
    assert list((folder / "cache" / "prepared").iterdir()) == []


def test_a_full_disk_while_downloading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits is kept, under another name than the file's; with space it is resumed."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    content = bytes(range(256)) * 1000
    with serving({"/big.bin": whole(content)}) as server:
        data = toys.text_set((toys.file("big.bin", content, at=server.address),))

        def fetch_on_a_full_disk() -> None:
            _limited(100_000)
            fetch(data, folder, lambda *news: None)

        said = said_without_rights(fetch_on_a_full_disk)
        part = folder / "words" / "big.bin.part"
        assert said == f"DataError: cannot write {part}: File too large"
        assert left_in(folder / "words") == [part] and part.read_bytes() == content[: part.stat().st_size]
        fetch(data, folder, lambda *news: None)
    assert (folder / "words" / "big.bin").read_bytes() == content and not part.exists()
