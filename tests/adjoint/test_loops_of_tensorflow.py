"""`tf.while_loop` with turns by lane, `tf.map_fn` and `tf.scan`: loops of the program, in which lanes meet."""

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

RNG = np.random.default_rng(0)
MATRICES = tf.constant(RNG.normal(size=(3, 8, 8)).astype(np.float32) * 0.3)
W = tf.Variable(np.eye(8, dtype=np.float32) * 0.9)
COUNTS, X = tf.constant([3, 0, 70]), tf.constant([1.0, 2.0, 0.5])


def powers(a, n):
    start = (0, tf.ones([8, 1]))
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(a @ (W @ y))), start)[1]


def at_most(x, n):
    i, s = tf.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, s * 0.9 + x], [0, 0.0], maximum_iterations=5)
    return s, i


def halved(x, n):
    return tf.while_loop(lambda y: y > 0.01, lambda y: [y * 0.5], [x])[0]


def helper(x, n):
    def goes_on(i, y):
        return i < n

    def turn(i, y):
        return i + 1, tf.sin(y) * x

    return tf.while_loop(cond=goes_on, body=turn, loop_vars=(tf.constant(0), x), parallel_iterations=1)


def by_name(x, n):
    return helper(x, n)[1]


def nested(x, n):
    def turn(i, y):
        return i + 1, tf.while_loop(lambda z: z > 1.0, lambda z: (z * 0.5,), (y + x,))[0]

    return tf.while_loop(lambda i, y: i < n, turn, (0, x))[1]


def refused_by_tensorflow(x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.stack([y, y])), (0, x))[1]


ROWS = tf.constant(RNG.normal(size=(3, 70, 8)).astype(np.float32))


def scanned(x, n):
    return tf.scan(lambda s, e: tf.tanh(tf.linalg.matvec(W, s) + e), x)


def backwards(x, n):
    return tf.scan(lambda s, e: s * 0.5 + e, x, tf.zeros([8]), reverse=True, parallel_iterations=1)[0]


def mapped(x, n):
    """Turns within turns, of which lanes make different numbers."""
    return tf.map_fn(lambda e: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.9), (0, e[0]))[1], x[:9])


def mapped_to_ints(x, n):
    return tf.map_fn(lambda e: tf.cast(tf.reduce_sum(e), tf.int32) + n, x, fn_output_signature=tf.int32)


def summed(x, n):
    return tf.scan(lambda s, e: s + e, tf.reduce_sum(x, 1), 0.0), tf.map_fn(tf.reduce_mean, elems=x)


def in_place(x, n):
    """Tensors are no arrays: what a turn makes of its own names nobody else sees."""

    def turn(s, e):
        s += e
        e *= 2.0
        return s * 0.5 + e

    return tf.scan(turn, x), x


OVER_ROWS = (in_place, scanned, backwards, mapped, mapped_to_ints, summed)
CASES = {
    **{each.__name__: (each, (ROWS, COUNTS)) for each in OVER_ROWS},
    "powers": (powers, (MATRICES, COUNTS)),
    **{each.__name__: (each, (X, COUNTS)) for each in (at_most, halved, by_name, nested)},
}
QUICK = ("at_most", "halved", "backwards")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_values_and_places(name):
    function, arguments = CASES[name]
    batched = pcbatch.autobatch(function)
    found = tf.nest.flatten(batched(*arguments))
    rows = [tf.nest.flatten(function(*(each[lane] for each in arguments))) for lane in range(3)]
    for one, wanted in zip(found, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(one, tf.stack(wanted), rtol=1e-5, atol=1e-5)
    assert not any("one after another" in note or "lane after lane" in note for note in batched.stats().notes)
    assert not re.search(r"= (while_loop|map_fn|scan)\w*\(", batched.ir("cfg", *arguments)), (
        "they are calls of Python's"
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}, {"tape": "replay"}])
@pytest.mark.parametrize("name", ["powers", "by_name", "nested", "scanned", "backwards", "mapped"])
def test_gradients(name, options):
    function, arguments = CASES[name]

    def slopes(run):
        with tf.GradientTape() as tape:
            tape.watch(arguments[0])
            loss = tf.reduce_sum(run(*arguments) ** 2)
        return tape.gradient(loss, [arguments[0], W], unconnected_gradients="zero")

    def alone(*given):
        return tf.stack([function(*(each[lane] for each in given)) for lane in range(3)])

    for found, wanted in zip(slopes(pcbatch.autobatch(function, **options)), slopes(alone), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_loop_that_tensorflow_refuses_is_refused():
    with pytest.raises(pcbatch.CompileError, match="PCB401"):
        pcbatch.autobatch(refused_by_tensorflow)(X, COUNTS)


def test_the_same_number_of_turns_stays_one_operation():
    @pcbatch.autobatch
    def cubed(x):
        return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1]

    assert "while_loop" in cubed.ir("cfg", X)


def pairs(x):
    return tf.scan(lambda s, e: (s[0] + e, s[1] * 0.9), x, (x[0], x[1]))[0]


def without_gradient(x):
    return tf.map_fn(tf.reduce_sum, x, back_prop=False)


def few_rows(x):
    return tf.map_fn(tf.reduce_sum, x[:8])


@pytest.mark.parametrize("function", [pairs, few_rows, without_gradient])
def test_what_stays_one_operation(function):
    batched = pcbatch.autobatch(function)
    assert "tf.scan" in batched.ir("cfg", ROWS) or "tf.map_fn" in batched.ir("cfg", ROWS)


def test_a_type_that_tensorflow_refuses_is_refused():
    """Without a signature results are of the rows' dtype."""

    @pcbatch.autobatch
    def counted(x):
        return tf.map_fn(lambda e: tf.cast(tf.reduce_sum(e), tf.int32), x)

    with pytest.raises(pcbatch.CompileError, match="PCB401"):
        counted(ROWS)
