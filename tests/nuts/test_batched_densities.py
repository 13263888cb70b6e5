"""Densities that call batched functions: values, gradients and draws are those of plain TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError, nuts
from pcbatch.nuts.kernel.dynamics import value_and_gradient
from tests.nuts.densities import QUIET
from tests.nuts.trees import INITIAL, TREE, by_hand, density

FORMS = [{}, {"jit": False}, {"strategy": "local"}, {"strategy": "hybrid"}]
RATES = tf.constant([0.5, 0.25])


def slope_of(log_density, **options):
    @pcbatch.autobatch(in_axes=(0, None), **options)
    def slope(q, data):
        return value_and_gradient(log_density, q, data)

    return slope


def single(log_density, q, data):
    with tf.GradientTape() as tape:
        tape.watch(q)
        y = log_density(q, data)
    return y, tape.gradient(y, q)


def assert_like(log_density, plain, points, data, **options):
    """The batch equals plain TensorFlow, point by point."""
    slope = slope_of(log_density, **options)
    values, gradients = slope(points, data)
    for value, gradient, q in zip(values, gradients, tf.constant(points), strict=True):
        wanted, slopes = single(plain, q, data)
        np.testing.assert_allclose(value, wanted, rtol=1e-4)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-5)
    return slope


def of_vector(log_density):
    return lambda q, tree: log_density({"lengths": q[:7], "rate": q[7]}, tree)


@pytest.mark.parametrize("options", FORMS[:1] + [pytest.param(each, marks=pytest.mark.slow) for each in FORMS[1:]])
def test_the_slope_of_a_tree(options):
    points = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    tree = tf.nest.map_structure(tf.constant, TREE)
    slope = assert_like(of_vector(density), of_vector(by_hand), points, tree, **options)
    if options == {}:
        assert "calls `partials`, and a run of that grows" in slope.stats().forms[0]


@pcbatch.autobatch
def halved(x, turns):
    """Turns that differ by lane, then calls; a lane fails whose turns are too many."""
    assert turns < 9, "too many turns"
    for _ in range(turns):
        x = tf.sin(x) * RATES[0]
    return {"x": x, "both": (x * x, deeper(x, turns))}


@pcbatch.autobatch
def deeper(x, turns):
    if turns <= 0:
        return x
    return x + deeper(tf.tanh(x), turns - 1)


def turning(q, data):
    found = halved(q[0] * data["scale"], tf.cast(3.0 + 2.0 * tf.sign(q[1]), tf.int32))
    again = deeper(found["both"][0], 2)
    return found["x"] * q[1] + found["both"][1] + again


@pytest.mark.slow
def test_lanes_that_turn_differently_and_arguments_for_all():
    points = np.array([[0.3, 1.0], [0.7, -1.0], [-0.4, 0.0]], np.float32)

    def plain(q, data):
        x, turns = q[0] * data["scale"], int(3 + 2 * np.sign(q[1]))
        for _ in range(turns):
            x = tf.sin(x) * 0.5
        return x * q[1] + summed(x, turns) + summed(x * x, 2)

    def summed(x, turns):
        return x if turns <= 0 else x + summed(tf.tanh(x), turns - 1)

    assert_like(turning, plain, points, {"scale": tf.constant(1.5)})


@pytest.mark.slow
def test_what_the_function_reads_is_read_anew(monkeypatch):
    slope = slope_of(lambda q, data: halved(q, 1)["x"])
    first = slope([0.3, 0.4], 0.0)[0]
    assert slope.stats().cache_entries == 1
    np.testing.assert_array_equal(slope([0.3, 0.4], 0.0)[0], first)
    assert slope.stats().cache_entries == 1
    monkeypatch.setitem(globals(), "RATES", tf.constant([2.0, 0.25]))
    np.testing.assert_allclose(slope([0.3, 0.4], 0.0)[0], 4.0 * first, rtol=1e-6)


def test_a_lane_that_fails_there_has_no_density():
    slope = slope_of(lambda q, data: 0.0 * halved(q, tf.cast(q, tf.int32))["both"][1] + q)
    values, _ = slope([2.0, 9.5, 1.0], 0.0)
    np.testing.assert_array_equal(values, [2.0, np.nan, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decorated", "strategy", "draws"), [(False, "pc", 6), (True, "pc", 6), (False, "local", 2), (False, "hybrid", 2)]
)
def test_draws_of_a_tree(decorated, strategy, draws):
    log_density = pcbatch.autobatch(density) if decorated else density
    options = {"chains": 4, "warmup": 0, "draws": draws, "step_size": 0.3, "data": TREE, "seed": 2, **QUIET}
    samples = nuts.sample(log_density, INITIAL, strategy=strategy, **options)
    plain = nuts.sample(by_hand, INITIAL, **options)
    for name in INITIAL:
        np.testing.assert_allclose(samples[name], plain[name], rtol=2e-3, atol=2e-3)
    assert samples.cost.gradients == plain.cost.gradients


def closed(q, data):
    @pcbatch.autobatch
    def shifted(x):
        return x + q

    return shifted(1.0)


def curved(q, data):
    with tf.GradientTape() as tape:
        tape.watch(q)
        y = deeper(q, 1)
    return tape.gradient(y, q)


REFUSED = {
    "in a loop of TensorFlow's": (lambda q, data: tf.map_fn(lambda x: deeper(x, 1), q[None])[0], "PCB405.*by itself"),
    "a run": (lambda q, data: deeper.run(q, 1).value, "PCB405.*`deeper.run` is called inside of a piece"),
    "what differs by lane around it": (closed, "PCB413.*pass it as an argument"),
    "a second derivative": (curved, "PCB604.*a second derivative through the batched function `deeper`"),
    "the native form": (lambda q, data: deeper(q, 1), "PCB534.*a piece of it calls `deeper`"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what):
    log_density, message = REFUSED[what]
    options = {"form": "native"} if what == "the native form" else {}
    with pytest.raises((pcbatch.PcbatchError, UsageError), match=f"(?s){message}") as caught:
        slope_of(log_density, **options).check([0.5, 1.5], 0.0)
    assert options or "test_batched_densities.py" in str(caught.value)
