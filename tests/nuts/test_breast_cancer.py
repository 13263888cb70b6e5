"""The demo's posterior against the figures of an independent sampler (`benchmarks/reference_sampler.py`)."""

import importlib.util
import json
from pathlib import Path

import numpy as np

from pcbatch import nuts

ROOT = Path(__file__).parents[2]


def load_demo():
    spec = importlib.util.spec_from_file_location("breast_cancer", ROOT / "examples" / "nuts" / "breast_cancer.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    return demo


def test_means_and_deviations_agree_with_the_reference():
    demo = load_demo()
    data, features = demo.load()
    step_size, positions = demo.find_step_size(data, chains=64)
    samples = nuts.sample(
        demo.log_density,
        demo.INITIAL,
        data=data,
        chains=64,
        draws=200,
        step_size=step_size,
        seed=1,
        initial_per_chain=positions,
    )
    table = demo.summarise(samples, features)
    assert table["r_hat"].max() < 1.01

    reference = json.loads((ROOT / "benchmarks" / "reference" / "breast_cancer.json").read_text())["parameters"]
    expected = {
        figure: np.append(reference["intercept"][figure], reference["weights"][figure])
        for figure in ("mean", "sd", "mcse_mean", "mcse_sd")
    }
    error = np.hypot(table["mcse_mean"], expected["mcse_mean"])
    np.testing.assert_array_less(np.abs(table["mean"] - expected["mean"]), 4 * error)
    error = np.hypot(table["mcse_sd"], expected["mcse_sd"])
    np.testing.assert_array_less(np.abs(table["sd"] - expected["sd"]), 4 * error)
