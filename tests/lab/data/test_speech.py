"""Spoken words from generated archives and folders, good and bad."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from gatedrnn.lab.data import SETS, DataError, MissingDataError, speech, speech_folder
from gatedrnn.lab.data.speech import SpeechData, open_speech
from tests.lab.data import toys

CONTENTS = toys.speech_contents()
ARCHIVE = toys.tar({**CONTENTS, "yes/.DS_Store": b"?", "maybe/a.wav": b"not a word of the set"}, ".")
SPOKEN = toys.speech_set(ARCHIVE)
FEW = toys.manifest_contents()


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_archive_is_unpacked_once_with_what_belongs_to_the_set(tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    folder = open_speech(SPOKEN, tmp_path)
    assert folder.parent == cache / "prepared" and list(folder.parent.iterdir()) == [folder]
    found = files_in(folder)
    listed = found.pop("unpacked.csv")
    assert found == CONTENTS
    assert listed.count(b"\n") == len(CONTENTS)
    first = folder.stat().st_ino
    assert open_speech(SPOKEN, tmp_path) == folder and folder.stat().st_ino == first


def test_unpacking_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "_REPORTED", 4)
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    said: list[str] = []
    open_speech(SPOKEN, tmp_path, said.append)
    assert said == [
        "checking spoken.tar.gz",
        "unpacking spoken.tar.gz, once: 0 files",
        "unpacking spoken.tar.gz, once: 4 files",
        "unpacking spoken.tar.gz, once: 8 files",
        "unpacked 9 files",
    ]
    said.clear()
    open_speech(SPOKEN, tmp_path, said.append)
    assert said == []


@pytest.mark.parametrize(
    "damage",
    [
        "a clip shorter",
        "a clip gone",
        "the list gone",
        "the list damaged",
        "the list shorter",
        "the list a folder",
        "a file instead",
        "a link instead",
    ],
)
def test_a_damaged_unpacked_folder_is_unpacked_again(damage: str, tmp_path: Path) -> None:
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    folder = open_speech(SPOKEN, tmp_path)
    if damage == "a clip shorter":
        (folder / "yes/a_nohash_0.wav").write_bytes(b"")
    elif damage == "a clip gone":
        (folder / "yes/a_nohash_0.wav").unlink()
    elif damage == "the list gone":
        (folder / "unpacked.csv").unlink()
    elif damage == "the list shorter":
        lines = (folder / "unpacked.csv").read_bytes().splitlines(keepends=True)
        (folder / "unpacked.csv").write_bytes(b"".join(line for line in lines if b"yes/a" not in line))
    elif damage == "the list a folder":
        (folder / "unpacked.csv").unlink()
        (folder / "unpacked.csv").mkdir()
    elif damage.endswith("instead"):
        shutil.rmtree(folder)
        folder.write_bytes(b"?") if damage == "a file instead" else folder.symlink_to(tmp_path / "nowhere")
    else:
        (folder / "unpacked.csv").write_bytes(b"yes/a_nohash_0.wav,many\n")
    assert open_speech(SPOKEN, tmp_path) == folder
    assert {path: content for path, content in files_in(folder).items() if path != "unpacked.csv"} == CONTENTS


def _entry(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.linkname = kind, size, link
    return entry


OUT = "a link, or a path out of its folder"
EVIL = {
    "a symbolic link": (_entry("yes/d.wav", tarfile.SYMTYPE, link="/etc/passwd"), OUT),
    "a hard link": (_entry("yes/d.wav", tarfile.LNKTYPE, link="yes/a_nohash_0.wav"), OUT),
    "a device": (_entry("yes/d.wav", tarfile.CHRTYPE), OUT),
    "a pipe": (_entry("yes/d.wav", tarfile.FIFOTYPE), OUT),
    "an absolute path": (_entry("/tmp/yes/d.wav", size=3), OUT),
    "a path upwards": (_entry("yes/../../d.wav", size=3), OUT),
    "a clip of 100 MB": (
        _entry("yes/d.wav", size=100 << 20),
        "holds yes/d.wav of 104,857,600 bytes, at most 8,388,608 expected",
    ),
    "a clip twice": (_entry("./yes/a_nohash_0.wav", size=3), "yes/a_nohash_0.wav is in it twice"),
    "a clip too many": (_entry("yes/d.wav", size=99), "yes holds 4 clips, expected 3"),
}


@pytest.mark.parametrize("what", EVIL)
def test_an_archive_that_must_not_be_unpacked(what: str, tmp_path: Path, cache: Path) -> None:
    """Declared with the checksum that it has, so that nothing but the unpacking can refuse it."""
    entry, said = EVIL[what]
    archive = toys.tar(CONTENTS, ".", entry)
    toys.write(tmp_path / "data", {"spoken.tar.gz": archive})
    with pytest.raises(DataError, match=said):
        open_speech(toys.speech_set(archive), tmp_path / "data")
    assert list((cache / "prepared").iterdir()) == []
    assert not list(tmp_path.rglob("d.wav"))


def test_a_damaged_archive_is_an_error_that_names_it(tmp_path: Path, cache: Path) -> None:
    for wrong in (ARCHIVE[:-1], ARCHIVE[:-1] + b"?", b""):
        toys.write(tmp_path, {"spoken.tar.gz": wrong})
        with pytest.raises(DataError, match=f"{tmp_path / 'spoken.tar.gz'} is damaged: "):
            open_speech(SPOKEN, tmp_path)
    assert not cache.exists()


@pytest.mark.parametrize(
    "archive", [ARCHIVE[: len(ARCHIVE) // 2], b"no archive at all"], ids=["truncated", "no archive"]
)
def test_an_archive_that_cannot_be_read_to_its_end(archive: bytes, tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, {"spoken.tar.gz": archive})
    with pytest.raises(DataError, match=f"{tmp_path / 'spoken.tar.gz'} is damaged: "):
        open_speech(toys.speech_set(archive), tmp_path)
    assert list((cache / "prepared").iterdir()) == []


def test_a_full_disk_leaves_no_folder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    kept = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "b_nohash_0.wav":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return kept(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(DataError, match=f"cannot write {cache}/prepared/spoken-[0-9a-f]+: No space left on device"):
        open_speech(SPOKEN, tmp_path)
    assert list((cache / "prepared").iterdir()) == []


def test_what_a_killed_process_left_is_thrown_away(tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    toys.write(cache / "prepared" / f".{SPOKEN.key}.tmp", {"yes/z.wav": b"half"})
    folder = open_speech(SPOKEN, tmp_path)
    assert list(folder.parent.iterdir()) == [folder] and not (folder / "yes/z.wav").exists()


def test_a_folder_is_preferred_and_given_as_it_lies(tmp_path: Path, cache: Path) -> None:
    folder = toys.write(tmp_path / "spoken", CONTENTS)
    toys.write(tmp_path, {"spoken.tar.gz": ARCHIVE})
    assert open_speech(SPOKEN, tmp_path) == folder and not cache.exists()


WRONG_FOLDERS = {
    "a clip missing": ({"yes/a_nohash_0.wav": None}, "spoken/yes holds 2 clips, expected 3"),
    "a clip too many": ({"yes/d.wav": b"x" * 99}, "spoken/yes holds 4 clips, expected 3"),
    "a list missing": ({"testing_list.txt": None}, "cannot read .*/spoken/testing_list.txt: No such file"),
    "a shorter list": (
        {"testing_list.txt": b"no/a_nohash_0.wav\n"},
        "testing_list.txt is damaged: 1 lines, expected 2",
    ),
    "a list of others": (
        {"validation_list.txt": b"yes/z.wav\n"},
        "validation_list.txt lists yes/z.wav, which is not there",
    ),
}


@pytest.mark.parametrize("what", WRONG_FOLDERS)
def test_a_folder_that_is_not_the_set(what: str, tmp_path: Path) -> None:
    change, said = WRONG_FOLDERS[what]
    contents = {path: content for path, content in {**CONTENTS, **change}.items() if content is not None}
    toys.write(tmp_path / "spoken", contents)
    with pytest.raises(DataError, match=said):
        open_speech(SPOKEN, tmp_path)


def test_a_word_missing_is_named(tmp_path: Path) -> None:
    toys.write(tmp_path / "spoken", {path: content for path, content in CONTENTS.items() if not path.startswith("no/")})
    with pytest.raises(DataError, match=f"^the folder of a word is missing in {tmp_path}/spoken: no$"):
        open_speech(SPOKEN, tmp_path)
    shutil.rmtree(tmp_path / "spoken/yes")
    with pytest.raises(DataError, match=f"^the folders of 2 words are missing in {tmp_path}/spoken: yes, no$"):
        open_speech(SPOKEN, tmp_path)


def test_verify_names_clips_without_sound_and_links_to_nowhere(tmp_path: Path) -> None:
    """They are no reason not to open the folder: what is done with them is an option of the task."""
    folder = toys.write(tmp_path / "spoken", {**CONTENTS, "no/a_nohash_0.wav": b"x" * 44})
    assert open_speech(SPOKEN, tmp_path) == folder
    assert [checked.damage for checked in SPOKEN.verify(tmp_path)] == [
        f"{folder}/no/a_nohash_0.wav is damaged: 44 bytes"
    ]
    for name in ("a", "b"):
        (folder / f"yes/{name}_nohash_0.wav").unlink()
        (folder / f"yes/{name}_nohash_0.wav").symlink_to(folder / "nowhere")
    assert [checked.damage for checked in SPOKEN.verify(tmp_path)] == [
        f"cannot read {folder}/yes/a_nohash_0.wav: No such file or directory; "
        "and 2 more: yes/b_nohash_0.wav, no/a_nohash_0.wav"
    ]


def test_a_missing_set_is_told_in_one_message(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as raised:
        open_speech(toys.speech_set(ARCHIVE, "https://example.org"), tmp_path)
    assert str(raised.value).splitlines() == [
        f"spoken was not found in {tmp_path}. To download it: gatedrnn data fetch spoken --data {tmp_path}",
        f"Or put these files into {tmp_path / 'spoken_archive'} (licence: free):",
        f"  {SPOKEN.files[0].described()}  https://example.org/spoken.tar.gz",
        f"Or put the unpacked folder spoken (5 clips of 2 words) into {tmp_path}.",
    ]


def test_a_folder_with_a_manifest(tmp_path: Path) -> None:
    folder = toys.write(tmp_path / "few", FEW)
    assert open_speech(toys.manifest_set(FEW), tmp_path) == folder


_CHECKSUM = "checksum mismatch, sha256 [0-9a-f]{64}, expected [0-9a-f]{64}"
WRONG_MANIFESTS = {
    "a changed clip": ({"no/b_nohash_0.wav": b"other"}, f"few/no/b_nohash_0.wav is damaged: {_CHECKSUM}"),
    "swapped clips": (
        {"no/a_nohash_0.wav": FEW["no/b_nohash_0.wav"], "no/b_nohash_0.wav": FEW["no/a_nohash_0.wav"]},
        f"few/no/a_nohash_0.wav is damaged: {_CHECKSUM}",
    ),
    "a clip missing": ({"no/b_nohash_0.wav": None}, "cannot read .*/few/no/b_nohash_0.wav: No such file"),
    "a clip too many": ({"no/d.wav": b"x"}, "few/no/d.wav is not in .*/few/manifest.csv"),
    "another manifest": (
        {"manifest.csv": FEW["manifest.csv"].replace(b"training", b"testing_", 1)},
        f"manifest.csv is damaged: {_CHECKSUM}",
    ),
    "several clips": (
        {"yes/a_nohash_0.wav": b"", "no/a_nohash_0.wav": None, "no/d.wav": b"x"},
        f"few/yes/a_nohash_0.wav is damaged: {_CHECKSUM}; and 2 more: no/a_nohash_0.wav, no/d.wav$",
    ),
    "a word missing": (
        {"no/a_nohash_0.wav": None, "no/b_nohash_0.wav": None},
        "^the folder of a word is missing in .*/few: no$",
    ),
    "no manifest": ({"manifest.csv": None}, "cannot read .*/few/manifest.csv: No such file"),
}


@pytest.mark.parametrize("what", WRONG_MANIFESTS)
def test_a_folder_that_is_not_what_its_manifest_says(what: str, tmp_path: Path) -> None:
    change, said = WRONG_MANIFESTS[what]
    contents = {path: content for path, content in {**FEW, **change}.items() if content is not None}
    toys.write(tmp_path / "few", contents)
    with pytest.raises(DataError, match=said):
        open_speech(toys.manifest_set(FEW), tmp_path)


def test_a_manifest_of_another_length(tmp_path: Path) -> None:
    short = {**FEW, "manifest.csv": b"\n".join(FEW["manifest.csv"].splitlines()[:-1]) + b"\n"}
    toys.write(tmp_path / "few", short)
    with pytest.raises(DataError, match="manifest.csv lists 4 clips, expected 5"):
        open_speech(toys.manifest_set(short), tmp_path)


@pytest.mark.parametrize(("name", "subset"), [("speech_commands", False), ("speech_commands_10_small", True)])
def test_by_name(name: str, subset: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data: SpeechData = toys.manifest_set(FEW)
    monkeypatch.setitem(SETS, name, data)
    with pytest.raises(MissingDataError, match=f"few was not found in {tmp_path}"):
        speech_folder(tmp_path, subset)
    toys.write(tmp_path / "few", FEW)
    assert speech_folder(tmp_path, subset) == tmp_path / "few"
