"""`nuts.sample(.., executor=..)`: chains in parts on the workers of an executor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.nuts.running.shards import bounds_of
from tests.api.test_shard import Threads


def log_density(parameters, data):
    return -0.5 * tf.reduce_sum(((parameters["x"] - data["mean"]) / data["scale"]) ** 2)


DATA = {"mean": tf.constant([1.0, 2.0]), "scale": np.float32(2)}


def sample(**options):
    given = {"chains": 12, "warmup": 30, "draws": 20, "progress": False, "data": DATA, **options}
    return nuts.sample(log_density, {"x": np.zeros(2)}, **given)


@pytest.fixture(scope="module")
def executor():
    with ThreadPoolExecutor(2) as threads:
        yield Threads(threads)


@pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning")
def test_draws_are_those_of_one_process(executor, tmp_path):
    here, there = sample(), sample(executor=executor)
    np.testing.assert_array_equal(there["x"], here["x"])
    for name, array in here.sample_stats.items():
        np.testing.assert_array_equal(there.sample_stats[name], array)
    assert (there.chains, there.cost.gradients, there.failed) == (12, here.cost.gradients, {})
    here.save(tmp_path / "here.npz")
    there.save(tmp_path / "there.npz")
    one, other = (nuts.resume(tmp_path / f"{name}.npz", draws=5, progress=False) for name in ("here", "there"))
    np.testing.assert_array_equal(one["x"], other["x"])


def test_parts_are_whole_groups_of_chains():
    for chains in (1, 4, 5, 13, 64):
        for workers in (1, 2, 3, 100):
            bounds = bounds_of(chains, workers)
            assert (bounds[0][0], bounds[-1][1]) == (0, chains)
            assert all(a < b and a % 4 == 0 for a, b in bounds)
            assert len(bounds) <= workers


def test_chains_that_adapt_to_each_other_are_refused(executor):
    with pytest.raises(UsageError, match="PCB551: chains that adapt to each other"):
        sample(executor=executor, adapt="pooled")
