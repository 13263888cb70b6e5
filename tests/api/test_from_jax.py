"""Functions of JAX in batched functions and as densities."""

from __future__ import annotations

import functools
import sys
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from pcbatch.function.primitives import is_of_jax


def test_where_there_is_no_jax_it_says_so():
    with mock.patch.dict(sys.modules, {"jax": None}), pytest.raises(UsageError, match=r"PCB583: from_jax needs JAX"):
        pcbatch.from_jax(lambda x: x)


jax = pytest.importorskip("jax", reason="JAX is not installed: the extra `jax`")
jnp = jax.numpy

WEIGHTS = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
TURNS = [1, 2, 3, 0]


def layer(x, n, weights):
    return jnp.tanh(weights @ x) * n, jnp.sum(x)


layer_of_lanes = pcbatch.from_jax(layer, shared=["weights"])


@pcbatch.autobatch
def network(x, n):
    total = 0.0
    while n > 0:
        x, part = layer_of_lanes(x, n, WEIGHTS)
        total += part
        n -= 1
    return x, total


def network_in_jax(x, n):
    total = jnp.float32(0)
    while n > 0:
        x, part = layer(x, n, WEIGHTS)
        total, n = total + part, n - 1
    return x, total


@pytest.mark.parametrize("jit", [True, False])
def test_a_batch_gives_what_jax_gives_lane_by_lane(jit):
    found = network.options(jit=jit)(ROWS, TURNS)
    for lane, turns in enumerate(TURNS):
        for got, wanted in zip(found, network_in_jax(ROWS[lane], turns), strict=True):
            np.testing.assert_allclose(got[lane], wanted, rtol=1e-5)
        for got, wanted in zip(network.single(ROWS[lane], turns), network_in_jax(ROWS[lane], turns), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_gradients_are_those_of_jax():
    rows = tf.constant(ROWS)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        loss = tf.reduce_sum(network(rows, TURNS)[0] ** 2)
    found = tape.gradient(loss, rows)
    for lane, turns in enumerate(TURNS):
        wanted = jax.grad(lambda x, turns=turns: jnp.sum(network_in_jax(x, turns)[0] ** 2))(ROWS[lane])
        np.testing.assert_allclose(found[lane], wanted, rtol=1e-4)


def doublings(x):
    return jax.lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, c[1] + 1), (x, 0))


counted = pcbatch.from_jax(doublings)


@pcbatch.autobatch
def loops(x, n):
    steps = 0
    for _ in range(n):
        steps += counted(x)[1]
    return steps


def test_loops_of_jax_run_per_lane_in_every_surrounding():
    x, n, wanted = tf.constant([1.0, 50.0, 3.0]), tf.constant([1, 2, 3]), [7, 2, 18]
    assert loops(x, n).numpy().tolist() == wanted
    assert tf.function(loops)(x, n).numpy().tolist() == wanted
    specs = [tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)]
    assert tf.function(loops, input_signature=specs)(x, n).numpy().tolist() == wanted


def test_they_are_exported(tmp_path):
    loops.export(tmp_path / "loops.pcb", [1.0], [1])
    found = pcbatch.exported.load(tmp_path / "loops.pcb")([1.0, 50.0, 3.0], [1, 2, 3])
    assert found.tolist() == [7, 2, 18]


def test_structures_and_what_is_given_by_name():
    chosen = pcbatch.from_jax(lambda p, *, flag: {"a": p["x"] * 2, "b": jnp.where(flag, 1, 0)})

    @pcbatch.autobatch
    def f(x, n):
        found = chosen({"x": x}, flag=n > 1)
        return found["a"] + found["b"]

    np.testing.assert_array_equal(f(np.ones(2, np.float32), [1, 2]), [2, 3])


def test_one_function_gives_one():
    assert pcbatch.from_jax(layer, shared=("weights",)) is layer_of_lanes
    assert pcbatch.from_jax(layer) is not layer_of_lanes
    assert isinstance(pcbatch.from_jax(layer)(jnp.ones(3), 1, jnp.asarray(WEIGHTS))[0], jax.Array)


def test_faults_are_told():
    for give, text in (
        (lambda: pcbatch.from_jax(3), "PCB410: from_jax takes a function, not 3"),
        (lambda: pcbatch.from_jax(layer, shared="other"), "PCB410"),
    ):
        with pytest.raises(UsageError, match=text):
            give()

    @pcbatch.autobatch
    def directly(x):
        return jnp.tanh(x)

    with pytest.raises(pcbatch.CompileError, match=r"PCB401: a function of JAX is given a tensor[^$]*pcbatch.from_jax"):
        directly([1.0])

    branching = pcbatch.from_jax(lambda x: x if x > 0 else -x)

    @pcbatch.autobatch
    def branches(x):
        return branching(x)

    with pytest.raises(pcbatch.CompileError, match="PCB401: TracerBoolConversionError"):
        branches([1.0])

    @pcbatch.autobatch
    def differing(x, w):
        return layer_of_lanes(x, 1, w)[0]

    with pytest.raises(pcbatch.CompileError, match="PCB413: the argument `weights`"):
        differing(ROWS, np.stack([WEIGHTS] * 4))

    decomposed = pcbatch.from_jax(jnp.linalg.cholesky)

    @pcbatch.autobatch
    def factor(a):
        return decomposed(a)

    with pytest.raises(
        pcbatch.CompileError, match=r"PCB440: .* TensorFlow has no `lapack_\w+`, which a function of JAX"
    ):
        factor(np.stack([np.eye(3, dtype=np.float32)] * 2))


def log_density(parameters):
    return _normal(parameters["x"])


def _normal(x):
    return -0.5 * jnp.sum(x**2)


def test_functions_of_jax_are_known():
    assert is_of_jax(log_density)
    assert is_of_jax(jax.jit(lambda p: -p))
    assert is_of_jax(functools.partial(_normal))
    assert is_of_jax(jnp.sum)
    assert not is_of_jax(lambda p: -tf.reduce_sum(p * p))
    assert not is_of_jax(lambda p: tf.constant(jnp.float32(1)) * p)
    assert not is_of_jax(layer_of_lanes)
    assert not is_of_jax(None)


def test_a_density_of_jax_is_sampled():
    samples = pcbatch.nuts.sample(log_density, {"x": np.zeros(2)}, chains=8, warmup=200, draws=200, progress=False)
    x = samples.posterior["x"]
    assert np.abs(x.mean((0, 1))).max() < 0.2
    assert np.abs(x.std((0, 1)) - 1).max() < 0.2
    in_tensorflow = pcbatch.nuts.sample(
        lambda p: -0.5 * tf.reduce_sum(p["x"] ** 2), {"x": np.zeros(2)}, chains=8, warmup=5, draws=5, progress=False
    )
    short = pcbatch.nuts.sample(log_density, {"x": np.zeros(2)}, chains=8, warmup=5, draws=5, progress=False)
    np.testing.assert_allclose(short.posterior["x"], in_tensorflow.posterior["x"], rtol=1e-3, atol=1e-3)
