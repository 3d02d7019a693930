"""The data sets by name, as they were published."""

from __future__ import annotations

from typing import TypeVar

from gatedrnn.lab.data.declared import DataSet, File
from gatedrnn.lab.data.errors import DataError
from gatedrnn.lab.data.image_formats import CifarBinary, Idx, ImageData

_Kind = TypeVar("_Kind", bound=DataSet)
_MNIST_AT = "https://ossci-datasets.s3.amazonaws.com/mnist"


def _mnist_file(name: str, size: int, md5: str, unpacked_size: int, unpacked_md5: str) -> File:
    unpacked = File(name, unpacked_size, f"md5:{unpacked_md5}", aliases=(name.replace("-idx", ".idx"),))
    return File(f"{name}.gz", size, f"md5:{md5}", f"{_MNIST_AT}/{name}.gz", members=(unpacked,))


MNIST = ImageData(
    name="mnist",
    title="handwritten digits, 60,000 + 10,000 images of 28 × 28",
    licence="CC BY-SA 3.0",
    folders=("mnist", "MNIST/raw", "."),
    files=(
        _mnist_file(
            "train-images-idx3-ubyte",
            9_912_422,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            47_040_016,
            "6bbc9ace898e44ae57da46a324031adb",
        ),
        _mnist_file(
            "train-labels-idx1-ubyte",
            28_881,
            "d53e105ee54ea40749a09fcbcd1e9432",
            60_008,
            "a25bea736e30d166cdddb491f175f624",
        ),
        _mnist_file(
            "t10k-images-idx3-ubyte",
            1_648_877,
            "9fb629c4189551a2d022fa330f9573f3",
            7_840_016,
            "2646ac647ad5339dbf082846283269ea",
        ),
        _mnist_file(
            "t10k-labels-idx1-ubyte",
            4_542,
            "ec29112dd5afa0611ce80d1b7f02629c",
            10_008,
            "27ae3e4e09519cfbb04c329615203637",
        ),
    ),
    train=60_000,
    test=10_000,
    shape=(28, 28),
    format=Idx(),
)

CIFAR10 = ImageData(
    name="cifar10",
    title="small colour photographs of ten kinds of things, 50,000 + 10,000 images of 32 × 32",
    licence="none stated; cite Krizhevsky 2009",
    folders=("cifar10", "cifar10/cifar-10-batches-bin", "cifar-10-batches-bin", "."),
    files=(
        File(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            members=tuple(
                File(name, 30_730_000, f"md5:{md5}")
                for name, md5 in (
                    ("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"),
                    ("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"),
                    ("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"),
                    ("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"),
                    ("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"),
                    ("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"),
                )
            ),
        ),
    ),
    train=50_000,
    test=10_000,
    shape=(32, 32, 3),
    format=CifarBinary(),
)

#: The data sets by name.
SETS: dict[str, DataSet] = {data.name: data for data in (MNIST, CIFAR10)}


def known(name: str, kind: type[_Kind]) -> _Kind:
    """The set of this name, if it is one of this kind. Raises DataError with the names that are."""
    data = SETS.get(name)
    if not isinstance(data, kind):
        names = ", ".join(known for known, other in SETS.items() if isinstance(other, kind))
        raise DataError(f"no such data set: {name!r}; known are {names}")
    return data
