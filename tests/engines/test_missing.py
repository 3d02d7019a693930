"""Without the native library everything works on the reference engine, and says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CODE = """
import warnings
import torch, gatedrnn
class Erf(gatedrnn.gates.SigmoidOf):
    saturation = "as σ"
    def alpha(self, z): return torch.erf(z)
    def alpha_derivative(self, z): return torch.exp(-z * z)
layer, x = gatedrnn.LSTM(2, 3, forget_gate="fast"), torch.randn(4, 1, 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        layer(x)[0].sum().backward()
    gatedrnn.GRU(2, 4, forget_gate=Erf())(x)
print(len(caught), caught[0].message, caught[0].filename)
print(gatedrnn.explain(layer, x))
print(gatedrnn.explain(gatedrnn.GRU(2, 4, forget_gate=Erf()), x).splitlines()[1])
layer.engine = "reference"
warnings.simplefilter("error")
layer(x)
layer.engine = "cpu"
try:
    layer(x)
except RuntimeError as error:
    print(error)
"""


def test_it_works_and_says_so_once(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(CODE)
    environment = {**os.environ, "GATEDRNN_CPU_LIBRARY": "/nowhere/lib.so", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    warned, first, second, _, untraced, error = done.stdout.splitlines()
    assert warned.startswith("1 engine 'cpu' is not available (/nowhere/lib.so")
    assert "GATEDRNN_CPU_LIBRARY names this file: unset it" in warned and "compiler" not in warned
    assert warned.endswith(str(script)), "the warning points at the user's line"
    assert first == "reference: the loop over time in plain PyTorch (the first that can run this)"
    assert second.startswith("not cpu: /nowhere/lib.so could not be loaded")
    assert untraced.startswith("not cpu: it has no kernel for the gate Erf()")
    assert error.startswith("the engine 'cpu' cannot run this: /nowhere/lib.so could not be loaded")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_the_build_succeeds_without_a_compiler(tmp_path: Path) -> None:
    environment = {**os.environ, "CXX": "/nowhere/compiler", "CC": "/nowhere/compiler"}
    configure = ["cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Unix Makefiles"]
    done = subprocess.run(configure, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no C++ compiler found, the CPU engine is left out" in done.stdout
    install = ["cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "installed"]
    assert subprocess.run(install, capture_output=True).returncode == 0
    assert not list(tmp_path.glob("installed/**/*.so"))
