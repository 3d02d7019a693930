"""An sdist and wheels, built, installed in a clean environment and used; with and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler to build the engine with"),
]
USE = """
import warnings, torch, gatedrnn
warnings.simplefilter("ignore")
layer, x = gatedrnn.LSTM(2, 3, forget_gate="fast"), torch.randn(5, 4, 2)
output, _ = layer(x)
output.sum().backward()
layer.engine = "reference"
torch.testing.assert_close(output, layer(x)[0])
layer.engine = "auto"
print(gatedrnn.__file__)
print(gatedrnn.explain(layer, x).split(":")[0])
"""


def run(*command: Any, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), env={**os.environ, **environment}, capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment with the standard build program."""
    place = tmp_path_factory.mktemp("tools")
    venv.create(place, with_pip=True)
    run(place / "bin" / "python", "-m", "pip", "install", "--quiet", "build")
    return place / "bin" / "python"


@pytest.fixture(scope="module")
def built(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(tools, "-m", "build", "--outdir", folder, ROOT)
    return folder


def used(wheel: Path, place: Path) -> list[str]:
    """Where gatedrnn was imported from in a fresh environment with this wheel, and which engine ran.

    torch is large: the environment borrows the one that runs the tests, and nothing else is looked up there.
    """
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    return run(python, "-c", USE, PYTHONPATH=str(Path(torch.__file__).parent.parent)).splitlines()


def test_the_sdist_holds_what_a_build_needs(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    sources = {
        str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".cpp", ".h")
    }
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md", "src/gatedrnn/py.typed", *sources} <= names


def test_a_wheel_with_the_engine(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert "-py3-none-" in wheel.name  # one for every Python 3
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "gatedrnn/engines/cpu/libgatedrnn_cpu.so" in names and "gatedrnn/lab/report/page.js" in names
    assert not [name for name in names if name.endswith((".cpp", ".h"))]
    where, engine = used(wheel, tmp_path / "clean")
    assert where.startswith(str(tmp_path)) and engine == "cpu"


def test_a_wheel_built_without_a_compiler(built: Path, tools: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    nothing = {"CC": "/nowhere/compiler", "CXX": "/nowhere/compiler"}
    run(tools, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, sdist, **nothing)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
    where, engine = used(wheel, tmp_path / "clean")
    assert where.startswith(str(tmp_path)) and engine == "reference"
