"""Faults of densities, found by evaluating them, with the names of parameters."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.nuts.parameters.parameters import layout_of
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.running import diagnosis
from tests.nuts.densities import QUIET

INITIAL = {"a": 0.0, "b": np.zeros(2), "c": 1.0}
SLOW = pytest.mark.slow
POINT = np.array([0.3, -0.2, 0.1, 0.2])


def origin_of(density, **bijectors):
    transform = Transform.of(layout_of(INITIAL), bijectors)
    points = np.stack([np.full(4, np.nan), POINT])
    state = SimpleNamespace(point=SimpleNamespace(q=points))
    return SimpleNamespace(density=density, data=None, transform=transform, state=state)


def of_all(p):
    return -0.5 * (p["a"] ** 2 + tf.reduce_sum(p["b"] ** 2) + p["c"] ** 2)


def flat(p):
    return -0.5 * (p["a"] ** 2 + p["b"][0] ** 2) + 0.0 * p["c"]


def rising(p):
    return -0.5 * (p["a"] ** 2 + p["b"][0] ** 2) - tf.exp(-p["b"][1]) - tf.abs(p["c"] - 1.0)


def jumping(p):
    return tf.where(p["b"][1] > 0.37, of_all(p) - 2.0, of_all(p))


def rounded(p):
    return of_all(p) - 3.0 * tf.round(p["a"]) ** 2


def heavy(p):
    """Cauchy's, whose logarithm falls slowly, and a kink, which is no jump."""
    return -tf.math.log1p(p["a"] ** 2) - tf.reduce_sum(tf.math.log1p(p["b"] ** 2)) - 30.0 * tf.abs(p["c"])


FAULTS = {
    "none": (of_all, {}, ""),
    "heavy tails": (heavy, {}, ""),
    "flat": (flat, {}, "it does not depend on 'b[1]', 'c'"),
    "improper": (rising, {}, "it does not fall off where 'b[1]' grows"),
    "a jump": (jumping, {}, "it jumps, or has a part without a gradient, in 'b[1]'"),
    "rounding": (rounded, {}, "it jumps, or has a part without a gradient, in 'a'"),
    "a flat scale": (
        flat,
        {"b": nuts.interval(0, 1), "c": nuts.positive},
        "it does not fall off where 'c' grows, before bijectors",
    ),
}


@pytest.mark.parametrize(
    "what", [name if name in ("improper", "a jump") else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS]
)
def test_faults_are_named(what):
    density, bijectors, wanted = FAULTS[what]
    assert diagnosis.faults(origin_of(density, **bijectors)) == wanted


def logarithm(p):
    return of_all(p) + tf.math.log(p["b"][0] - 3.0)


def root(p):
    return of_all(p) + tf.sqrt(0.0 * p["c"])


def nowhere(p):
    return of_all(p) + np.nan


@pytest.mark.parametrize(
    ("density", "wanted"),
    [
        (logarithm, "the log density is nan there, and finite where 'b' is changed"),
        pytest.param(
            root, "the log density is -0.09 there, and its gradient is not finite in 'c'", marks=pytest.mark.slow
        ),
        pytest.param(nowhere, "the log density is nan there", marks=SLOW),
    ],
)
def test_starts_that_are_none_are_explained(density, wanted):
    assert diagnosis.start(origin_of(density), POINT) == wanted


@pytest.mark.slow
def test_a_run_says_so():
    options = {"chains": 4, "warmup": 100, "draws": 100, "max_tree_depth": 5, **QUIET}
    with pytest.warns(nuts.SamplerWarning, match=r"no smooth one of a posterior: it does not fall off where 'b"):
        nuts.sample(rising, INITIAL, **options)
    with pytest.raises(UsageError, match=r"PCB557: .* the log density is nan there, and finite where 'b' is changed"):
        nuts.sample(logarithm, INITIAL, **options)
    with pytest.raises(ValueError, match=r"an improper posterior \(it does not depend on 'a', 'b', 'c'\)"):
        nuts.sample(lambda p: 0.0 * p["a"], INITIAL, **options)
