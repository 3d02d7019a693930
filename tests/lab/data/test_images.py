"""Images from generated files: every form in which they may lie, and every way in which they may be wrong."""

from __future__ import annotations

import dataclasses
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from gatedrnn.lab.data import SETS, DataError, ImageSet, MissingDataError, image_sets, images
from gatedrnn.lab.data.image_formats import ImageData
from gatedrnn.lab.data.image_sets import open_images
from tests.lab.data import toys


def prepared(cache: Path) -> Path:
    (path,) = (cache / "prepared").iterdir()
    return path


def equal_to_idx_arrays(found: ImageSet) -> bool:
    arrays = [torch.from_numpy(values) for values in toys.idx_arrays().values()]
    tensors = [found.train_images, found.train_labels, found.test_images, found.test_labels]
    return all(torch.equal(a, b) for a, b in zip(tensors, arrays, strict=True))


CONTENTS = toys.idx_contents()
IDX_FORMS = {
    "packed": {"toy": toys.packed(CONTENTS)},
    "unpacked": {"toy": CONTENTS},
    "directly in the folder": {".": CONTENTS},
    "some packed, some not": {
        ".": dict(list(CONTENTS.items())[:2]),
        "toy": dict(list(toys.packed(CONTENTS).items())[2:]),
    },
}


@pytest.mark.parametrize("form", IDX_FORMS)
def test_idx_files_in_every_form(form: str, tmp_path: Path) -> None:
    for folder, contents in IDX_FORMS[form].items():
        toys.write(tmp_path / folder, contents)
    found = open_images(toys.idx_set(CONTENTS), tmp_path)
    assert equal_to_idx_arrays(found)
    assert {tensor.dtype for tensor in vars(found).values()} == {torch.uint8}


@pytest.mark.parametrize("form", ["archive", "members", "members in a folder of their own"])
def test_cifar_files_in_every_form(form: str, tmp_path: Path) -> None:
    contents = toys.cifar_contents()
    data = toys.cifar_set(contents)
    if form == "archive":
        toys.write(tmp_path, {"toy.tar.gz": toys.tar(contents)})
    else:
        toys.write(tmp_path / ("." if form == "members" else "toyfar"), contents)
    found = open_images(data, tmp_path)
    labels, photos = zip(*toys.cifar_arrays().values(), strict=True)
    assert np.array_equal(found.train_images.numpy(), np.concatenate(photos[:2]))
    assert np.array_equal(found.train_labels.numpy(), np.concatenate(labels[:2]))
    assert np.array_equal(found.test_images.numpy(), photos[2]) and np.array_equal(found.test_labels.numpy(), labels[2])


def test_the_members_of_an_archive_may_come_in_any_order(tmp_path: Path) -> None:
    contents = toys.cifar_contents()
    archive = toys.tar(dict(reversed(contents.items())))
    toys.write(tmp_path, {"toy.tar.gz": archive})
    found = open_images(toys.cifar_set(contents, archive), tmp_path)
    assert np.array_equal(found.test_images.numpy(), toys.cifar_arrays()["test_batch.bin"][1])


def test_by_name_from_the_folder_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETS, "toy", toys.idx_set(CONTENTS))
    toys.write(tmp_path / "data" / "toy", CONTENTS)
    monkeypatch.delenv("GATEDRNN_DATA", raising=False)
    with pytest.raises(MissingDataError, match=str(tmp_path / "cache" / "data")):
        images("toy")
    assert equal_to_idx_arrays(images("toy", tmp_path / "data"))
    monkeypatch.setenv("GATEDRNN_DATA", str(tmp_path / "data"))
    assert equal_to_idx_arrays(images("toy"))


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DataError, match="unknown data set 'mnits'; known data sets: mnist, cifar10"):
        images("mnits")


def test_the_tensors_are_mapped_from_one_file_and_private(tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, CONTENTS)
    data = toys.idx_set(CONTENTS)
    found = open_images(data, tmp_path)
    with open("/proc/self/maps") as maps:
        assert str(prepared(cache)) in maps.read()
    before = prepared(cache).read_bytes()
    found.train_images.fill_(7)
    assert prepared(cache).read_bytes() == before
    assert equal_to_idx_arrays(open_images(data, tmp_path))


def test_a_second_opening_writes_nothing(tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, CONTENTS)
    open_images(toys.idx_set(CONTENTS), tmp_path)
    first = prepared(cache).stat()
    open_images(toys.idx_set(CONTENTS), tmp_path)
    assert (prepared(cache).stat().st_mtime_ns, prepared(cache).stat().st_ino) == (first.st_mtime_ns, first.st_ino)


@pytest.mark.parametrize("damage", ["flipped", "truncated", "longer", "empty"])
def test_a_damaged_prepared_file_is_made_again(damage: str, tmp_path: Path, cache: Path) -> None:
    toys.write(tmp_path, CONTENTS)
    open_images(toys.idx_set(CONTENTS), tmp_path)
    content = bytearray(prepared(cache).read_bytes())
    content[3] ^= 1
    changed = {
        "flipped": bytes(content),
        "truncated": bytes(content[:-1]),
        "longer": bytes(content) + b"x",
        "empty": b"",
    }
    prepared(cache).write_bytes(changed[damage])
    assert equal_to_idx_arrays(open_images(toys.idx_set(CONTENTS), tmp_path))


def test_another_set_of_the_same_name_does_not_find_the_prepared_file_of_the_first(tmp_path: Path) -> None:
    toys.write(tmp_path / "a", CONTENTS)
    open_images(toys.idx_set(CONTENTS), tmp_path / "a")
    other = {**CONTENTS, "t10k-labels-idx1-ubyte": toys.idx(np.array([1, 2, 3], np.uint8))}
    toys.write(tmp_path / "b", other)
    assert open_images(toys.idx_set(other), tmp_path / "b").test_labels.tolist() == [1, 2, 3]


def test_a_prepared_file_of_another_layout_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes, to be read otherwise: the shape is 2 × 3, then 3 × 2."""
    toys.write(tmp_path, CONTENTS)
    data = toys.idx_set(CONTENTS)
    open_images(data, tmp_path)
    with pytest.raises(DataError, match="train-images-idx3-ubyte holds 6 × 2 × 3 values, expected 6 × 3 × 2"):
        open_images(dataclasses.replace(data, shape=(3, 2)), tmp_path)
    made = []
    prepare = image_sets._prepare
    monkeypatch.setattr(image_sets, "_prepare", lambda *arguments: (made.append(1), prepare(*arguments)))
    monkeypatch.setattr(image_sets, "_LAYOUT", 2)
    assert equal_to_idx_arrays(open_images(data, tmp_path)) and made == [1]


def _flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGES = {
    "a flipped bit": _flip,
    "truncated": lambda content: content[:-1],
    "longer": lambda content: content + b"x",
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("prepared_before", [False, True])
@pytest.mark.parametrize("form", ["packed", "unpacked"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", toys.IDX_NAMES)
def test_a_damaged_file_is_an_error_that_names_it(
    name: str, damage: str, form: str, prepared_before: bool, tmp_path: Path, cache: Path
) -> None:
    contents = CONTENTS if form == "unpacked" else toys.packed(CONTENTS)
    wrong = name if form == "unpacked" else f"{name}.gz"
    folder = toys.write(tmp_path / "toy", contents)
    if prepared_before:
        open_images(toys.idx_set(CONTENTS), tmp_path)
    (folder / wrong).write_bytes(DAMAGES[damage](contents[wrong]))
    with pytest.raises(DataError, match=f"{folder / wrong} is damaged: ") as raised:
        open_images(toys.idx_set(CONTENTS), tmp_path)
    assert not isinstance(raised.value, MissingDataError)
    assert prepared_before or not cache.exists()


def test_swapped_files_are_an_error(tmp_path: Path) -> None:
    """Of one size, so that nothing but the checksum can tell."""
    contents = toys.cifar_contents()
    folder = toys.write(tmp_path / "toyfar", contents)
    (folder / "data_batch_1.bin").write_bytes(contents["data_batch_2.bin"])
    (folder / "data_batch_2.bin").write_bytes(contents["data_batch_1.bin"])
    with pytest.raises(
        DataError, match="data_batch_1.bin is damaged: checksum mismatch, md5 [0-9a-f]{32}, expected [0-9a-f]{32}"
    ):
        open_images(toys.cifar_set(contents), tmp_path)


def _wrong_inside() -> dict[str, tuple[ImageData, dict[str, bytes], str]]:
    """Files whose checksums are as declared and whose contents are not what a reader may believe."""
    arrays = toys.idx_arrays()
    labels, images_name = "train-labels-idx1-ubyte", "train-images-idx3-ubyte"
    high = arrays[labels].copy()
    high[4] = 10
    cifar = toys.cifar_contents()
    low = bytearray(cifar["test_batch.bin"])
    low[0] = 255
    cases = {
        "labels of another length": ({labels: toys.idx(arrays[labels][:5])}, f"{labels} holds 5 values, expected 6"),
        "a label beyond 9": ({labels: toys.idx(high)}, f"{labels}: label 4 is 10, expected 0 to 9"),
        "images of another size": (
            {images_name: toys.idx(arrays[images_name].reshape(6, 3, 2))},
            f"{images_name} holds 6 × 3 × 2 values, expected 6 × 2 × 3",
        ),
        "a header that promises more": (
            {labels: toys.idx(arrays[labels])[:-1]},
            f"{labels} ends after 13 bytes, expected 14",
        ),
        "images where labels should be": (
            {labels: toys.idx(arrays[images_name])},
            f"{labels} is not an idx file of bytes in 1 dimensions",
        ),
        "half a header": ({labels: b"\0\0\x08\x01\0"}, f"{labels} is not an idx file"),
        "a web page": ({labels: b"<!doctype html><html></html>"}, f"{labels} is not an idx file"),
    }
    wrong = {what: (toys.idx_set(CONTENTS | change), CONTENTS | change, said) for what, (change, said) in cases.items()}
    short = cifar | {"data_batch_2.bin": cifar["data_batch_2.bin"][:-61]}
    wrong["a record too few"] = (
        toys.cifar_set(short),
        short,
        "data_batch_2.bin has 61 bytes, expected 2 records of 61",
    )
    beyond = cifar | {"test_batch.bin": bytes(low)}
    wrong["a label of 255"] = (toys.cifar_set(beyond), beyond, "test_batch.bin: label 0 is 255, expected 0 to 9")
    return wrong


WRONG_INSIDE = _wrong_inside()


@pytest.mark.parametrize("what", WRONG_INSIDE)
def test_files_that_are_wrong_inside(what: str, tmp_path: Path, cache: Path) -> None:
    data, contents, said = WRONG_INSIDE[what]
    toys.write(tmp_path, contents)
    with pytest.raises(DataError, match=said):
        open_images(data, tmp_path)
    assert list((cache / "prepared").iterdir()) == []


def test_a_missing_set_is_told_in_one_message(tmp_path: Path) -> None:
    data = toys.idx_set(CONTENTS, at="https://example.org/digits")
    with pytest.raises(MissingDataError) as raised:
        open_images(data, tmp_path)
    text = str(raised.value)
    assert text.splitlines()[:2] == [
        f"toy was not found in {tmp_path}. To download it: gatedrnn data fetch toy --data {tmp_path}",
        f"Or put these files into {tmp_path / 'toy'} (licence: free):",
    ]
    for file in data.files:
        algorithm, _, digest = file.checksum.partition(":")
        assert (
            f"  {file.name}  {file.size:,} bytes  {algorithm} {digest}  https://example.org/digits/{file.name}\n"
            in text
        )


def test_the_message_names_only_what_is_missing(tmp_path: Path) -> None:
    toys.write(tmp_path, dict(list(CONTENTS.items())[:3]))
    with pytest.raises(MissingDataError) as raised:
        open_images(toys.idx_set(CONTENTS), tmp_path)
    assert "t10k-labels" in str(raised.value) and "t10k-images" not in str(raised.value)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    toys.write(tmp_path, CONTENTS)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    (tmp_path / "t10k-labels-idx1-ubyte").mkdir()
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte is not a file"):
        open_images(toys.idx_set(CONTENTS), tmp_path)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.write(tmp_path, CONTENTS)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, os.strerror(28))))
    with pytest.raises(DataError, match=f"cannot write {cache}/prepared/toy-[0-9a-f]+.images: No space left on device"):
        open_images(toys.idx_set(CONTENTS), tmp_path)
    assert list((cache / "prepared").iterdir()) == []


def test_what_a_killed_process_left_is_written_over(tmp_path: Path, cache: Path) -> None:
    data = toys.idx_set(CONTENTS)
    toys.write(tmp_path, CONTENTS)
    toys.write(cache / "prepared", {f".{data.key}.images.tmp": b"half" * 1000})
    assert equal_to_idx_arrays(open_images(data, tmp_path))
    assert [path.name for path in (cache / "prepared").iterdir()] == [f"{data.key}.images"]


def test_several_at_once_make_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who come while one prepares it wait, and find it."""
    toys.write(tmp_path, CONTENTS)
    made = []
    prepare = image_sets._prepare

    def slow(data: ImageData, *others: object) -> None:
        made.append(data)
        time.sleep(0.2)
        prepare(data, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(image_sets, "_prepare", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: open_images(toys.idx_set(CONTENTS), tmp_path), range(8)))
    assert all(equal_to_idx_arrays(one) for one in found) and len(made) == 1
