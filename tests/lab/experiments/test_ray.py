"""Sweeps on a Ray cluster of real processes on this machine: nodes and drivers that die, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gatedrnn import cli
from gatedrnn.lab.experiments.launchers import LauncherError
from gatedrnn.lab.experiments.launchers.ray import Ray
from gatedrnn.lab.records import read_run

from .cluster_sweep import SEEDS

ROOT = Path(__file__).parents[3]
BOUND = 300.0  # seconds: what takes longer hangs
SMOKE = ["sweep", "fig:adding_mse", "--budget", "smoke", "--models", "fast", "--launcher", "ray"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without cores, on the loopback interface, without dashboard and usage statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's way to stay on the loopback interface
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args={**_NODE, "num_cpus": 0})
        try:
            yield made
        finally:
            made.shutdown()


_NODE = {"include_dashboard": False, "object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}


@contextmanager
def _node(cluster: Any) -> Iterator[None]:
    """A node with one core, alone in the cluster: a node that was removed just before may still be listed as alive."""
    node = cluster.add_node(**_NODE, num_cpus=1)
    try:
        cluster.wait_for_nodes()
        yield
    finally:
        cluster.remove_node(node)


@contextmanager
def _driver(launcher: str, out: Path, argument: object, told: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that makes the sweep and writes its news into the file ``told``; it is dead after the ``with``."""
    command = [sys.executable, "-m", "tests.lab.experiments.cluster_sweep", launcher, str(out), str(argument)]
    with open(told, "wb") as file:
        driver = subprocess.Popen(command, cwd=ROOT, stdout=file, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait()


def _wait_until_some_run_is_at(update: int, told: Path, driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + BOUND
    while not any(state == "running" and int(at) >= update for _, state, at, *_ in _lines(told)):
        assert time.monotonic() < deadline and driver.poll() is None, told.read_text()
        time.sleep(0.1)


def _lines(told: Path) -> list[list[str]]:
    return [line.split() for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _metrics(out: Path) -> dict[str, list[dict[str, Any]]]:
    folders = [f"adding/fast/seed{seed}" for seed in SEEDS]
    return {
        name: [{key: v for key, v in line.items() if key != "seconds"} for line in read_run(out / name).metrics]
        for name in folders
    }


def _workers(out: Path) -> list[int]:
    """The processes that train below the folder."""
    found = []
    for lock in out.rglob(".lock"):
        for fds in Path("/proc").glob("[0-9]*/fd"):
            try:
                if any(os.readlink(fd) == str(lock) for fd in fds.iterdir()):
                    found.append(int(fds.parent.name))
            except OSError:
                continue
    return found


@pytest.mark.slow
def test_nodes_and_drivers_die_and_every_run_ends_in_the_bits_of_the_local_sweep(cluster: Any, tmp_path: Path) -> None:
    with _driver("local", tmp_path / "local", 2, tmp_path / "told") as driver:
        assert driver.wait(BOUND) == 0

    first, second = (cluster.add_node(**_NODE, num_cpus=1) for _ in range(2))
    out = tmp_path / "ray"
    with _driver("ray", out, cluster.address, tmp_path / "told1") as driver:
        _wait_until_some_run_is_at(100, tmp_path / "told1", driver)
        os.kill(driver.pid, signal.SIGKILL)

    with _driver("ray", out, cluster.address, tmp_path / "told2") as driver:
        _wait_until_some_run_is_at(150, tmp_path / "told2", driver)
        cluster.remove_node(first, allow_graceful=False)
        third = cluster.add_node(**_NODE, num_cpus=1)
        assert driver.wait(BOUND) == 0
    states = {name: state for name, state, *_ in _lines(tmp_path / "told2")}
    assert set(states.values()) == {"finished"}, states
    assert _metrics(out) == _metrics(tmp_path / "local")
    for seed in SEEDS:
        record = read_run(out / f"adding/fast/seed{seed}").record
        assert record is not None and record["outcome"] == "finished"
        # Two processes in one folder would have moved each other's files aside, or been refused.
        assert list((out / f"adding/fast/seed{seed}").rglob("damaged*")) == []
    resumed = [read_run(out / f"adding/fast/seed{seed}").record or {} for seed in SEEDS]
    assert sum(record["resumed"] for record in resumed) >= 2  # by the driver's death, and by the node's
    assert _workers(out) == []
    assert len([*out.glob(".sweep-*")]) == 1  # that of the driver that was killed
    assert [*out.rglob("*.news")] == [*out.rglob("*.log")] == []
    for node in (second, third):
        cluster.remove_node(node)


@pytest.mark.slow
def test_what_cannot_be_is_one_line_and_nothing_is_left(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def said(*options: str) -> str:
        assert cli.main([*SMOKE, "--out", str(out), "--address", cluster.address, *options]) == 2
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1 and not out.exists()
        return printed

    (tmp_path / "mine").mkdir()
    with _node(cluster):
        assert said("--threads", "2") == (
            f"gatedrnn: a run needs 2 cores, but the largest node at {cluster.address} has 1; use fewer --threads\n"
        )
        # A path that means another place in every process: the folder of this one's descriptor.
        descriptor = os.open(tmp_path / "mine", os.O_RDONLY)
        try:
            printed = said("--out", f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    assert f"cannot run this sweep: it cannot access /proc/self/fd/{descriptor}: choose an --out on storage" in printed
    assert list((tmp_path / "mine").iterdir()) == []

    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "sitecustomize.py").write_text("import gatedrnn\ngatedrnn.__version__ = '0.0.1'\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'older'}:{ROOT}")
    with _node(cluster):
        assert "cannot run this sweep: it has gatedrnn 0.0.1, this machine has " in said()

    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "sitecustomize.py").write_text("import sys\nsys.modules['gatedrnn'] = None\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'none'}:{ROOT}")
    with _node(cluster):
        printed = said()
    assert "cannot run this sweep: " in printed and "gatedrnn" in printed.split("cannot run this sweep: ")[1]
    assert _workers(tmp_path) == []


@pytest.mark.slow
def test_the_cluster_of_this_machine(cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _node(cluster):
        assert cli.main([*SMOKE, "--out", str(tmp_path / "out"), "--address", "auto", "--seeds", "0"]) == 0
    assert "1 finished" in capsys.readouterr().out
    (record,) = (tmp_path / "out").rglob("record.json")
    assert read_run(record.parent).record["outcome"] == "finished"  # type: ignore[index]


@pytest.mark.slow
def test_ctrl_c_stops_cleanly(cluster: Any, tmp_path: Path) -> None:
    options = ["--models", "fast", "--seeds", "0,1", "--launcher", "ray", "--address", cluster.address]
    run = tmp_path / "adding/desk/fast/seed0"
    command = [sys.executable, "-m", "gatedrnn.cli", "sweep", "fig:adding_mse", *options, "--out", str(tmp_path)]
    with (
        _node(cluster),
        subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it is ignored
        ) as sweep,
    ):
        deadline = time.monotonic() + BOUND
        while not (run / "metrics.jsonl").exists():
            assert time.monotonic() < deadline and sweep.poll() is None
            time.sleep(0.1)
        time.sleep(2.0)  # until the news are heard
        sweep.send_signal(signal.SIGINT)
        _, errors = sweep.communicate(timeout=BOUND)
        deadline = time.monotonic() + 30
        while _workers(tmp_path):  # while their node is alive
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert sweep.returncode == 130, errors
    assert "Traceback" not in errors
    assert "stopped: 2 runs: 1 running, 1 waiting; run the same command to resume" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["adding"] and not list(tmp_path.rglob("*.news"))


def test_no_cluster_at_the_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray", reason="the package ray is an extra, installed by make test-slow")
    out = tmp_path / "out"
    assert cli.main([*SMOKE, "--out", str(out), "--address", "127.0.0.1:1"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("gatedrnn: no Ray cluster at 127.0.0.1:1; start one with ray start --head")
    assert printed.count("\n") == 1 and not out.exists()
    assert cli.main([*SMOKE, "--out", str(out), "--address", "ray://host"]) == 2
    assert capsys.readouterr().err == "gatedrnn: --address must be auto or HOST:PORT, got 'ray://host'\n"


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LauncherError, match=r'^--launcher ray needs the package ray: pip install "\.\[ray\]"'):
        Ray().open(tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()
