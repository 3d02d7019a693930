"""The folder of a report: whose it is, and what happens to what was there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatedrnn.lab.report import folder


def names(out: Path) -> set[str]:
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def test_written_and_written_again(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    folder.check(out)
    assert not out.exists()  # a check leaves nothing behind
    folder.write_report(out, {"figures/old.png": b"1", "index.html": b"2"})
    folder.check(out)
    folder.write_report(out, {"figures/new.png": b"3", "index.html": b"4"})
    assert names(out) == {"report.json", "figures/new.png", "index.html"}
    assert (out / "index.html").read_bytes() == b"4"
    assert json.loads((out / "report.json").read_text())["files"] == ["figures/new.png", "index.html", "report.json"]


@pytest.mark.parametrize("name", ["mine.txt", "figures/mine.png", "report.json", ".hidden", ".mine.tmp"])
def test_a_strangers_file_is_refused(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if name != "report.json":
        folder.write_report(out, {"index.html": b"2"})
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text('{"kind": "mine", "files": ["report.json"]}')
    with pytest.raises(FileExistsError, match="which is not part of a report"):
        folder.check(out)
    assert (out / name).read_text().startswith('{"kind": "mine"')


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder.write_report(out, {"index.html": b"2"})
    (tmp_path / "elsewhere").mkdir()
    (out / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError, match="figures"):
        folder.check(out)


def test_a_manifest_that_leads_out_is_not_believed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    listed = ["../victim", str(victim), "report.json"]
    (out / "report.json").write_text(json.dumps({"schema": 1, "kind": "gatedrnn report", "files": listed}))
    folder.write_report(out, {"index.html": b"2"})
    assert victim.read_text() == "mine"


def test_the_remains_of_an_interrupted_report_are_no_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def full(path: Path, content: bytes) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "write", full)
        with pytest.raises(OSError, match="no space"):
            folder.write_report(out, {"index.html": b"2"})
    (out / ".index.html.1234.tmp").write_bytes(b"half")
    (out / ".report.json.77.tmp").write_bytes(b"half")
    folder.check(out)
    folder.write_report(out, {"index.html": b"2"})
    assert (out / "index.html").read_bytes() == b"2"
