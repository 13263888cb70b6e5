"""Native code of functions that call each other in loops, and of one that saves vectors: as in plain Python."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch(form="native", max_steps=60)
def halves(n, k):
    total = 0
    for i in range(3):
        if n % (i + 2) == 0 and n > 0:
            total += smaller(n - 1 - i, k + 1)
        elif n > 1:
            total += halves(n // 2 - i, k)
    return total + k


@pcbatch.autobatch
def smaller(n, k):
    if n <= 0:
        return k
    while n > 2 and n % 3 != 0:
        n = n - 1
    return down(n - 1, k) - halves(n - 2, k + 1)


@pcbatch.autobatch
def down(n, k):
    if n <= 0:
        return halves(n, k)
    return down(n - 1, k + 1)


@pcbatch.autobatch(form="native")
def tree(depth, v):
    if depth <= 0:
        return v * 0.5 + 1.0
    left = tree(depth - 1, v + 1.0)
    if tf.reduce_sum(left) > 60.0:
        return left - v
    right = tree(depth - 1, left * 0.25)
    return left + right * v


def test_functions_that_call_each_other():
    n = np.arange(-2, 60, dtype=np.int32)
    run = halves.run(n, n % 9)
    done = np.flatnonzero(run.status == pcbatch.LaneStatus.OK)
    assert 0 < len(done) < len(n)
    assert set(run.status[run.status != pcbatch.LaneStatus.OK]) == {pcbatch.LaneStatus.MAX_STEPS}
    for lane in done:
        assert run.value[lane] == halves.single(n[lane], n[lane] % 9)


def test_vectors_that_are_saved():
    depth, v = np.arange(6, dtype=np.int32), np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    found = tree(depth, v)
    for lane in range(6):
        np.testing.assert_allclose(found[lane], tree.single(depth[lane], v[lane]), rtol=1e-5)
