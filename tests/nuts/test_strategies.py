"""The sampler under the paper's other machines: the same draws; launches as counted from the trees alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts

SAMPLED: dict[str, Any] = {"chains": 3, "warmup": 4, "draws": 6, "seed": 2, "progress": False, "dtype": "float64"}


def density(q: tf.Tensor) -> tf.Tensor:
    return -0.5 * tf.reduce_sum(q * q * tf.constant([1.0, 4.0], tf.float64))


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"strategy": "local"}, {"strategy": "hybrid"}, {"schedule": "switch"}], ids=str)
def test_draws_are_those_of_the_default(other: dict[str, Any]) -> None:
    wanted = nuts.sample(density, np.zeros(2), **SAMPLED)
    found = nuts.sample(density, np.zeros(2), **SAMPLED, **other)
    for name, draws in wanted.posterior.items():
        np.testing.assert_allclose(found.posterior[name], draws, rtol=1e-6)
    np.testing.assert_array_equal(found.sample_stats["n_steps"], wanted.sample_stats["n_steps"])


@pytest.mark.parametrize("other", [{"jit": False}, {"schedule": "sweep"}], ids=str)
def test_a_strategy_has_no_schedule_of_the_machine(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="PCB551: strategy='local'"):
        nuts.sample(density, np.zeros(2), **SAMPLED, strategy="local", **other)
