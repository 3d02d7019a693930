"""Sweeps by submitit: its executor for this machine stands in for SLURM, with the same checkpoints and requeues."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from gatedrnn import cli
from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import LauncherError, Local
from gatedrnn.lab.experiments.launchers.slurm import Slurm
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.records import read_run

from .cluster_sweep import runs

_SECONDS = 15  # of a job: an update, and the start of the process, must fit; the whole run must not


class Here(Slurm):
    """Jobs of this machine with a time limit of seconds."""

    def _check_engine(self) -> None:
        pass

    def executor(self, folder: Path, threads: int) -> Any:
        import submitit

        executor = submitit.LocalExecutor(folder, max_num_timeout=100)
        executor.update_parameters(timeout_min=(_SECONDS + 30) / 60, signal_delay_s=30)
        return executor


def _long_runs() -> list[DeclaredRun]:
    """Two that take longer than a job may."""
    chosen = runs(updates=2500)[:2]
    for place, one in enumerate(chosen):
        training = dataclasses.replace(one.run.training, checkpoint_seconds=600.0)  # only what the job saves at its end
        chosen[place] = dataclasses.replace(one, run=dataclasses.replace(one.run, training=training))
    return chosen


def _metrics(folder: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in read_run(folder).metrics]


@pytest.mark.slow
def test_runs_longer_than_their_jobs_continue_by_requeue(tmp_path: Path) -> None:
    chosen = _long_runs()
    seen: list[tuple[str, str]] = []

    def told(run: RunState) -> None:
        seen.append((run.name, run.state))

    pool = Sweep(chosen, tmp_path / "slurm", Here())
    pool.go(told)
    assert [(run.state, run.reason) for run in pool.runs] == [("finished", None)] * 2
    assert ("adding/fast/seed0", "running") in seen
    here = Sweep(chosen, tmp_path / "local", Local(2, cores=2))
    here.go(lambda run: None)
    for one in chosen:
        assert _metrics(tmp_path / "slurm" / one.folder) == _metrics(tmp_path / "local" / one.folder)
    resumed = [(read_run(tmp_path / "slurm" / one.folder).record or {})["resumed"] for one in chosen]
    assert min(resumed) >= 1
    assert not list((tmp_path / "slurm").rglob("*.news")) and not list((tmp_path / "slurm").glob(".sweep-*"))


def test_without_slurm_or_submitit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    command = ["sweep", "fig:adding_mse", "--budget", "smoke", "--launcher", "slurm", "--out", str(out)]
    assert cli.main(command) == 2
    assert capsys.readouterr().err == "gatedrnn: there is no SLURM here: the command sbatch is not found\n"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        LauncherError, match=r'^--launcher slurm needs the package submitit: pip install "gatedrnn\[slurm'
    ):
        Slurm().open(out, 1)
    assert not out.exists()
