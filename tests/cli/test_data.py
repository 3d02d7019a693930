"""``gatedrnn data``: what it prints, its exit codes, and that it can be interrupted."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tests.lab.data import toys
from tests.lab.data.server import Server, fixed, serving, whole

from gatedrnn import cli
from gatedrnn.cli.data import shown
from gatedrnn.lab.data import SETS

CONTENTS = toys.idx_contents()
PACKED = toys.packed(CONTENTS)
NAMES = list(PACKED)


@pytest.fixture(autouse=True)
def _sets_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In their order, which messages show."""
    known = dict(SETS)
    yield
    monkeypatch.undo()  # it would put sets back after this
    SETS.clear()
    SETS.update(known)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Gives the files of the set "toy", which is the only one there is beside the small set of speech."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving({f"/{name}": whole(content) for name, content in PACKED.items()}) as server:
        small = SETS["speech_commands_10_small"]
        SETS.clear()
        SETS.update({small.name: small, "toy": toys.idx_set(CONTENTS, at=server.address)})
        yield server


def run(*arguments: object) -> int:
    return cli.main(["data", *map(str, arguments)])


def test_list_names_every_set_with_its_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("GATEDRNN_DATA", str(tmp_path))
    assert run("list") == 0
    printed = capsys.readouterr().out
    for data in SETS.values():
        (line,) = [line for line in printed.splitlines() if line.startswith(f"{data.name} ")]
        assert data.title in line and data.licence in line and line.rstrip().endswith("–")
    assert "170.1 MB" in printed and printed.endswith(f"data folder: {tmp_path}\n")
    assert not list(tmp_path.iterdir())


def test_list_says_where_a_set_is_and_what_is_missing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    toys.write(tmp_path / "toy", dict(list(PACKED.items())[:3]))
    assert run("list", "--data", tmp_path) == 0
    assert f"incomplete: {NAMES[3]} missing" in capsys.readouterr().out
    toys.write(tmp_path / "toy", PACKED)
    assert run("list", "--data", tmp_path) == 0
    assert str(tmp_path / "toy") in capsys.readouterr().out


def test_list_shows_a_folder_as_it_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    toys.write(tmp_path / "[red]" / "toy", PACKED)
    assert run("list", "--data", tmp_path / "[red]") == 0
    assert f" {tmp_path / '[red]' / 'toy'}" in capsys.readouterr().out


def test_fetch_draws_no_bars_into_a_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run("fetch", "toy", "--data", tmp_path) == 0
    assert "\x1b" not in capsys.readouterr().err


def test_fetch_downloads_and_says_so(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fetch", "toy", "--data", tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.out == f"toy: 4 files downloaded and verified in {tmp_path / 'toy'} (licence: free)\n"
    assert [line.split(":")[0] for line in printed.err.splitlines()] == NAMES
    assert {path.name: path.read_bytes() for path in (tmp_path / "toy").iterdir()} == PACKED

    assert run("fetch", "toy", "--data", tmp_path) == 0
    printed = capsys.readouterr()
    assert printed.out == f"toy: present and verified in {tmp_path / 'toy'} (licence: free)\n" and printed.err == ""
    assert len(server.requests) == 4


def test_fetch_of_an_unknown_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fetch", "mnits", "--data", tmp_path) == 2
    assert capsys.readouterr().err == f"gatedrnn: NAME must be one of {', '.join(SETS)}, got 'mnits'\n"
    assert run("verify", "mnits", "--data", tmp_path) == 2


def test_fetch_that_fails_ends_in_one_line(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.behaviours[f"/{NAMES[0]}"] = fixed(404)
    assert run("fetch", "toy", "--data", tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.err == f"gatedrnn: {server.address}/{NAMES[0]} answered 404 Not Found\n" and printed.out == ""


def test_fetch_offline_gives_one_message(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # not listening: connections are refused
        data = toys.idx_set(CONTENTS, at=f"http://127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setitem(SETS, "toy", data)
        assert run("fetch", "toy", "--data", tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"gatedrnn: cannot reach {data.files[0].address}: ")
    by_hand = f"\nRun the same command to try again, or put these files into {tmp_path / 'toy'} (licence: free):\n"
    assert by_hand in printed.err and "gatedrnn data fetch" not in printed.err


def test_fetch_into_a_file_ends_in_one_line(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    assert run("fetch", "toy", "--data", tmp_path / "file") == 1
    printed = capsys.readouterr().err
    assert printed == f"gatedrnn: cannot write {tmp_path}/file/toy/{NAMES[0]}.part: Not a directory\n"
    assert (tmp_path / "file").read_text() == "mine"


def test_verify_checks_everything_there_is(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "--data", tmp_path) == 0
    assert capsys.readouterr().out == f"no data sets in {tmp_path}\n"
    folder = toys.write(tmp_path / "toy", PACKED)
    assert run("verify", "--data", tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [f"toy: {folder / name} ok" for name in NAMES] + [
        "4 checked, none damaged"
    ]
    assert run("verify", "toy", "--data", tmp_path) == 0
    capsys.readouterr()

    (folder / NAMES[1]).write_bytes(b"damaged")
    for arguments in ([], ["toy"]):
        assert run("verify", *arguments, "--data", tmp_path) == 1
        printed = capsys.readouterr()
        assert f"toy: {folder / NAMES[1]} is damaged: 7 bytes, expected {len(PACKED[NAMES[1]])}\n" in printed.out
        assert printed.err == "gatedrnn: 1 of 4 damaged or missing\n"


def test_verify_tells_what_is_missing(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "toy", "--data", tmp_path) == 1
    printed = capsys.readouterr()
    command = f"gatedrnn data fetch toy --data {tmp_path}"
    assert printed.out.startswith(f"toy was not found in {tmp_path}. To download it: {command}\n")
    assert printed.err == "gatedrnn: 1 of 1 damaged or missing\n"
    toys.write(tmp_path, dict(list(CONTENTS.items())[:3]))
    assert run("verify", "--data", tmp_path) == 1
    printed = capsys.readouterr()
    assert f"toy is incomplete in {tmp_path}. To download the rest: {command}\n" in printed.out
    assert f"  {NAMES[3]}  {len(PACKED[NAMES[3]])} bytes  md5 " in printed.out
    assert printed.err == "gatedrnn: 1 of 4 damaged or missing\n"


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    with shown(Console(file=stream, force_terminal=True, width=120)) as progress:
        progress("toy.gz", 1_000_000, 4_000_000)
        progress("toy.gz", 4_000_000, 4_000_000)
    assert "toy.gz" in stream.getvalue() and "4.0/4.0 MB" in stream.getvalue()


def test_progress_elsewhere_is_a_few_lines() -> None:
    stream = io.StringIO()
    with shown(Console(file=stream, width=20)) as progress:
        for done in range(0, 4_000_001, 10_000):
            progress("toy.gz", done, 4_000_000)
    assert stream.getvalue() == "toy.gz: 0.0 MB of 4.0 MB\ntoy.gz: 4.0 MB of 4.0 MB\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fetch_is_resumed_by_the_same_command(how: signal.Signals, tmp_path: Path) -> None:
    """A process that is stopped in the middle leaves nothing under the file's name; the next one asks for the rest."""
    content = bytes(range(256)) * 4000
    half = len(content) // 2

    with serving({}) as server:
        file = toys.file("big.bin", content, at=server.address)

        def give_half_and_stop_the_client(handler: object) -> None:
            handler.answer(200, {"Content-Length": str(len(content))}, content[:half])  # type: ignore[attr-defined]
            part = tmp_path / "words" / "big.bin.part"
            while not (part.exists() and part.stat().st_size == half) and not server.over.wait(0.01):
                pass
            client.send_signal(how)
            server.over.wait(20)

        server.behaviours["/big.bin"] = give_half_and_stop_the_client
        code = (
            "import sys\n"
            "from gatedrnn.cli import main\n"
            "from gatedrnn.lab.data import SETS\n"
            "from gatedrnn.lab.data.files import File\n"
            "from gatedrnn.lab.data.text import TextData\n"
            f"file = {file!r}\n"
            "SETS['words'] = TextData(name='words', title='', licence='free', folders=('words',), files=(file,),\n"
            "                         tokens=(1, 1, 1), vocabulary=1)\n"
            f"sys.exit(main(['data', 'fetch', 'words', '--data', {str(tmp_path)!r}]))\n"
        )
        command = [sys.executable, "-c", code]
        client = subprocess.Popen(command, stderr=subprocess.PIPE, env=_environment())
        _, said = client.communicate(timeout=60)
        assert client.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
        assert [path.name for path in (tmp_path / "words").iterdir()] == ["big.bin.part"]
        if how == signal.SIGINT:
            assert said.decode().endswith("run the same command to resume\ninterrupted\n") and b"Traceback" not in said

        server.behaviours["/big.bin"] = whole(content)
        subprocess.run(command, check=True, timeout=60, env=_environment(), capture_output=True)
        assert server.requests[-1] == ("/big.bin", f"bytes={half}-")
    assert {path.name: path.read_bytes() for path in (tmp_path / "words").iterdir()} == {"big.bin": content}


def _environment() -> dict[str, str]:
    return {**os.environ, "no_proxy": "127.0.0.1"}
