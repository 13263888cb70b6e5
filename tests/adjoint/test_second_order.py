"""Second derivatives and Jacobians through batched calls, against tapes over lane after lane and differences."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

RNG = np.random.default_rng(0)
W = tf.Variable(RNG.normal(size=(2, 2)) * 0.5)
TABLE = tf.Variable(RNG.normal(size=(5, 2)))
X = tf.constant([[1.0, 2.0], [3.0, 0.5], [0.1, 0.2]], tf.float64)
COUNTS, WORDS = tf.constant([2, 0, 3]), tf.constant([[0, 1, 0], [2, 2, 4], [1, 0, 3]])


@pcbatch.autobatch
def loop(x, n):
    while n > 0:
        x = tf.tanh(tf.linalg.matvec(W, x)) + 0.1 * x * x
        n = n - 1
    return x


@pcbatch.autobatch
def tree(x, n):
    if n <= 1:
        return tf.sin(x) * x
    a = tree(x * 0.9, n - 1)
    b = tree(x + 0.1, n - 2)
    return tf.tanh(tf.linalg.matvec(W, a)) * b


@pcbatch.autobatch
def looked_up(words, n):
    state = tf.zeros([2], tf.float64)
    for i in range(n):
        state = 1.1 * tf.tanh(state + tf.gather(TABLE, words[i]))
    return state


@pcbatch.autobatch
def stored(x, n):
    a = tf.zeros([4], tf.float64)
    for i in range(n):
        a[i] = x[0] * x[1] * tf.cast(i + 1, tf.float64)
        a[0] += a[i] ** 2
    return a


@pcbatch.autobatch
def faulty(x, n):
    assert n > 0, "none"
    return x**3 * tf.cast(n, tf.float64)


CASES = {
    "loop": (loop, (X, COUNTS), (X, W)),
    "tree": (tree, (X, COUNTS), (X, W)),
    "looked_up": (looked_up, (WORDS, COUNTS), (TABLE,)),
    "stored": (stored, (X, COUNTS), (X,)),
}


def alone(function):
    return lambda *given: tf.stack([function.single(*(each[lane] for each in given)) for lane in range(len(given[0]))])


def product(function, arguments, sources, directions):
    """The product of the Hessian of a sum of squares with a direction: by reverse mode over reverse mode."""
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = tf.reduce_sum(function(*arguments) ** 2)
        slopes = tape.gradient(y, sources)
        along = tf.add_n([tf.reduce_sum(tf.convert_to_tensor(a) * b) for a, b in zip(slopes, directions, strict=True)])
    return outer.gradient(along, sources)


def directions(sources):
    return [tf.constant(np.random.default_rng(5).normal(size=each.shape)) for each in sources]


def close(found, wanted, **how):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(a), tf.convert_to_tensor(b), **({"rtol": 1e-8, "atol": 1e-10} | how)
        )


OPTIONS = [{"form": "lockstep"}, {"tape": "replay"}, {"fork": True}, {"strategy": "local"}]
SLOW = [
    pytest.param(name, o, marks=pytest.mark.slow) for name in CASES for o in ({}, *OPTIONS) if (name, o) != ("loop", {})
]


@pytest.mark.parametrize(("name", "options"), [("loop", {}), *SLOW])
def test_a_product_with_the_hessian(name, options):
    function, arguments, sources = CASES[name]
    along = directions(sources)
    wanted = product(alone(function), arguments, sources, along)
    close(product(function.options(**options), arguments, sources, along), wanted)


@pytest.mark.slow
def test_a_product_with_the_hessian_is_a_difference_of_gradients():
    (way,) = directions([X])

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tree(x, COUNTS) ** 2)
        return tape.gradient(y, x)

    step = 1e-5
    close(
        product(tree, (X, COUNTS), [X], [way]),
        [(slope(X + step * way) - slope(X - step * way)) / (2 * step)],
        rtol=1e-5,
    )


@pytest.mark.slow
def test_inside_of_a_tf_function():
    along = directions([X, W])
    wanted = product(alone(loop), (X, COUNTS), (X, W), along)
    inside = tf.function(lambda x, n: product(loop, (x, n), (x, W), along), autograph=False)
    close(inside(X, COUNTS), wanted)


SCALE = tf.Variable(0.9, dtype=tf.float64)


def powers(x, n):
    y = x
    for _ in range(n):
        y = tf.sin(y) * x * SCALE
    return y


@pytest.mark.parametrize("persistent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_around_a_tf_function(persistent):
    """Both tapes, of which the second one sees a gradient that TensorFlow has derived from the function's graph."""
    batched = pcbatch.autobatch(powers)
    x = X[:, 0]

    def curved(function):
        with tf.GradientTape(persistent=persistent) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x, COUNTS)
            slope = tape.gradient(y, x)
        return outer.gradient(slope, x)

    inside = tf.function(lambda *given: batched(*given), autograph=False)
    close([curved(inside)], [curved(alone(batched))])


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_products_around_a_tf_function(name, cached, tmp_path):
    """The gradient of the gradient is ours there, too, whether programs are kept on disk or not."""
    function, arguments, sources = CASES[name]
    along, fresh = directions(sources), function.options(name=f"{name}_{cached}")
    pcbatch.cache(tmp_path if cached else None)
    try:
        inside = tf.function(lambda *given: fresh(*given), autograph=False)
        close(product(inside, arguments, sources, along), product(alone(function), arguments, sources, along))
    finally:
        pcbatch.cache(None)


@pytest.mark.slow
def test_third_derivatives():
    @pcbatch.autobatch
    def power(x, n):
        y = tf.ones([], tf.float64)
        for _ in range(n):
            y *= x
        return y

    x, n = tf.constant([2.0, 3.0, 5.0], tf.float64), tf.constant([4, 3, 1])
    with tf.GradientTape() as third, tf.GradientTape() as second, tf.GradientTape() as first:
        for tape in (third, second, first):
            tape.watch(x)
        y = power(x, n)
        slope = first.gradient(y, x)
        curve = second.gradient(slope, x)
    np.testing.assert_allclose(third.gradient(curve, x), [48.0, 6.0, 0.0], rtol=1e-9)


@pytest.mark.slow
def test_forward_mode_over_reverse_mode():
    (way,) = directions([X])
    with tf.autodiff.ForwardAccumulator(X, way) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(alone(loop)(X, COUNTS) ** 2)
        slope = tape.gradient(y, X)
    close(product(loop, (X, COUNTS), [X], [way]), [accumulator.jvp(slope)])


@pytest.mark.slow
def test_a_failed_lane_has_no_second_derivative_and_no_lanes_have_none():
    n = tf.constant([2, 0, 1])
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.reduce_sum(faulty.run(X, n).value[0]) + tf.reduce_sum(faulty.run(X, n).value[2])
        total = tf.reduce_sum(tape.gradient(y, X))
    close([outer.gradient(total, X)], [tf.stack([12.0 * X[0], 0.0 * X[1], 6.0 * X[2]])])
    none = X[:0]
    product(loop, (none, COUNTS[:0]), (none, W), [none, tf.ones_like(W)])


def jacobian(function, arguments, source, kind="jacobian", **how):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(source)
        y = function(*arguments)
    return getattr(tape, kind)(y, source, **how)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("loop", 0),
        *(
            pytest.param(n, p, marks=pytest.mark.slow)
            for n, p in [("loop", 1), ("tree", 0), ("tree", 1), ("looked_up", 0), ("stored", 0)]
        ),
    ],
)
def test_all_rows_of_a_jacobian_at_once(name, place):
    function, arguments, sources = CASES[name]
    wanted = jacobian(alone(function), arguments, sources[place], experimental_use_pfor=False)
    close([jacobian(function, arguments, sources[place])], [wanted])


def test_a_jacobian_around_a_tf_function():
    """TensorFlow vectorises the gradient that was traced with the function: one run of it is made after another."""

    @pcbatch.autobatch
    def scaled(x):
        return tf.linalg.matvec(W, x) * x

    inside = tf.function(lambda x: scaled(x), autograph=False)
    close([jacobian(inside, [X], X)], [jacobian(scaled, [X], X)])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_jacobians_around_a_tf_function(name):
    function, arguments, sources = CASES[name]
    inside = tf.function(lambda *given: function(*given), autograph=False)
    for source in sources:
        wanted = jacobian(alone(function), arguments, source, experimental_use_pfor=False)
        close([jacobian(inside, arguments, source)], [wanted])


@pytest.mark.slow
def test_a_batch_jacobian_around_a_tf_function():
    inside = tf.function(lambda *given: loop(*given), autograph=False)
    wanted = jacobian(loop, (X, COUNTS), X, "batch_jacobian")
    close([jacobian(inside, (X, COUNTS), X, "batch_jacobian")], [wanted])


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_the_jacobians_of_a_batch(options):
    first = X[:1]
    wanted = jacobian(alone(tree), (first, COUNTS[:1]), first, experimental_use_pfor=False)
    found = jacobian(tree.options(**options), (X, COUNTS), X, "batch_jacobian")
    close([found[0]], [wanted[0, ..., 0, :]])
    inside = tf.function(lambda x, n: jacobian(tree.options(**options), (x, n), x, "batch_jacobian"), autograph=False)
    close([inside(X, COUNTS)], [found])


@pytest.mark.slow
def test_a_hessian_by_a_jacobian_of_the_gradient():
    def hessian(function):
        with tf.GradientTape(persistent=function is not loop) as outer:
            outer.watch(X)
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = tf.reduce_sum(function(X, COUNTS) ** 2)
            slope = tape.gradient(y, X)
        return outer.jacobian(slope, X, experimental_use_pfor=function is loop)

    close([hessian(loop)], [hessian(alone(loop))])
