"""Downloads from a server on this machine that breaks off, truncates, stalls, redirects and lies."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import socket
from pathlib import Path

import pytest

from gatedrnn.lab.data.download import Patience, download
from gatedrnn.lab.data.errors import DataError
from gatedrnn.lab.data.files import File
from gatedrnn.lab.data.web import DownloadError, UnreachableError
from tests.lab.data import toys
from tests.lab.data.server import Behaviour, Server, fixed, in_turn, serving, silent, stalling, trickling, whole

CONTENT = random.Random(0).randbytes(300_000)
HALF = 150_000
NAME = "toy.bin"
CALM = Patience(stall=20.0, failures=3, pause=0.01)
HASTY = Patience(stall=0.5, failures=3, pause=0.01)  # where a server stalls


@pytest.fixture(autouse=True)
def directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past any proxy of the machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


class Fetching:
    """A download of CONTENT, or what pretends to be it, into a folder."""

    def __init__(self, server: Server, folder: Path, patience: Patience = CALM) -> None:
        self.server, self.path, self.patience = server, folder / NAME, patience
        self.part = folder / f"{NAME}.part"
        self.file: File = toys.file(NAME, CONTENT, "sha256", at=server.address)
        self.progress: list[tuple[str, int, int]] = []

    def __call__(self) -> None:
        download(self.file, self.path, lambda *news: self.progress.append(news), self.patience)

    def arrived(self) -> bool:
        return self.path.read_bytes() == CONTENT and sorted(os.listdir(self.path.parent)) == [NAME]

    @property
    def ranges(self) -> list[str | None]:
        return [asked for path, asked in self.server.requests if path == f"/{NAME}"]


def good() -> dict[str, tuple[Behaviour, list[str | None]]]:
    """Behaviours, new ones at each call, and the ranges that are asked for."""
    return {
        "at once": (whole(CONTENT), [None]),
        "without Content-Length": (fixed(200, CONTENT), [None]),
        "breaking off in the middle": (in_turn(whole(CONTENT, at_most=HALF), whole(CONTENT)), [None, f"bytes={HALF}-"]),
        "breaking off again and again": (
            whole(CONTENT, at_most=70_000),
            [None, "bytes=70000-", "bytes=140000-", "bytes=210000-", "bytes=280000-"],
        ),
        "breaking off, and no ranges": (
            in_turn(whole(CONTENT, at_most=HALF), whole(CONTENT, ranges=False)),
            [None, f"bytes={HALF}-"],
        ),
        "stalling once": (in_turn(stalling(CONTENT, HALF), whole(CONTENT)), [None, f"bytes={HALF}-"]),
        "no answer at first": (in_turn(silent, whole(CONTENT)), [None, None]),
        "hanging up at first": (in_turn(lambda handler: None, whole(CONTENT)), [None, None]),
        "busy at first": (in_turn(fixed(503), fixed(429), whole(CONTENT)), [None, None, None]),
        "refusing the range": (
            in_turn(whole(CONTENT, at_most=HALF), fixed(416), whole(CONTENT)),
            [None, f"bytes={HALF}-", None],
        ),
        "giving another range": (
            in_turn(
                whole(CONTENT, at_most=HALF),
                fixed(206, CONTENT[7:], Content_Range="bytes 7-299999/300000"),
                whole(CONTENT),
            ),
            [None, f"bytes={HALF}-", None],
        ),
        "giving a range of another file": (
            in_turn(
                whole(CONTENT, at_most=HALF),
                fixed(206, b"x", Content_Range=f"bytes {HALF}-{HALF}/{HALF + 1}"),
                whole(CONTENT),
            ),
            [None, f"bytes={HALF}-", None],
        ),
    }


@pytest.mark.parametrize("what", good())
def test_a_server_that_gives_the_file_in_the_end(what: str, tmp_path: Path) -> None:
    behaviour, ranges = good()[what]
    patience = HASTY if what in ("stalling once", "no answer at first") else CALM
    with serving({f"/{NAME}": behaviour}) as server:
        fetch = Fetching(server, tmp_path / "made" / "here", patience)
        fetch()
        assert fetch.arrived() and fetch.ranges == ranges
        assert fetch.progress[-1] == (NAME, len(CONTENT), len(CONTENT))


LONGER = CONTENT + b"x"
OTHER = random.Random(1).randbytes(len(CONTENT))
BAD = {
    "another file of the same size": (fixed(200, OTHER), "is not the published file: .*checksum mismatch, sha256 "),
    "a flipped bit": (whole(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])), "is not the published file"),
    "a shorter file": (whole(CONTENT[:-1]), "has 299,999 bytes, expected 300,000"),
    "a longer file": (whole(LONGER), "has 300,001 bytes, expected 300,000"),
    "a longer file that does not say so": (fixed(200, LONGER), "sent more than the 300,000 bytes expected"),
    "an empty file": (fixed(200, Content_Length="0"), "has 0 bytes, expected 300,000"),
    "a web page": (
        fixed(200, b"<html>log in</html>", Content_Type="text/html; charset=utf-8"),
        "returned a web page instead of toy.bin",
    ),
    "a web page that calls itself a file": (fixed(200, b"<html>log in</html>", Content_Length="19"), "has 19 bytes"),
    "not found": (fixed(404, b"<html>"), "answered 404 Not Found"),
    "forbidden": (fixed(403), "answered 403 Forbidden"),
    "no content": (fixed(204), "answered 204 No Content"),
    "a part that nobody asked for": (fixed(206, CONTENT), "answered 206 Partial Content"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_server_that_gives_something_else(what: str, tmp_path: Path) -> None:
    """One request, an error that names the address, and nothing left behind."""
    behaviour, said = BAD[what]
    with serving({f"/{NAME}": behaviour}) as server:
        fetch = Fetching(server, tmp_path)
        with pytest.raises(DownloadError, match=f"^{server.address}/{NAME} {said}"):
            fetch()
        assert os.listdir(tmp_path) == [] and len(server.requests) == 1


BROKEN = {
    "breaking off at the same place": (
        whole(CONTENT, ranges=False, at_most=HALF),
        f"connection closed after {HALF:,} of 300,000 bytes",
        HALF,
    ),
    "promising and giving less": (
        fixed(200, CONTENT[:10], Content_Length="300000"),
        "connection closed after 10 of 300,000 bytes",
        10,
    ),
    "stalling": (stalling(CONTENT, HALF), "no data for 0.5 s", HALF),
    "trickling": (trickling(CONTENT, 0.05), "only [0-9]+ bytes in 0.5 s", None),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_server_that_never_gives_it_all(what: str, tmp_path: Path) -> None:
    """A bounded number of attempts, and what arrived is kept under another name than the file's."""
    behaviour, said, kept = BROKEN[what]
    with serving({f"/{NAME}": behaviour}) as server:
        fetch = Fetching(server, tmp_path, HASTY if what in ("stalling", "trickling") else CALM)
        with pytest.raises(
            DownloadError,
            match=f"^download of {server.address}/{NAME} failed: {said}; [0-9,]+ of 300,000 bytes kept, run the same command to resume$",
        ):
            fetch()
        assert os.listdir(tmp_path) == [fetch.part.name]
        assert kept is None or fetch.part.read_bytes() == CONTENT[:kept]
        assert len(server.requests) <= HASTY.failures + 1

        server.behaviours[f"/{NAME}"] = whole(CONTENT)
        size = fetch.part.stat().st_size
        fetch()
        assert fetch.arrived() and fetch.ranges[-1] == f"bytes={size}-"


@pytest.mark.parametrize("behaviour", [silent, fixed(503), lambda handler: None], ids=["silent", "busy", "hanging up"])
def test_a_server_that_gives_nothing(behaviour: Behaviour, tmp_path: Path) -> None:
    with serving({f"/{NAME}": behaviour}) as server:
        with pytest.raises(DownloadError, match="failed: "):
            Fetching(server, tmp_path, HASTY)()
        assert os.listdir(tmp_path) == [] and len(server.requests) == HASTY.failures


def test_redirects_are_followed_with_the_range(tmp_path: Path) -> None:
    hops: dict[str, Behaviour] = {
        f"/{NAME}": fixed(301, Location="/second"),
        "/second": fixed(307, Location="/third"),
        "/third": in_turn(whole(CONTENT, at_most=HALF), whole(CONTENT)),
    }
    with serving(hops) as server:
        fetch = Fetching(server, tmp_path)
        fetch()
        assert fetch.arrived()
        assert [asked for path, asked in server.requests if path == "/third"] == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (f"/{NAME}", "redirects in a loop"),
        ("/other", "redirects in a loop"),
        (
            "ftp://127.0.0.1/toy.bin",
            "redirects to ftp://127.0.0.1/toy.bin: refused, the connection would not be secure",
        ),
        (
            "file:///etc/passwd",
            "redirects in a loop|redirects to file:///etc/passwd: refused, the connection would not be secure",
        ),
    ],
)
def test_redirects_that_lead_nowhere(location: str, said: str, tmp_path: Path) -> None:
    with serving({f"/{NAME}": fixed(302, Location=location), "/other": fixed(302, Location=f"/{NAME}")}) as server:
        with pytest.raises(DownloadError, match=said):
            Fetching(server, tmp_path)()
        assert os.listdir(tmp_path) == [] and len(server.requests) < 12


def test_a_redirect_from_a_safe_connection_to_an_unsafe_one_is_refused() -> None:
    import urllib.request

    from gatedrnn.lab.data.web import _Redirects

    request = urllib.request.Request("https://example.org/toy.bin")
    with pytest.raises(
        DownloadError,
        match="https://example.org/toy.bin redirects to http://example.org/toy.bin: refused, the connection would not be secure",
    ):
        _Redirects().redirect_request(request, None, 302, "", {}, "http://example.org/toy.bin")  # type: ignore[arg-type]
    assert _Redirects().redirect_request(request, None, 302, "", {}, "https://example.org/b") is not None  # type: ignore[arg-type]


def test_the_rest_of_another_file_is_thrown_away(tmp_path: Path) -> None:
    """What an earlier attempt left may be of another version; the checksum tells, and it begins again."""
    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        fetch.part.write_bytes(OTHER[:HALF])
        fetch()
        assert fetch.arrived() and fetch.ranges == [f"bytes={HALF}-", None]


@pytest.mark.parametrize("left", [OTHER, LONGER], ids=["as long", "longer"])
def test_a_wrong_partial_file_is_thrown_away(left: bytes, tmp_path: Path) -> None:
    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        fetch.part.write_bytes(left)
        fetch()
        assert fetch.arrived() and fetch.ranges == [None]


def test_a_partial_file_that_is_whole_needs_no_network(tmp_path: Path) -> None:
    with serving({}) as server:
        fetch = Fetching(server, tmp_path)
        fetch.part.write_bytes(CONTENT)
        fetch()
        assert fetch.arrived() and server.requests == []


def test_a_damaged_file_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    with serving({f"/{NAME}": fixed(200, OTHER)}) as server:
        fetch = Fetching(server, tmp_path)
        fetch.path.write_bytes(b"damaged")
        with pytest.raises(DownloadError):
            fetch()
        assert fetch.path.read_bytes() == b"damaged"
        server.behaviours[f"/{NAME}"] = whole(CONTENT)
        fetch()
        assert fetch.arrived()


def test_two_downloads_at_once(tmp_path: Path) -> None:
    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        with open(fetch.part, "wb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(DataError, match=f"{fetch.part} is in use: another process is downloading it"):
                fetch()
        assert server.requests == []
        fetch()
        assert fetch.arrived()


def test_an_address_that_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # not listening: connections are refused
        file = toys.file(NAME, CONTENT, at=f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(UnreachableError, match=f"^cannot reach {file.address}: .*refused"):
            download(file, tmp_path / NAME, lambda *news: None, CALM)
    assert os.listdir(tmp_path) == []


def test_no_address(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="toy.bin has no address to download from"):
        download(toys.file(NAME, CONTENT), tmp_path / NAME, lambda *news: None, CALM)


def test_too_little_space_is_said_before_anything_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=1000))
    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        with pytest.raises(DataError, match=f"cannot write {fetch.part}: 300,000 bytes are needed, 1,000 are free"):
            fetch()
        assert server.requests == [] and os.listdir(tmp_path) == []


def test_progress_counts_what_is_on_the_disk(tmp_path: Path) -> None:
    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        fetch.part.write_bytes(CONTENT[:HALF])
        fetch()
    counts = [done for _, done, _ in fetch.progress]
    assert counts == sorted(counts) and counts[0] > HALF and {total for *_, total in fetch.progress} == {len(CONTENT)}


def test_an_interrupted_download_is_resumed(tmp_path: Path) -> None:
    def interrupted(name: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with serving({f"/{NAME}": whole(CONTENT)}) as server:
        fetch = Fetching(server, tmp_path)
        with pytest.raises(KeyboardInterrupt):
            download(fetch.file, fetch.path, interrupted, CALM)
        kept = fetch.part.stat().st_size
        assert kept > 0 and not fetch.path.exists()
        fetch()
        assert fetch.arrived()
        assert kept == len(CONTENT) or fetch.ranges[1] == f"bytes={kept}-"
