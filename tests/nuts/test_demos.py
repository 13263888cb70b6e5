"""The demos run and say what they promise; the page on the sampler can be copied from."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

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


@pytest.mark.slow
def test_the_page_on_the_sampler_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "nuts.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": "page"}
    sample, density, goes_on = blocks
    exec(sample, names)
    samples = names["samples"]
    assert samples["weights"].shape == (8, 500, 3)
    assert abs(samples["weights"].mean(axis=(0, 1)) - [2.0, 0.0, -1.0]).max() < 0.3
    monkeypatch.setitem(sys.modules, "page", SimpleNamespace(**names))  # where a script's own names would be
    exec(density, names)
    emissions = np.array([0.1, 0.9, 1.2, 0.0, 1.1], np.float32)
    likely, unlikely = (float(names["regimes"](tf.constant(level), emissions)) for level in (1.0, 5.0))
    assert likely > unlikely
    exec(goes_on, names)
    assert names["samples"]["weights"].shape == (8, 1500, 3)
