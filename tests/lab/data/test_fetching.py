"""Whole sets from a server on this machine, and checks of all there is of a set."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gatedrnn.lab.data import DataError, MissingDataError, fetch
from gatedrnn.lab.data.download import Patience
from gatedrnn.lab.data.image_sets import open_images
from gatedrnn.lab.data.speech import open_speech
from tests.lab.data import toys
from tests.lab.data.server import fixed, serving, whole

CONTENTS = toys.idx_contents()
PACKED = toys.packed(CONTENTS)
NAMES = list(PACKED)
CALM = Patience(stall=20.0, failures=2, pause=0.01)


@pytest.fixture(autouse=True)
def directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past any proxy of the machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def silent(name: str, done: int, total: int) -> None:
    """No progress is shown."""


def test_a_set_is_fetched_once_and_can_be_opened(tmp_path: Path) -> None:
    with serving({f"/{name}": whole(content) for name, content in PACKED.items()}) as server:
        data = toys.idx_set(CONTENTS, at=server.address)
        seen = []
        fetched = fetch(data, tmp_path, lambda *news: seen.append(news))
        assert fetched.folder == tmp_path / "toy"
        assert fetched.downloaded == tuple(tmp_path / "toy" / name for name in NAMES)
        assert seen == [(name, len(content), len(content)) for name, content in PACKED.items()]
        assert open_images(data, tmp_path).train_labels.tolist() == toys.idx_arrays()[toys.IDX_NAMES[1]].tolist()
        assert fetch(data, tmp_path, silent).downloaded == ()
        assert len(server.requests) == 4


def test_what_is_there_in_any_form_is_not_fetched(tmp_path: Path) -> None:
    with serving({f"/{NAMES[3]}": whole(PACKED[NAMES[3]])}) as server:
        toys.write(tmp_path, dict(list(CONTENTS.items())[:2]))
        toys.write(tmp_path / "toy", {NAMES[2]: PACKED[NAMES[2]]})
        fetched = fetch(toys.idx_set(CONTENTS, at=server.address), tmp_path, silent)
        assert fetched.downloaded == (tmp_path / "toy" / NAMES[3],)


def test_a_damaged_download_is_fetched_again(tmp_path: Path) -> None:
    with serving({f"/{name}": whole(content) for name, content in PACKED.items()}) as server:
        toys.write(tmp_path / "toy", {**PACKED, NAMES[0]: b"damaged"})
        fetched = fetch(toys.idx_set(CONTENTS, at=server.address), tmp_path, silent)
        assert fetched.downloaded == (tmp_path / "toy" / NAMES[0],)
        assert (tmp_path / "toy" / NAMES[0]).read_bytes() == PACKED[NAMES[0]]


def test_a_damaged_file_of_the_users_own_is_left_alone(tmp_path: Path) -> None:
    with serving({f"/{name}": whole(content) for name, content in PACKED.items()}) as server:
        toys.write(tmp_path, {**CONTENTS, toys.IDX_NAMES[0]: b"mine"})
        said = f"{tmp_path / toys.IDX_NAMES[0]} is damaged: .*; remove it and run the same command again"
        with pytest.raises(DataError, match=said):
            fetch(toys.idx_set(CONTENTS, at=server.address), tmp_path, silent)
        assert (tmp_path / toys.IDX_NAMES[0]).read_bytes() == b"mine" and server.requests == []


def test_what_arrived_before_an_error_stays(tmp_path: Path) -> None:
    behaviours = {f"/{name}": whole(content) for name, content in PACKED.items()}
    with serving({**behaviours, f"/{NAMES[2]}": fixed(404)}) as server:
        data = toys.idx_set(CONTENTS, at=server.address)
        with pytest.raises(DataError, match=f"{server.address}/{NAMES[2]} answered 404 Not Found"):
            fetch(data, tmp_path, silent)
        assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == sorted(NAMES[:2])
        server.behaviours.update(behaviours)
        assert [path.name for path in fetch(data, tmp_path, silent).downloaded] == NAMES[2:]


def test_offline_there_is_one_message_with_all_that_is_needed(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        data = toys.idx_set(CONTENTS, at=f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(MissingDataError) as raised:
            fetch(data, tmp_path, silent, CALM)
    first, *rest = str(raised.value).splitlines()
    assert first.startswith(f"cannot reach {data.files[0].address}: ")
    assert "\n".join(rest) == data.by_hand(tmp_path, list(data.files), "Run the same command to try again, or put")
    assert all(f"{file.name}  {file.size:,} bytes  md5 {file.checksum[4:]}" in str(raised.value) for file in data.files)


def test_speech_is_fetched_as_an_archive(tmp_path: Path) -> None:
    archive = toys.tar(toys.speech_contents(), ".")
    with serving({"/spoken.tar.gz": whole(archive)}) as server:
        data = toys.speech_set(archive, server.address)
        assert fetch(data, tmp_path, silent).folder == tmp_path / "spoken_archive"
        folder = open_speech(data, tmp_path)
        assert (folder / "no/b_nohash_0.wav").read_bytes() == toys.speech_contents()["no/b_nohash_0.wav"]
        toys.write(tmp_path / "spoken", toys.speech_contents())
        assert fetch(data, tmp_path, silent).folder == tmp_path / "spoken"
        assert len(server.requests) == 1


def test_a_set_without_an_address_says_what_to_do(tmp_path: Path) -> None:
    data = toys.manifest_set(toys.manifest_contents())
    with pytest.raises(
        MissingDataError, match=f"few was not found in {tmp_path}.\nPut the folder few .* into {tmp_path}"
    ):
        fetch(data, tmp_path, silent)


def test_verify_checks_every_copy(tmp_path: Path) -> None:
    data = toys.idx_set(CONTENTS)
    toys.write(tmp_path / "toy", PACKED)
    toys.write(tmp_path, {**CONTENTS, toys.IDX_NAMES[1]: b"damaged"})
    results = {checked.path: checked.damage for checked in data.verify(tmp_path)}
    assert set(results) == {tmp_path / "toy" / name for name in PACKED} | {tmp_path / name for name in CONTENTS}
    wrong = tmp_path / toys.IDX_NAMES[1]
    assert {path for path, damage in results.items() if damage is not None} == {wrong}
    assert (results[wrong] or "").startswith(f"{wrong} is damaged: 7 bytes, expected 14")


def test_verify_of_folders_and_of_nothing(tmp_path: Path) -> None:
    contents = toys.manifest_contents()
    data = toys.manifest_set(contents)
    assert list(data.verify(tmp_path)) == [] and data.where(tmp_path) is None
    folder = toys.write(tmp_path / "few", contents)
    assert [(checked.path, checked.damage) for checked in data.verify(tmp_path)] == [(folder, None)]
    assert data.where(tmp_path) == folder
    (folder / "no/a_nohash_0.wav").write_bytes(b"")
    (checked,) = data.verify(tmp_path)
    assert (checked.damage or "").startswith(f"{folder}/no/a_nohash_0.wav is damaged: checksum mismatch, sha256 ")
