"""The demo's posterior against the figures of an independent sampler (`benchmarks/reference_sampler.py`)."""

import json
from pathlib import Path

import numpy as np
import pytest

from pcbatch import nuts
from tests.nuts.demos import load

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_means_and_deviations_agree_with_the_reference():
    demo = load("breast_cancer")
    data, features = demo.load()
    options = {"chains": 64, "warmup": 200, "draws": 200, "seed": 1, "progress": False}
    samples = nuts.sample(demo.log_density, demo.INITIAL, data=data, **options)
    table = demo.summarise(samples, features)
    assert table["r_hat"].max() < 1.01
    assert samples.warnings == ()
    assert samples.settings.metric == "dense"
    assert samples.utilizations()["measured"] > 0.75

    reference = json.loads((ROOT / "benchmarks" / "reference" / "breast_cancer.json").read_text())["parameters"]
    expected = {
        figure: np.append(reference["intercept"][figure], reference["weights"][figure])
        for figure in ("mean", "sd", "mcse_mean", "mcse_sd")
    }
    error = np.hypot(table["mcse_mean"], expected["mcse_mean"])
    np.testing.assert_array_less(np.abs(table["mean"] - expected["mean"]), 4 * error)
    error = np.hypot(table["mcse_sd"], expected["mcse_sd"])
    np.testing.assert_array_less(np.abs(table["sd"] - expected["sd"]), 4 * error)
