"""Sweeps by submitit: its executor for this machine stands in for SLURM, with the same checkpoints and requeues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatedrnn import cli
from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import LauncherError, Local
from gatedrnn.lab.experiments.launchers.slurm import Slurm
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import read_run
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training

_SECONDS = 45  # of a job: the start of its processes takes some of them
_TRAINING = (
    45.0  # seconds that a run trains: longer than its job, however fast the machine is. submitit allows six jobs
)


class Here(Slurm):
    """Jobs of this machine with a time limit of seconds."""

    def _check_engine(self) -> None:
        pass

    def executor(self, folder: Path, threads: int) -> Any:
        import submitit

        executor = submitit.LocalExecutor(folder, max_num_timeout=100)
        executor.update_parameters(timeout_min=(_SECONDS + 30) / 60, signal_delay_s=30)
        return executor


def _run(seed: int, **options: Any) -> DeclaredRun:
    """Without checkpoints but those that the job makes before its end."""
    training = Training(
        evaluate_every=500, evaluation_size=50, batch_size=16, checkpoint_seconds=600.0, seed=seed, **options
    )
    run = Run(Adding(50), Model(hidden_size=16), training)
    return DeclaredRun("fast", seed, run, f"adding/fast/seed{seed}")


def _metrics(folder: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "seconds"} for line in read_run(folder).metrics]


@pytest.mark.slow
def test_runs_longer_than_their_jobs_continue_by_requeue(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def told(run: RunState) -> None:
        seen.append((run.name, run.state))

    out = tmp_path / "slurm"
    pool = Sweep([_run(seed, updates=10**6, budget_seconds=_TRAINING) for seed in (0, 1)], out, Here())
    pool.go(told)
    assert [(run.state, run.reason) for run in pool.runs] == [("budget_spent", None)] * 2
    assert ("adding/fast/seed0", "running") in seen
    assert min((read_run(run.folder).record or {})["resumed"] for run in pool.runs) >= 1
    assert not list(out.rglob("*.news")) and not list(out.glob(".sweep-*"))

    # As many updates without an interruption.
    whole = [_run(seed, updates=run.update) for seed, run in enumerate(pool.runs)]
    Sweep(whole, tmp_path / "local", Local(2, cores=2)).go(lambda run: None)
    for one in whole:
        assert _metrics(out / one.folder) == _metrics(tmp_path / "local" / one.folder)


def test_without_slurm_or_submitit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    command = ["sweep", "fig:adding_mse", "--budget", "smoke", "--launcher", "slurm", "--out", str(out)]
    assert cli.main(command) == 2
    assert (
        capsys.readouterr().err
        == "gatedrnn: SLURM not found: no command sbatch; run the sweep on a machine with SLURM\n"
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LauncherError, match=r'^--launcher slurm needs the package submitit: pip install "\.\[slurm'):
        Slurm().open(out, 1)
    assert not out.exists()
