"""The option `output`: the same results as NumPy's arrays, in every form, or a refusal where there can be none."""

from __future__ import annotations

import gc
import pickle
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api.warm import value, warm


@dataclass
class Ended:
    """Where a walk has ended."""

    place: Any
    turns: Any


@pcbatch.autobatch
def walk(x, n):
    """Something of every structure."""
    assert n < 100, "too far"
    turns = 0
    while n > 0:
        x = x * 0.5 + 1.0
        n = n - 1
        turns = turns + 1
    return {"end": Ended(x, turns), "list": [x, x], "flag": turns > 1}, tf.stack([x, x])


@pcbatch.autobatch
def straight(x, n):
    return x, x, n // 2


WIDE = np.arange(3, dtype=np.int64)


@pcbatch.autobatch
def recursive(x, n):
    """One array, not float32, by calls and with a captured array."""
    if n <= 0:
        return tf.cast(x, tf.float64)
    return recursive(x, n - 1) + tf.cast(tf.reduce_sum(WIDE), tf.float64)


FORMS = [
    pytest.param(walk, {}, id="native"),
    pytest.param(recursive, {}, id="native calls"),
    pytest.param(straight, {}, id="straight"),
    pytest.param(straight, {"jit": False}, id="kernels"),
    pytest.param(walk, {"form": "lockstep", "jit": False}, id="lockstep"),
    pytest.param(recursive, {"strategy": "local"}, id="local"),
    pytest.param(walk, {"backend": "reference"}, id="reference"),
    pytest.param(recursive, {"max_lanes": 2, "jit": False}, id="fewer lanes"),
    pytest.param(recursive, {"progress": True, "jit": False}, id="slices"),
]
X, N = np.array([4.0, -1.0, 2.5], np.float32), np.array([3, 0, 1], np.int32)


def flat(result: Any) -> list[Any]:
    """The leaves of a result."""
    if isinstance(result, Ended):
        return flat((result.place, result.turns))
    if isinstance(result, dict):
        return flat(tuple(result.values()))
    return [leaf for each in result for leaf in flat(each)] if isinstance(result, (list, tuple)) else [result]


@pytest.mark.parametrize(("function", "options"), FORMS)
def test_results_are_numpys_and_the_same(function, options):
    """From the first call on, of every structure; for tensors and NumPy's arrays; nothing is compiled anew for it."""
    tensors = function.options(**options)
    arrays = tensors.options(output="numpy")
    wanted = tensors(X, N)
    compiled = tensors.stats()
    for given in ((X.copy(), N), (tf.constant(X), tf.constant(N))):
        for turn in range(4):
            run = arrays.run(*given)
            for found in (arrays(*given), run.value):
                assert type(found) is type(wanted) or tf.is_tensor(wanted)
                assert [type(leaf) for leaf in flat(found)] == [np.ndarray] * len(flat(wanted))
                for leaf, tensor in zip(flat(found), flat(wanted), strict=True):
                    assert (leaf.dtype, leaf.shape) == (tensor.dtype.as_numpy_dtype, tuple(tensor.shape))
                    np.testing.assert_array_equal(leaf, tensor)
                    leaf[...] = 1  # it is the caller's own: no argument, and no other result
                    np.testing.assert_array_equal(given[0], X)
            assert value(run.outcome.values[0]) == value(flat(wanted)[0])
            assert turn < 3 or "progress" in options or warm(arrays, *given)
    assert arrays.stats() == compiled == tensors.stats()
    one = [np.asarray(leaf)[0] for leaf in flat(wanted)]
    single = flat(arrays.single(X[0], N[0]))
    assert not any(map(tf.is_tensor, single))
    np.testing.assert_allclose(np.hstack(single), np.hstack(one), rtol=1e-6)


def test_results_outlive_their_call():
    """Each call writes to memory of its own, which is given back when nobody has a result of it any more."""
    arrays = straight.options(output="numpy"), walk.options(output="numpy")
    for function in arrays:
        held = [flat(function(X + turn, N))[0] for turn in range(4)]
        assert [each.tolist() for each in held] == [flat(function(X + turn, N))[0].tolist() for turn in range(4)]
    last = flat(arrays[1](X, N))[0]
    memory = weakref.ref(last if last.base is None else last.base)
    del last, held
    gc.collect()
    assert memory() is None


def test_a_lane_that_fails():
    arrays = walk.options(output="numpy")
    far = np.array([3, 200, 1], np.int32)
    for _ in range(3):
        run = arrays.run(X, far)
        assert run.status.tolist() == [0, 1, 0]
        with pytest.raises(pcbatch.LaneError, match="too far") as caught:
            arrays(X, far)
        for found in (run.value, caught.value.run.value):
            assert {type(leaf) for leaf in flat(found)} == {np.ndarray}
            np.testing.assert_array_equal(flat(found)[0], [2.25, np.nan, 2.25])
    assert np.isnan(pickle.loads(pickle.dumps(run)).value[0]["end"].place[1])


def test_memory_of_every_kind_is_read_as_it_lies():
    arrays, wide = walk.options(output="numpy"), np.arange(8, dtype=np.float32)
    kept = wide[1:4].copy()
    kept.flags.writeable = False
    for given in (wide[1:7:2], wide[3:0:-1], wide[1:4].astype(">f4"), kept, np.asfortranarray(wide[1:4])):
        wanted = value(walk(np.array(given, np.float32), N)[1])
        assert [value(arrays(given, N)[1]) for _ in range(4)] == [wanted] * 4


def test_no_lanes():
    for function in (walk, straight):
        for _ in range(3):
            found = flat(function.options(output="numpy")(X[:0], N[:0]))
            assert {(type(leaf), len(leaf)) for leaf in found} == {(np.ndarray, 0)}


# -- where there can be none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "options"), [FORMS[0].values, FORMS[2].values, FORMS[6].values])
def test_a_tape_that_would_lose_sight_of_them(function, options):
    arrays, x = function.options(output="numpy", **options), tf.constant(X)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            unseen = flat(arrays(x, N))[0]
            tape.watch(x)
            for call in (arrays, arrays.run):
                with pytest.raises(pcbatch.UsageError, match=r"PCB538: a gradient tape watches the results of \w+"):
                    call(x, N)
            with tape.stop_recording():
                assert value(flat(arrays(x, N))[0]) == value(unseen)
            one = flat(function.options(**options)(x, N))[0]
        assert isinstance(unseen, np.ndarray)
        assert tape.gradient(one, x) is not None
    assert value(flat(arrays(x, N))[0]) == value(unseen)


def test_a_variable_that_a_tape_watches_by_itself():
    w = tf.Variable(2.0)

    @pcbatch.autobatch(output="numpy", jit=False)
    def scaled(n):
        return w * tf.cast(n, tf.float32), n + 1

    with tf.GradientTape(), pytest.raises(pcbatch.UsageError, match=r"PCB538: .*scaled\.options\(output='tensors'\)"):
        scaled(N)
    with tf.GradientTape(), pytest.raises(pcbatch.UsageError, match="PCB538"):
        scaled.single(N[0])
    assert value(scaled(N)[0]) == [6.0, 0.0, 2.0]


def test_a_callers_graph():
    arrays = walk.options(output="numpy")
    for name in ("__call__", "run", "single"):
        with pytest.raises(pcbatch.UsageError, match=r"PCB538: .* inside a tf\.function there are no numbers yet"):
            tf.function(lambda name=name: getattr(arrays, name)(tf.constant(X), tf.constant(N)), autograph=False)()
    result = tf.function(lambda: arrays.options(output="tensors")(tf.constant(X), tf.constant(N))[1])()
    np.testing.assert_array_equal(result, arrays(X, N)[1])
    outside = tf.numpy_function(lambda x, n: arrays(x, n)[1], [X, N], tf.float32)
    np.testing.assert_array_equal(outside, result)


# -- whose option counts -----------------------------------------------------------------------------------------------


@pcbatch.autobatch(output="numpy", jit=False)
def halved(x):
    while x > 1.0:
        x = x * 0.5
    return x


def through_a_helper(x):
    return tf.map_fn(lambda each: each + 1.0, halved(x)[None])[0]


def test_the_entrys_options_are_those_of_all_callees():
    """A program has arrays of one library inside: a callee gives those, called by name or by a helper."""

    @pcbatch.autobatch(jit=False)
    def caller(x):
        return halved(x) + halved(x + 1.0)

    @pcbatch.autobatch(jit=False)
    def indirect(x):
        return through_a_helper(x)

    assert tf.is_tensor(caller(X))
    assert tf.is_tensor(indirect(X))
    assert tf.is_tensor(caller.single(X[0]))
    assert isinstance(caller.options(output="numpy")(X), np.ndarray)
    np.testing.assert_allclose(indirect(X), halved(X) + 1.0)
    np.testing.assert_allclose(caller.options(output="numpy").single(X[0]), caller(X)[0])


def test_they_are_one_function_with_one_program():
    first = pcbatch.autobatch(halved.function, jit=False, output="numpy")
    second = first.options(output="tensors")
    assert second.options(output="numpy") is first
    assert first.session is second.session
    assert first.options(jit=True).session is not first.session
    assert first.changed_options() == {"jit": False, "output": "numpy"}
    assert isinstance(pickle.loads(pickle.dumps(halved.options(max_steps=9)))(X), np.ndarray)
    for name in ("jax", None):
        with pytest.raises(pcbatch.UsageError, match=f"PCB501: output must be 'tensors' or 'numpy', not {name!r}"):
            halved.options(output=name)
