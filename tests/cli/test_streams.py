"""What is printed where the encoding lacks letters, where nobody reads on, and where nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gatedrnn.cli.streams import encodable, in_plain_letters

RUN = [sys.executable, "-m", "gatedrnn.cli"]
# Several commands in one process: it takes seconds to import torch.
SEVERAL = """
import json, sys
from gatedrnn.cli import main
codes = []
for command in json.loads(sys.argv[1]):
    try:
        codes.append(main(command.split()))
    except SystemExit as end:
        codes.append(end.code)
sys.exit(str(codes))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_other_encodings_are_written_in_plain_letters(settings: dict[str, str], tmp_path: Path) -> None:
    commands = ["list", "list --markdown", "--help", "train adding --help", "train äding", f"timescales {tmp_path}/φ"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONIOENCODING", "PYTHONUTF8")}
    environment |= {**settings, "COLUMNS": "200"}
    ended = subprocess.run(
        [sys.executable, "-c", SEVERAL, json.dumps(commands)], env=environment, capture_output=True, check=False
    )
    encoding = settings.get("PYTHONIOENCODING", "ascii")
    printed, errors = ended.stdout.decode(encoding), ended.stderr.decode(encoding).splitlines()
    assert errors[-1] == "[0, 0, 0, 0, 2, 2]", errors
    assert "fast           sigma(sinh z)     " in printed  # the columns stay below each other
    assert "| `fast` | sigma(sinh z) |" in printed
    assert "Show the time scales -1/log phi(b) of a saved model" in printed
    assert "LSTM: whether the input gate is 1-f." in printed
    assert ("z³" if encoding == "latin-1" else "z^3") in printed
    assert "?" not in printed.replace("heard at the start?", "")  # a title asks
    letter = "ä" if encoding == "latin-1" else "a"
    assert errors[0].startswith(f"gatedrnn: unknown task '{letter}ding'; choose from adding, ")
    assert errors[1] == f"gatedrnn: {tmp_path}/phi is neither a file nor the folder of a run or checkpoint"
    assert len(errors) == 3


def test_what_plain_letters_are() -> None:
    assert (
        in_plain_letters("φ(z) = σ(z + c₁z³ + …) ≥ −½, Θ, é, 🎲")
        == "phi(z) = sigma(z + c1z^3 + ...) >= -1/2, Theta, e, ?"
    )
    assert encodable("1−f", "utf-8") == "1−f"
    assert encodable("1−f", "latin-1") == encodable("1−f", "no such encoding") == "1-f"


def test_a_reader_that_stops_reading_ends_it_quietly() -> None:
    with subprocess.Popen(
        [*RUN, "train", "adding", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_table_that_nobody_reads_ends_quietly() -> None:
    with subprocess.Popen([*RUN, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_training_whose_progress_nobody_reads_keeps_a_checkpoint(tmp_path: Path) -> None:
    options = ["--length", "10", "--hidden-size", "8", "--threads", "1", "--updates", "100000", "--evaluate-every", "9"]
    command = [*RUN, "train", "adding", *options, "--out", str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline().startswith(b"update 0/100000")
        process.stderr.close()
        assert process.wait(60) == 141
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert int(checkpoint.name) % 9 == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_behind_the_output_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([*RUN, "list", "--markdown"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "gatedrnn: [Errno 28] No space left on device\n"


def test_closed_streams_change_nothing() -> None:
    command = f"{sys.executable} -m gatedrnn.cli list >&- 2>&-"
    assert subprocess.run(["sh", "-c", command]).returncode == 0
