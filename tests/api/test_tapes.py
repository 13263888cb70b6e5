"""Gradient tapes in the body of a batched function: what eager TensorFlow gives, for each lane, in every mode."""

from __future__ import annotations

import importlib.util

import keras
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError, UsageError
from pcbatch.modulewriter import compiled_module

X = np.array([[1.0, 2.0], [-1.0, 0.5]], np.float32)
MODES = {"xla": {}, "graph": {"jit": False}, "reference": {"backend": "reference"}}

W, U = tf.Variable([1.5, -0.5]), tf.Variable(2.0)
FROZEN = tf.Variable(3.0, trainable=False)
TABLE = tf.Variable(np.arange(12).reshape(6, 2).astype(np.float32))
PARAMETERS = {"w": W, "inner": (U, [W])}
TENSOR = tf.constant([1.0, 2.0])
BY_ANOTHER_NAME = {"tensor": TENSOR, "other": tf.constant(2.0)}


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = tf.Variable([1.0, 2.0]), tf.Variable(0.5)


MODULE = Module()
MODEL = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
for number, weight in enumerate(MODEL.trainable_variables):
    weight.assign(0.1 * (number + np.arange(np.prod(weight.shape), dtype=np.float32).reshape(weight.shape)))


def energy(x):
    return U * tf.reduce_sum(W * x) ** 2


def with_tensor(x):
    return tf.reduce_sum(TENSOR * x) ** 2


def looked_up(x):
    return tf.reduce_sum(tf.gather(TABLE, [0, 3]) * x) + tf.gather_nd(TABLE, [[1, 0]])[0] ** 2


@tf.function
def traced_energy(x):
    return U * tf.reduce_sum(W * x) ** 2


@tf.custom_gradient
def clipped(v):
    return v * v, lambda upstream: tf.clip_by_value(upstream, -0.1, 0.1)


def sources(x):
    """A variable, lists, structures; in the body, in a helper, in both."""
    with tf.GradientTape(persistent=True) as tape:
        inside = U * tf.reduce_sum(W * x) ** 2
        outside = energy(x)
        both = energy(x) * W[0]
        nested = tf.reduce_sum(PARAMETERS["w"] * x) * PARAMETERS["inner"][0]
        of_module = tf.reduce_sum(MODULE.w * x) ** 2 * MODULE.b
    return {
        "one": tape.gradient(inside, W),
        "list": tape.gradient(inside, [W, U]),
        "helper": tape.gradient(outside, (U, W)),
        "both": tape.gradient(both, {"w": W, "u": U}),
        "structure": tape.gradient(nested, PARAMETERS),
        "path": tape.gradient(nested, PARAMETERS["inner"][1][0]),
        "module": tape.gradient(of_module, MODULE.trainable_variables),
        "attribute": tape.gradient(of_module, [MODULE.b]),
        "sum of targets": tape.gradient([inside, of_module], [W, MODULE.w]),
        "unconnected": tape.gradient(of_module, W, unconnected_gradients=tf.UnconnectedGradients.ZERO),
        "upstream": tape.gradient(inside, [W], output_gradients=x[0]),
    }


def ways_of_watching(x):
    """What a tape is told to watch, and when it does."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(U)
        y = energy(x)
    few = tape.gradient(y, [W, U], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(W * x) * FROZEN
    frozen = tape.gradient(y, [W, FROZEN], unconnected_gradients="zero")
    with tf.GradientTape() as tape:
        tape.watch(FROZEN)
        y = tf.reduce_sum(W * x) * FROZEN
    watched = tape.gradient(y, [W, FROZEN])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(W * x) ** 2
        with tape.stop_recording():
            unseen = y * U
        y = y + unseen
    stopped = tape.gradient(y, W)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(W * x) ** 2
        tape.reset()
        y = tf.reduce_sum(W * x) ** 3
    reset = tape.gradient(y, W)
    with tf.GradientTape() as tape:
        y = energy(x)
    known = tf.stack([tf.size(variable) for variable in tape.watched_variables()])
    return few, frozen, watched, stopped, reset, tf.sort(known)


def other_functions(x):
    """Functions with gradients of their own, of a `tf.function`, forward mode."""
    with tf.GradientTape(persistent=True) as tape:
        own = tf.reduce_sum(clipped(W * x))
        traced = traced_energy(x) * U
        read = tf.reduce_sum(W.read_value() * x * W.value())
    with tf.autodiff.ForwardAccumulator(W, tf.ones(2)) as forward:
        y = tf.reduce_sum(W * x) ** 2
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as forward_x:
        z = energy(x)
    first = tape.gradient(own, W), tape.gradient(traced, [W, U]), tape.gradient(read, W)
    return first, forward.jvp(y), forward_x.jvp(z)


def second_order(x):
    """Tapes in tapes."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.sin(W * x))
        squared = tf.reduce_sum(inner.gradient(y, W) ** 2)
    of_gradient = outer.gradient(squared, W)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        y = tf.reduce_sum(tf.sin(W * x))
        squared = tf.reduce_sum(inner.gradient(y, W) ** 2)
    in_one_line = outer.gradient(squared, W)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = energy(x) + tf.reduce_sum(tf.sin(W * x))
        slope = inner.gradient(y, W)
    hessian = outer.jacobian(slope, W)
    return of_gradient, in_one_line, hessian


def jacobians(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        rows = tf.stack([x, 2.0 * x, x * x])
        tape.watch(rows)
        y, scaled = W * x * x * U, W * rows * rows
        with tf.GradientTape() as inner:
            inner.watch(rows)
            total = tf.reduce_sum(W * rows**3)
        slopes = inner.gradient(total, rows)
    return {
        "variable": tape.jacobian(y, W),
        "several": tape.jacobian(y, [W, U, x]),
        "of rows": tape.batch_jacobian(scaled, rows),
        "of a gradient": tape.batch_jacobian(slopes, rows),
    }


def rows_of_a_table(x):
    """Gradients that eager TensorFlow gives as rows and where they go (`tf.IndexedSlices`)."""
    k = tf.cast(x[0] > 0, tf.int32) + 2
    with tf.GradientTape(persistent=True) as tape:
        gathered = tf.reduce_sum(tf.gather(TABLE, k) * x) ** 2
        embedded = tf.reduce_sum(tf.nn.embedding_lookup(TABLE, tf.stack([k, k, 1])) * x) ** 2
        element = tf.reduce_sum(TABLE[k] * x) ** 2
        of_helper = looked_up(x)
    return {
        "gather": tape.gradient(gathered, TABLE),
        "embedding": tf.convert_to_tensor(tape.gradient(embedded, TABLE)),
        "element": tape.gradient(element, TABLE),
        "helper": tape.gradient(of_helper, TABLE),
    }


def keras_weights(x):
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(MODEL(x[None]) ** 2)
        z = tf.reduce_sum(MODEL.layers[0].kernel * x[:, None]) ** 2
    return tape.gradient(y, MODEL.trainable_variables), tape.gradient(z, MODEL.layers[0].kernel)


def tensors(x):
    """A captured tensor is one, in the body, in a helper, and by all its names."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(TENSOR)
        helped = with_tensor(x)
        mixed = with_tensor(x) * TENSOR[0]
        named = tf.reduce_sum(BY_ANOTHER_NAME["tensor"] * x) ** 2 * BY_ANOTHER_NAME["other"]
    return tape.gradient(helped, TENSOR), tape.gradient(mixed, TENSOR), tape.gradient(named, TENSOR)


def descent(x):
    """Per-example gradients in a loop, kept across its turns."""
    v = W * 1.0
    total = tf.zeros_like(W)
    n = 0
    while n < 3 and tf.reduce_sum(total * total) < 10.0:
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = energy(x) + tf.reduce_sum((v * x - W) ** 2)
        by_v, by_w = tape.gradient(y, (v, W))
        v = v - 0.1 * by_v
        total = total + by_w
        n += 1
    return v, total, n


PROGRAMS = [
    sources,
    ways_of_watching,
    other_functions,
    second_order,
    jacobians,
    rows_of_a_table,
    keras_weights,
    tensors,
    descent,
]


def dense(value):
    """The leaves of a result; rows of a table as the table."""
    return [np.asarray(tf.convert_to_tensor(leaf)) for leaf in tf.nest.flatten(value)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_tape_in_the_body(program):
    function = pcbatch.autobatch(program)
    eager = [dense(program(tf.constant(x))) for x in X]
    singly = [dense(function.single(x)) for x in X]
    for mode, options in MODES.items():
        batch = dense(function.options(**options)(X))
        for lane, (plain, single) in enumerate(zip(eager, singly, strict=True)):
            assert len(batch) == len(plain) == len(single)
            for place, got in enumerate(batch):
                where = f"{mode}, lane {lane}, result {place}"
                np.testing.assert_allclose(got[lane], plain[place], rtol=1e-4, atol=1e-5, err_msg=where)
                np.testing.assert_allclose(got[lane], single[place], rtol=1e-4, atol=1e-5, err_msg=where)


def test_a_variable_is_read_anew_and_may_be_another_one():
    slope_of = {"w": tf.Variable([1.0, 2.0])}

    def squared(x):
        return tf.reduce_sum(slope_of["w"] * x) ** 2

    @pcbatch.autobatch(jit=False)
    def slope(x):
        with tf.GradientTape() as tape:
            y = squared(x)
        return tape.gradient(y, slope_of["w"])

    def agrees():
        expected = [slope.single(x) for x in X]
        np.testing.assert_allclose(slope(X), expected, rtol=1e-6)
        return slope.stats().compilations

    compilations = agrees()
    slope_of["w"].assign([-3.0, 0.5])
    assert agrees() == compilations  # a variable is changed without compiling
    slope_of["w"] = tf.Variable([5.0, 1.0])
    agrees()
    other = tf.Variable([7.0, 1.0])
    slope_of["w"] = other
    agrees()


def test_a_variable_that_only_the_body_reads_may_be_another_one():
    held = [tf.Variable(2.0)]

    @pcbatch.autobatch(jit=False)
    def scaled(x):
        with tf.GradientTape() as tape:
            y = held[0] * x
        return y, tape.gradient(y, held[0])

    for number in (2.0, 3.0):
        held[0] = tf.Variable(number)
        y, slope = scaled(X[:, 0])
        np.testing.assert_allclose(y, number * X[:, 0])
        np.testing.assert_allclose(slope, X[:, 0])


MODULE_TEXT = """
import pcbatch
import tensorflow as tf

w = tf.Variable([1.5, -0.5])
t = tf.constant([1.0, 2.0])

def helper(x):
    return tf.reduce_sum(w * t * x) ** 2

@pcbatch.autobatch(jit=False)
def slopes(x):
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = helper(x) * w[0]
    return tape.gradient(y, [w, t])
"""


def test_a_variable_as_an_argument():
    """Where there is a tape it is refused: the array that is read from it is nothing that the tape knows."""

    def slope(x, w):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * x) ** 2
        return tape.gradient(y, w)

    @pcbatch.autobatch(in_axes=(0, {"a": None, "b": None}))
    def by_helper(x, w):
        return slope(x, w["a"]) * w["b"]

    @pcbatch.autobatch(jit=False)
    def by_default(x, w=W):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(w * x) ** 2
        return tape.gradient(y, [x, w], unconnected_gradients="zero")

    given = {"a": W, "b": tf.constant(2.0)}
    np.testing.assert_allclose(by_helper.single(X[0], given), 2.0 * slope(tf.constant(X[0]), W))
    for call in (
        lambda: by_helper(X, given),
        lambda: by_default(X),
        lambda: by_default.options(in_axes=(0, None))(X, W),
    ):
        with pytest.raises(UsageError, match=r"PCB518.* 'w' is a variable"):
            call()
    read = by_default.options(in_axes=(0, None))(X, tf.convert_to_tensor(W))
    np.testing.assert_array_equal(read[1], np.zeros_like(X))

    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def scaled(x, w):
        return x * w

    np.testing.assert_allclose(scaled(X, W), X * W)


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_compiled_ahead_of_time(tmp_path):
    path = tmp_path / "with_tape.py"
    path.write_text(MODULE_TEXT)
    module = load_module(path)
    expected = [dense(module.slopes.single(x)) for x in X]
    written = tmp_path / "written.py"
    written.write_text(compiled_module(path, module.slopes, [X]))
    compiled = load_module(written)
    for change in (None, [2.0, 3.0], tf.Variable([2.0, 3.0])):
        if isinstance(change, list):
            compiled.w.assign(change)
            module.w.assign(change)
            expected = [dense(module.slopes.single(x)) for x in X]
        elif change is not None:
            compiled.w = change
        for lane, singly in enumerate(expected):
            for got, wanted in zip(dense(compiled.slopes(X)), singly, strict=True):
                np.testing.assert_allclose(got[lane], wanted, rtol=1e-5)


@pcbatch.autobatch
def of_parameter(x, w):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x) ** 2
    return tape.gradient(y, w)


@pcbatch.autobatch
def passed_on(x):
    return of_parameter(x, W)


@pcbatch.autobatch
def renamed(x):
    w = W
    while x[0] < 10.0:
        x = x * 2.0
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x)
    return tape.gradient(y, W)


@pcbatch.autobatch
def in_a_loop(x):
    total = tf.zeros_like(W)
    for w in (W, W):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * x)
        total = total + tape.gradient(y, w)
    return total


@pcbatch.autobatch
def chosen(x):
    w = W if x[0] > 0.0 else U * tf.ones_like(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x)
    return tape.gradient(y, W)


@pcbatch.autobatch
def chosen_at_once(x):
    with tf.GradientTape() as tape:
        y = x[0] * (U if x[0] > 0.0 else FROZEN)
    return tape.gradient(y, U)


REFUSED = [passed_on, renamed, in_a_loop, chosen, chosen_at_once]


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_a_variable_itself_does_not_cross_a_branch(function):
    """A tape behind it would take the value for another tensor than the variable."""
    with pytest.raises(CompileError) as error:
        function(X)
    assert {each.code for each in error.value.diagnostics} == {"PCB415"}


def test_the_value_of_a_variable_does():
    @pcbatch.autobatch(jit=False)
    def descent(x):
        w = tf.identity(W)
        for row in TABLE:
            with tf.GradientTape() as tape:
                tape.watch(w)
                y = tf.reduce_sum(w * x * W) ** 2 + tf.reduce_sum(w * row)
            w = w - 0.01 * tape.gradient(y, w)
        return w

    np.testing.assert_allclose(descent(X), [descent.single(x) for x in X], rtol=1e-5)
