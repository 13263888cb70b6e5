"""Densities with loops inside operations: their gradients in a batch, and their posteriors against quadrature."""

from __future__ import annotations

import arviz
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import nuts
from tests.nuts.loops import EMISSIONS, GROWN, TIMES, growth, growth_on, moments, regimes, regimes_on

MODELS = {
    "growth": (growth, (TIMES, GROWN), growth_on, np.linspace(0.5, 2.0, 2001), {"bijectors": {"x": nuts.positive}}),
    "regimes": (regimes, EMISSIONS, regimes_on, np.linspace(-2.0, 4.0, 2001), {}),
}


@pytest.mark.parametrize("name", [pytest.param("growth", marks=pytest.mark.slow), "regimes"])
def test_value_and_gradient_of_a_batch(name):
    density, data, formula, grid, _ = MODELS[name]
    operands = tf.nest.map_structure(tf.constant, data)

    @pcbatch.autobatch(form="lockstep")
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = density(x, operands)
        return y, tape.gradient(y, x)

    points = grid[[100, 700, 1500]]
    values, gradients = slope(points)
    by_formula = formula(points)
    np.testing.assert_allclose(values - values[0], by_formula - by_formula[0], rtol=1e-3, atol=1e-3)
    differences = (formula(points + 1e-5) - formula(points - 1e-5)) / 2e-5
    np.testing.assert_allclose(gradients, differences, rtol=5e-3, atol=1e-3)
    assert all(note.endswith("While runs lane after lane") for note in slope.stats().notes)
    assert slope.stats().notes


def test_what_xla_cannot_compile_is_shown_in_the_density():
    def nested(p):
        rows = tf.sort(tf.reshape(p, [2, 70]))  # of so many numbers not natively
        return tf.reduce_sum(tf.map_fn(lambda row: tf.scan(lambda h, e: 0.9 * h + e, row, 0.0 * row[0])[-1], rows))

    with pytest.raises(pcbatch.CompileError, match=r"(?s)PCB414.*test_loops\.py.*tf\.map_fn.*decorate it"):
        nuts.sample(nested, np.zeros(140, np.float32), progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_posterior_is_that_of_quadrature(name, record_property):
    density, data, formula, grid, options = MODELS[name]
    samples = nuts.sample(
        density, 1.0, data=data, chains=16, warmup=300, draws=500, seed=3, dtype=tf.float64, progress=False, **options
    )
    table = arviz.summary({"x": np.asarray(samples["x"])}, round_to="none", kind="all").loc["x"]
    wanted = moments(grid, formula(grid))
    found = [(table[each] - known) / table[f"mcse_{each}"] for each, known in zip(("mean", "sd"), wanted, strict=True)]
    record_property(name, f"mean and sd {wanted}, off by {found} errors, bulk ESS {table['ess_bulk']:.0f}")
    assert table["r_hat"] < 1.01
    assert table["ess_bulk"] > 1000
    assert max(map(abs, found)) < 4, found


def decayed(p):
    """A chain of states that forget."""
    return tf.scan(lambda h, e: 0.9 * h + e, p, 0.0 * p[0])


def in_reverse(p):
    return tf.scan(lambda h, e: tf.tanh(0.9 * h + e), p, 0.0 * p[0], reverse=True)


def of_each(p):
    return tf.map_fn(lambda e: tf.sin(e) * e, p)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("states", [decayed, pytest.param(in_reverse, marks=pytest.mark.slow), of_each])
def test_loops_over_parameters_have_gradients(states, jit):
    """Of the list of parameters that a loop reads the gradient is such a list, as long as that."""

    def single(p):
        with tf.GradientTape() as tape:
            tape.watch(p)
            y = tf.reduce_sum((states(p) - 1.0) ** 2)
        return y, tape.gradient(y, p)

    slope = pcbatch.autobatch(single, form="lockstep", jit=jit) if jit else pcbatch.autobatch(single, jit=jit)
    points = np.random.default_rng(0).normal(size=(3, 100)).astype(np.float32)
    values, gradients = slope(points)
    for value, gradient, p in zip(values, gradients, tf.constant(points), strict=True):
        wanted, slopes = single(p)
        np.testing.assert_allclose(value, wanted, rtol=1e-4)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-3, atol=1e-4)
