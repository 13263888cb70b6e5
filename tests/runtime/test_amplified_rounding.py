"""A graph network that is iterated amplifies the last bit: batch and single example differ by that, and by no more."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

NODES, WIDTH, LANES, TURNS = 8, 16, 4, 20


def network(dtype):
    """A gated graph network (Li et al., 2016) that is iterated until it settles; its weights are large."""
    random = np.random.default_rng(0)
    weights = [tf.constant(2.0 * random.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5, dtype) for _ in range(7)]
    messages, to_update, update, to_reset, reset, to_new, new = weights

    @pcbatch.autobatch(form="lockstep")
    def settle(edges, h):
        turns, change = 0, tf.constant(1.0, dtype)
        while change > 1e-4 and turns < TURNS:
            m = edges @ (h @ messages)
            z, r = tf.sigmoid(m @ to_update + h @ update), tf.sigmoid(m @ to_reset + h @ reset)
            following = (1.0 - z) * h + z * tf.tanh(m @ to_new + (r * h) @ new)
            change = tf.reduce_max(tf.abs(following - h))
            h = following
            turns += 1
        return h, turns

    return settle


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_differ_as_two_neighbours_do(dtype):
    """Lanes differ from `single` about as much as `single` does from itself when each input is one bit larger."""
    random = np.random.default_rng(1)
    edges = (random.random((LANES, NODES, NODES)) < 0.4).astype(dtype)
    h, eps, settle = random.normal(size=(LANES, NODES, WIDTH)).astype(dtype), np.finfo(dtype).eps, network(dtype)
    values, turns = settle(edges, h)
    apart, neighbours = [], []
    for lane in range(LANES):
        value, count = settle.single(edges[lane], h[lane])
        other, _ = settle.single(edges[lane], (h[lane] * (1.0 + eps)).astype(dtype))
        assert int(count) == int(turns[lane])
        apart.append(float(np.abs(value - values[lane]).max()))
        neighbours.append(float(np.abs(value - other).max()))
    assert max(apart) <= 10.0 * max(neighbours)
    assert max(apart) < 2e5 * eps  # 0.024 in float32, 4e-11 in float64
    assert max(neighbours) > 100.0 * eps  # it does amplify
