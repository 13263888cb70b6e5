"""`f.compile(..)`: after it the first call of such arguments traces nothing and compiles nothing, in every form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api.warm import value, warm
from tests.threads import in_threads

WEIGHTS = tf.constant(np.random.default_rng(0).normal(size=(64, 64)) / 8, tf.float32)


@pcbatch.autobatch
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pcbatch.autobatch
def power(n):
    if n <= 0:
        return 1
    return power(n - 1) * 2 % 1000


@pcbatch.autobatch
def straight(n):
    return n * 2 + 1


@pcbatch.autobatch
def products(n):
    v = tf.ones(64) * tf.cast(n, tf.float32) / 100.0
    while n > 1:
        n = n // 2 if n % 3 > 0 else n - 1
        for _ in range(n % 3):
            v = v * 0.5
        v = tf.tanh(tf.linalg.matvec(WEIGHTS, v))
    return tf.reduce_sum(v)


@pcbatch.autobatch
def tree(n):
    if n <= 1:
        return tf.reduce_sum(WEIGHTS @ (WEIGHTS * 0.1))
    return tree(n - 1) + tree(n - 2)


SLOW = pytest.mark.slow  # of the kind of "lockstep"; each takes seconds of XLA's
FORMS = [
    pytest.param(collatz, {}, id="native"),
    pytest.param(power, {}, id="native calls"),
    pytest.param(collatz, {"form": "lockstep"}, id="lockstep"),
    pytest.param(power, {"form": "lockstep"}, id="growing stacks"),
    pytest.param(collatz, {"form": "lockstep", "max_lanes": 2}, id="fewer lanes", marks=SLOW),
    pytest.param(power, {"jit": False}, id="graph"),
    pytest.param(straight, {}, id="straight"),
    pytest.param(straight, {"jit": False}, id="kernels"),
    pytest.param(power, {"strategy": "hybrid"}, id="hybrid"),
    pytest.param(power, {"strategy": "local"}, id="local"),
    pytest.param(power, {"backend": "reference"}, id="reference"),
    pytest.param(products, {}, id="mixed", marks=SLOW),
    pytest.param(tree, {"fork": True}, id="forked", marks=SLOW),
]
N = np.array([3, 1, 6, 2], np.int32)
SPEC = tf.TensorSpec([4], tf.int32)


@pytest.mark.parametrize(("function", "options"), FORMS)
def test_the_first_call_compiles_nothing(function, options):
    wanted = value(function.options(**options)(N))
    ahead = pcbatch.autobatch(function.function, **options)
    ahead.compile(SPEC)
    known = ahead.stats()
    assert known.compilations > 0 or "backend" in options
    assert warm(ahead, N)
    assert warm(ahead, tf.constant(N))
    np.testing.assert_allclose(in_threads(3, lambda: value(ahead(N))), [wanted] * 3, rtol=1e-5)
    np.testing.assert_allclose(ahead.options(output="numpy")(tf.constant(N)), wanted, rtol=1e-5)
    assert ahead.run(N).status.tolist() == [0] * 4
    now = ahead.stats()
    assert (now.compilations, now.trace_seconds, now.compile_seconds) == (
        known.compilations,
        known.trace_seconds,
        known.compile_seconds,
    )


def test_native_code_serves_any_number_of_lanes():
    ahead = pcbatch.autobatch(power.function)
    ahead.compile(tf.TensorSpec([None], tf.int32))
    known = ahead.stats()
    for lanes in (1, 5, 64):
        for _ in range(3):
            assert len(ahead(np.ones(lanes, np.int32))) == lanes
    assert ahead.stats() == known
    assert known.compilations == 1


class Pair(NamedTuple):
    left: object
    right: object


class Spec:
    """As other libraries have them."""

    shape, dtype = (2, 3), np.dtype(np.float64)


def test_arrays_numbers_structures_and_names():
    @pcbatch.autobatch(static_argnames="mode", in_axes={"scale": None})
    def mixed(pair, more, scale, times=2, mode=SPEC):
        while times > 0:
            pair = Pair(pair.left * scale[0], pair.right + tf.cast(tf.reduce_sum(more["a"]), tf.float32))
            times = times - 1
        return pair, [more["a"], scale]

    pair = Pair(tf.TensorSpec([2], tf.float32), np.ones(2, np.float32))
    mixed.compile(pair, {"a": Spec()}, tf.TensorSpec([3], tf.float32))
    mixed.compile(pair, {"a": Spec()}, scale=tf.TensorSpec([3], tf.float32), times=1, mode=SPEC)
    known = mixed.stats()
    one, batch = np.ones(3, np.float32), (Pair(*np.ones((2, 2), np.float32)), {"a": np.ones((2, 3))})
    assert value(mixed(*batch, one)[0].right) == [7.0, 7.0]
    assert value(mixed(*batch, scale=one, times=1)[0].right) == [4.0, 4.0]
    assert mixed.stats().compilations == known.compilations


def test_what_is_compiled_is_compiled_anew_when_it_has_changed():
    """It is no snapshot: what the function reads from around it is looked at by the first call, too."""
    ahead = pcbatch.autobatch(reading.function)
    ahead.compile(SPEC)
    assert value(ahead(N)) == [4, 2, 7, 3]
    READ["by"] = 10
    try:
        assert value(ahead(N)) == [13, 11, 16, 12]
    finally:
        READ["by"] = 1


READ = {"by": 1}


@pcbatch.autobatch
def reading(n):
    total = n
    while n > 0:
        n = 0
        total = total + READ["by"]
    return total


REFUSED = [
    (collatz, {"form": "lockstep", "jit": False}, [None], "is compiled for one number of lanes"),
    (collatz, {}, None, "leaves sizes open"),
    (collatz, {}, [4, None], "leaves sizes open"),
    (collatz, {"in_axes": None}, [None], "leaves sizes open"),
]


@pytest.mark.parametrize(("function", "options", "shape", "message"), REFUSED)
def test_specs_that_leave_too_much_open(function, options, shape, message):
    with pytest.raises(pcbatch.UsageError, match=f"PCB539: .*{message}"):
        function.options(**options).compile(tf.TensorSpec(shape, tf.int32))


def test_loops_inside_of_operations_run_on_what_is_given():
    @pcbatch.autobatch
    def looping(n):
        return tf.while_loop(lambda n: n != 1, lambda n: (n // 2,), (n,), shape_invariants=(n.shape,))[0][None]

    with pytest.raises(pcbatch.UsageError, match="PCB539: an operation of looping has a loop"):
        looping.compile(SPEC)
    looping.compile(N)
    known = looping.stats()
    assert value(looping(N)) == [[1], [1], [1], [1]]
    assert looping.stats() == known


def test_loops_inside_of_operations_on_numbers_are_not_run():
    @pcbatch.autobatch
    def looping(n):
        return tf.while_loop(lambda n: n != 1, lambda n: (n // 2,), (n,))[0]

    looping.compile(SPEC)
    known = looping.stats()
    assert known.forms == ("native",)
    assert value(looping(N)) == [1, 1, 1, 1]
    assert looping.stats() == known


def test_what_is_no_argument_is_none_here_either():
    endless = []
    endless.append(endless)
    for args, code in (([endless], 511), ([tf.TensorSpec([2], tf.string)], 511), ([], 510), ([SPEC, SPEC], 510)):
        with pytest.raises(pcbatch.UsageError, match=f"PCB{code}"):
            collatz.compile(*args)


class Growing:
    """An object with a method."""

    def __init__(self):
        self.by = 2.0

    @pcbatch.autobatch
    def grown(self, x):
        while x < 5.0:
            x = x * self.by
        return x


def test_a_method_is_compiled_for_its_object_as_it_is():
    growing = Growing()
    growing.grown.compile(tf.TensorSpec([None], tf.float32))
    known = growing.grown.stats()
    assert value(growing.grown([1.0, 3.0])) == [8.0, 6.0]
    assert growing.grown.stats() == known
    growing.by = 3.0
    assert value(growing.grown([1.0, 3.0])) == [9.0, 9.0]


def test_not_in_a_graph():
    with pytest.raises(pcbatch.UsageError, match=r"PCB539: collatz\.compile compiles for ordinary code"):
        tf.function(lambda: collatz.compile(SPEC), autograph=False)()


def test_diagnostics_are_those_of_check():
    @pcbatch.autobatch
    def wrong(n):
        x = 1
        while n > 0:
            n = n - 1
            x = tf.zeros([3])
        return x

    with pytest.raises(pcbatch.CompileError, match="PCB301"):
        wrong.compile(SPEC)


def test_what_was_compiled_is_found_on_disk(tmp_path):
    """Compiling ahead fills a cache, and takes what is there."""
    pcbatch.cache(tmp_path / "cache")
    try:
        for hits in (0, 1):
            ahead = pcbatch.autobatch(collatz.function, name=f"ahead{hits}")
            ahead.compile(SPEC)
            known = ahead.stats()
            assert (known.hits, known.misses) == (hits, 1 - hits)
            assert value(ahead(N)) == value(collatz(N))
            assert ahead.stats() == known
    finally:
        pcbatch.cache(None)
