"""`pcbatch.primitive` and `pcbatch.fallback`: plain calls, batched forms, operands, gradients, refusals."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError, UsageError
from tests.pairwise import every_second

LANES = 5
X = np.random.default_rng(0).normal(size=(LANES, 3)).astype(np.float32)
N = np.arange(LANES, dtype=np.int32)
WEIGHTS = tf.Variable(np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32))


def forbidden(*args):
    raise AssertionError("only a batched program asks for this form")


def calling(function):
    """A function that can be batched, of one argument, that calls `function`."""

    def caller(x):
        return function(x)

    return caller


def agrees(function, *arguments, jit):
    """`function`, batched, is in every lane what it is for one example; by a loop in Python over the lanes."""
    batched = pcbatch.autobatch(function, jit=jit)
    got = tf.nest.flatten(batched(*arguments))
    for lane in range(LANES):
        wanted = tf.nest.flatten(batched.single(*(argument[lane] for argument in arguments)))
        for whole, one in zip(got, wanted, strict=True):
            assert whole.dtype == getattr(one, "dtype", whole.dtype)
            np.testing.assert_allclose(whole[lane], one, rtol=2e-5, atol=1e-6)


jits = pytest.mark.parametrize("jit", [False, True], ids=["graph", "xla"])


def test_plain_calls_run_the_function():
    double = pcbatch.primitive(lambda x: 2 * x, forbidden)
    assert double(4) == 8
    assert pcbatch.fallback(lambda x, by=2: by * x)(4, by=3) == 12
    assert tf.function(double)(tf.constant(4)) == 8


@jits
def test_the_batched_form_gets_the_whole_batch(jit):
    seen = []

    def whole(x, n, weight, flag):
        seen.append([tuple(value.shape) for value in (x["x"], n, weight, flag)])
        total = tf.reduce_sum(x["x"], axis=1) * weight
        return total + tf.cast(n, tf.float32), (tf.where(flag, n, 0), x["x"])

    @pcbatch.primitive(batched=whole)
    def one(x, n, weight, flag):
        return tf.reduce_sum(x["x"]) * weight + n, (n if flag else 0, x["x"])

    def function(x, n):
        turns = 0
        for turn in range(n):
            result, (turns, x) = one({"x": x * 2.0}, turn, 0.5, True)
            x = x + result
        return x, turns

    agrees(function, X, N, jit=jit)
    assert set(map(tuple, seen)) == {((LANES, 3), (LANES,), (LANES,), (LANES,))}


@jits
def test_shared_arguments_come_as_they_are(jit):
    seen = []

    def whole(matrix, x, power, *, name):
        seen.append((tuple(matrix.shape), power, name))
        return tf.matmul(x, matrix, transpose_b=True) ** power

    @pcbatch.primitive(batched=whole, shared=("matrix", "power", "name"))
    def one(matrix, x, power, *, name):
        return tf.linalg.matvec(matrix, x) ** power

    agrees(calling(lambda x: one(WEIGHTS, x, 2, name="square")), X, jit=jit)
    assert set(seen) == {((3, 3), 2, "square")}


@jits
def test_arguments_that_all_lanes_share_are_repeated(jit):
    cross = pcbatch.primitive(tf.linalg.cross, tf.linalg.cross)
    agrees(calling(lambda x: cross(tf.constant([1.0, 2.0, 3.0]), cross(x, WEIGHTS[0]))), X, jit=jit)
    agrees(calling(lambda x: x + cross(WEIGHTS[1], WEIGHTS[0])), X, jit=jit)


def energy(x, weight):
    return tf.reduce_sum(tf.linalg.matvec(WEIGHTS, x) ** 2) * weight


def energies(x, weight):
    return tf.reduce_sum(tf.matmul(x, WEIGHTS, transpose_b=True) ** 2, axis=1) * weight


CALLS = {
    "batched form": pcbatch.primitive(energy, energies),
    "shared": pcbatch.primitive(energy, energies, shared=("weight",)),
    "fallback": pcbatch.fallback(energy),
}


def slope(call, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = call(x, 1.5)
    return tape.gradient(value, x)


def curvature(call, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(slope(call, x) ** 2)
    return tape.gradient(value, x)


def slopes_of_all(call, x, weight):
    with tf.GradientTape() as tape:
        tape.watch([x, weight])
        value = call(x, weight) ** 2
    return tape.gradient(value, [x, weight, WEIGHTS])


@pytest.mark.parametrize(("name", "jit"), every_second(CALLS, (True, False)))
def test_gradients(name, jit):
    call = CALLS[name]
    agrees(calling(lambda x: (slope(call, x), curvature(call, x))), X, jit=jit)
    if name != "shared":
        agrees(calling(lambda x: slopes_of_all(call, x, x[0])), X, jit=jit)


@jits
def test_gradients_of_shared_arguments_are_those_of_the_lane(jit):
    product = pcbatch.primitive(
        lambda matrix, x: tf.reduce_sum(tf.linalg.matvec(matrix, x)),
        lambda matrix, x: tf.reduce_sum(tf.matmul(x, matrix, transpose_b=True), axis=1),
        shared=("matrix",),
    )

    def slopes(x):
        matrix = tf.identity(WEIGHTS)
        with tf.GradientTape() as tape:
            tape.watch(matrix)
            value = product(matrix, x)
        return tape.gradient(value, matrix)

    agrees(calling(slopes), X, jit=jit)


@jits
def test_a_looped_call_may_read_what_is_around_it(jit):
    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            weighted = pcbatch.fallback(lambda vector: vector * x * WEIGHTS[0])
            value = tf.reduce_sum(weighted(x + 1.0))
        return tape.gradient(value, x)

    agrees(calling(slopes), X, jit=jit)


@jits
def test_a_call_inside_a_function_that_tensorflow_runs(jit):
    cube = pcbatch.primitive(lambda x: x * x * x, lambda x: x**3)
    inner = tf.function(lambda x: cube(x) + 1.0, autograph=False)
    agrees(calling(inner), X, jit=jit)
    agrees(
        calling(lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, cube(y) * 0.5), (0, x))[1]), X, jit=jit
    )


def test_junk_lanes_and_integers():
    """Lanes that wait elsewhere take part in a batched form, and are not heard."""
    divide = pcbatch.primitive(lambda a, b: a // b, lambda a, b: tf.math.floordiv(a, tf.where(b == 0, 1, b)))

    def function(n):
        total = 0
        while n > 0:
            total += divide(60, n)
            n -= 1
        return total

    agrees(function, N, jit=False)


def refusal(function, code, *arguments):
    with pytest.raises(CompileError) as error:
        pcbatch.autobatch(calling(function))(*arguments)
    (only,) = error.value.diagnostics
    assert only.code == code
    assert only.span is not None
    assert only.span.file == __file__
    return only.message


def test_batched_forms_are_checked():
    other_dtype = pcbatch.primitive(tf.identity, lambda x: tf.cast(x, tf.float64))
    other_structure = pcbatch.primitive(lambda x: (x, x), lambda x: x)
    assert "float64[5, 3], not float32[lanes, 3]" in refusal(other_dtype, "PCB411", X)
    assert "another structure" in refusal(lambda x: other_structure(x)[0], "PCB411", X)
    assert "KeyError" in refusal(pcbatch.primitive(tf.identity, lambda x: {}["x"]), "PCB412", X)
    assert "around it" in refusal(lambda x: pcbatch.primitive(lambda y: y + x, lambda y: y + x)(x), "PCB413", X)


def test_impure_functions_are_refused():
    dropout = pcbatch.fallback(lambda x: tf.nn.dropout(x, 0.5))
    assert "hidden state" in refusal(dropout, "PCB118", X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pcbatch.primitive(3),
        lambda: pcbatch.primitive(tf.abs, 3),
        lambda: pcbatch.fallback(pcbatch.autobatch(energy)),
        lambda: pcbatch.primitive(energy, energies, shared=("y",)),
        lambda: pcbatch.primitive(energy, energies, shared="weight"),
    ],
)
def test_misuse(make):
    with pytest.raises(UsageError, match="PCB410"):
        make()


def test_a_function_that_captures_something_else_now_is_compiled_anew():
    factor = 2.0

    @pcbatch.fallback
    def scaled(x):
        return x * factor

    function = pcbatch.autobatch(calling(scaled))
    np.testing.assert_array_equal(function(X), X * 2)
    factor = 3.0
    np.testing.assert_array_equal(function(X), X * 3)
