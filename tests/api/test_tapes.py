"""Gradient tapes in the body of a batched function: what eager TensorFlow gives, for each lane, in every mode."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.pairwise import every_second

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


@pytest.mark.parametrize(
    ("program", "mode"), every_second(PROGRAMS, MODES), ids=lambda each: getattr(each, "__name__", each)
)
def test_a_tape_in_the_body(program, mode):
    function = pcbatch.autobatch(program)
    eager = [dense(program(tf.constant(x))) for x in X]
    singly = [dense(function.single(x)) for x in X]
    batch = dense(function.options(**MODES[mode])(X))
    for lane, (plain, single) in enumerate(zip(eager, singly, strict=True)):
        assert len(batch) == len(plain) == len(single)
        for place, got in enumerate(batch):
            where = f"lane {lane}, result {place}"
            np.testing.assert_allclose(got[lane], plain[place], rtol=1e-4, atol=1e-5, err_msg=where)
            np.testing.assert_allclose(got[lane], single[place], rtol=1e-4, atol=1e-5, err_msg=where)


@pcbatch.autobatch(jit=False)
def behind_a_branch(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    if y > 1.0:
        y = y / 2.0
    return tape.gradient(y, x)


@pcbatch.autobatch(jit=False)
def behind_a_store(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    stored = tf.zeros([3])
    stored[tf.cast(y, tf.int32) % 3] = 1.0
    return tape.gradient(y, x), stored


def halvings(y):
    return 0 if y < 1.0 else 1 + halvings(y / 2.0)


@pcbatch.autobatch(jit=False)
def behind_a_call(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    count = halvings(y)
    return tape.gradient(y, x), count


@pytest.mark.parametrize("function", [behind_a_branch, behind_a_store, behind_a_call], ids=lambda f: f.__name__)
def test_a_tape_is_used_up_before_its_block_ends(function):
    with pytest.raises(pcbatch.CompileError, match=r"PCB404: `tape` is a GradientTape, which a lane cannot keep"):
        function.check(X)


def test_a_tape_stops_without_types_too():
    @pcbatch.autobatch(jit=False)
    def partly(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                z = y * y
            y = y * 3.0
        return tape.gradient(y, x), z

    partly.check()
    np.testing.assert_allclose(partly(X)[0], 6.0 * X)
