"""The demos run and say what they promise."""

import re
from pathlib import Path

import pytest

from tests.nuts.demos import load

ROOT = Path(__file__).parents[2]


def run(name, arguments, folder, capsys):
    load(name).main([*arguments, "--out", str(folder)])
    return capsys.readouterr().out


@pytest.mark.slow
def test_eight_schools(tmp_path, capsys):
    printed = run("eight_schools", ["--chains", "4", "--draws", "300"], tmp_path, capsys)
    assert re.search(r"^mu +4\.\d", printed, re.MULTILINE)
    assert "4 chains of 300 draws" in printed
    assert (tmp_path / "trace.png").exists()


@pytest.mark.slow
def test_trajectories_of_different_lengths(tmp_path, capsys):
    printed = run("trajectory_lengths", ["--chains", "16", "--draws", "10"], tmp_path, capsys)
    here, lockstep = map(float, re.findall(r"utilisation (\d\.\d\d)", printed))
    assert here > 1.2 * lockstep
    assert (tmp_path / "utilization.png").exists()


@pytest.mark.slow
def test_breast_cancer(tmp_path, capsys):
    printed = run("breast_cancer", ["--chains", "8", "--warmup", "100", "--draws", "50"], tmp_path, capsys)
    assert re.search(r"^worst fractal dimension +-0\.\d", printed, re.MULTILINE)
    assert "divergent trajectories: 0" in printed
    assert (tmp_path / "utilization.png").exists()
