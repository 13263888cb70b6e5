"""Rules of our own under a gradient and in double precision, against a loop over the lanes in Python."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import PrimitiveError
from tools.operations.catalogue import LANES, examples, shared


def table(x):
    """A matrix for vectors like `x`."""
    return tf.cast(tf.reshape(tf.range(4 * x.shape[0]) % 5, [4, x.shape[0]]), x.dtype)


RULES = {
    "gather of a variable": (lambda x, k: tf.cast(tf.gather(shared()["V"], k), x.dtype) * x[:, None], "xk"),
    "scatter_nd": (lambda x, k: tf.scatter_nd(k[:, None], x, [4]) ** 2, "xk"),
    "tensor_scatter_add": (lambda x, k, y: tf.tensor_scatter_nd_add(x, k[:, None], y) ** 2, "xky"),
    "tensor_scatter_sub": (lambda x, k, y: tf.tensor_scatter_nd_sub(x, k[:, None], y) ** 2, "xky"),
    "tensor_scatter_max": (lambda x, k, y: tf.tensor_scatter_nd_max(x, k[:, None], y) ** 2, "xky"),
    "qr": (lambda a: tf.linalg.qr(a).r ** 2, "a"),
    "svd": (lambda a: tf.linalg.svd(a, compute_uv=False), "a"),
    "cumulative_logsumexp": (lambda m: tf.math.cumulative_logsumexp(m, axis=1), "m"),
    "mirror pad": (lambda m: tf.pad(m, [[1, 0], [0, 2]], "REFLECT") ** 2, "m"),
    "pad with a value": (lambda m: tf.pad(m, [[1, 0], [0, 2]], constant_values=7.0) ** 2, "m"),
    "unsorted segments": (lambda x, k: tf.math.unsorted_segment_sum(x, k, 4) ** 2, "xk"),
    "reverse_sequence": (lambda m, k: tf.reverse_sequence(m, k[:3], seq_axis=1) ** 2, "mk"),
    "reverse_sequence, batches behind": (lambda m: tf.reverse_sequence(m, [1, 0, 3, 2], 0, 1) ** 2, "m"),
    "reverse_sequence, inner axes": (lambda e, k: tf.reverse_sequence(e, k % 3, 2, 1) ** 2, "ek"),
    "reverse_sequence, back": (lambda e, k: tf.reverse_sequence(e, k[:2], 0, 2) ** 2, "ek"),
    "l2 loss": (lambda x: tf.nn.l2_loss(x), "x"),
    "one row for all": (lambda w: (w[None] @ tf.ones([2, 3], w.dtype)) ** 2, "w"),
    "one matrix for all": (lambda x: tf.linalg.matvec(table(x), x) ** 2, "x"),
    "one matrix for all, transposed": (
        lambda x: tf.linalg.matvec(tf.transpose(table(x)), x, transpose_a=True) ** 2,
        "x",
    ),
    "one matrix for all rows": (lambda x: tf.matmul(table(x), x[None], transpose_b=True) ** 2, "x"),
    "rows times one matrix": (lambda m: tf.matmul(m, tf.ones([4, 2], m.dtype)) ** 2, "m"),
    "rows times one matrix, both transposed": (
        lambda m: tf.matmul(m, tf.ones([2, 3], m.dtype), transpose_a=True, transpose_b=True) ** 2,
        "m",
    ),
    "conv1d": (lambda m, w: tf.nn.conv1d(m[None], w[None], 1, "SAME") ** 2, "mw"),
    "conv2d": (lambda e, f: tf.nn.conv2d(e[None], f, 2, "SAME") ** 2, "ef"),
    "conv2d, shared image": (lambda f: tf.nn.conv2d(tf.ones([1, 3, 3, 2], f.dtype), f, 1, "VALID") ** 2, "f"),
    "depthwise": (lambda e, f: tf.nn.depthwise_conv2d(e[None], f, [1, 1, 1, 1], "SAME") ** 2, "ef"),
    "conv3d": (lambda v, f: tf.nn.conv3d(v[None], f[None], [1] * 5, "SAME") ** 2, "vf"),
    "transposed": (
        lambda e, f: tf.nn.conv2d_transpose(e[None], tf.transpose(f, [0, 1, 3, 2]), [1, 4, 4, 3], 1) ** 2,
        "ef",
    ),
}
ONLY_GRAPH = {
    "det": (lambda a: tf.linalg.det(a), "a"),
    "euclidean norm": (lambda m: tf.math.reduce_euclidean_norm(m, axis=1), "m"),
    "lu": (lambda a: tf.linalg.lu(a).lu, "a"),
}
ON_KERNELS_WITHOUT_GRADIENT = {"lu"}


def applied(function, count):
    def one(x):
        return function(x)

    def two(x, y):
        return function(x, y)

    def three(x, y, z):
        return function(x, y, z)

    return (one, two, three)[count - 1]


@pytest.mark.parametrize("jit", [False, True])
def test_a_shared_matrix_and_no_lanes(jit):
    """Vectors of no lanes are no rows."""
    product = pcbatch.autobatch(applied(RULES["one matrix for all"][0], 1), jit=jit)
    assert product(tf.zeros([0, 4])).shape == (0, 4)


def with_slopes(function):
    def value_and_slopes(*values):
        floats = [value for value in values if value.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            value = function(*values)
        return value, tape.gradient(value, floats)

    return value_and_slopes


def check(function, letters, dtype, jit):
    arrays = [examples()[letter] for letter in letters]
    arrays = [array.astype(dtype) if array.dtype == np.float32 else array for array in arrays]
    got = pcbatch.autobatch(applied(function, len(letters)), jit=jit)(*arrays)
    precise = {"float32": (1e-3, 1e-4), "float64": (1e-9, 1e-10)}[dtype]
    for lane in range(LANES):
        wanted = function(*(tf.constant(array[lane]) for array in arrays))
        for batch, one in zip(tf.nest.flatten(got), tf.nest.flatten(wanted), strict=True):
            assert batch.dtype == one.dtype
            np.testing.assert_allclose(batch[lane], one, *precise)


@pytest.mark.parametrize("name", RULES | ONLY_GRAPH)
def test_gradients_in_double_precision(name):
    function, letters = (RULES | ONLY_GRAPH)[name]
    check(function if name in ON_KERNELS_WITHOUT_GRADIENT else with_slopes(function), letters, "float64", jit=False)


@pytest.mark.parametrize("name", RULES)
def test_gradients_under_xla(name):
    function, letters = RULES[name]
    check(with_slopes(function), letters, "float32", jit=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.while_loop(lambda s: tf.reduce_sum(s) < 50.0, lambda s: (s * 1.5 + 1.0,), (x,))[0],
        lambda x: tf.map_fn(lambda row: row * 2.0, x),
        lambda x: tf.scan(lambda total, row: total + row, x),
        lambda x: tf.linalg.expm(x[:, None] * x),
    ],
    ids=["while_loop", "map_fn", "scan", "expm"],
)
def test_loops_that_xla_does_not_take_once_they_are_batched(function):
    """They run lane after lane."""
    check(function, "x", "float32", jit=True)


def test_segments_of_unknown_number():
    batched = pcbatch.autobatch(applied(lambda x, k: tf.ensure_shape(tf.math.segment_sum(x, tf.sort(k)), [4]), 2))
    with pytest.raises(PrimitiveError, match=r"PCB402(.|\n)*unsorted_segment_sum"):
        batched(examples()["x"], examples()["k"])


def test_reading_a_variable_is_fresh():
    variable = shared()["V"]
    batched = pcbatch.autobatch(applied(lambda i: tf.gather(variable, i), 1))
    before = variable.numpy()
    try:
        np.testing.assert_array_equal(batched(examples()["i"]), before[examples()["i"]])
        variable.assign(before + 1)
        np.testing.assert_array_equal(batched(examples()["i"]), (before + 1)[examples()["i"]])
    finally:
        variable.assign(before)


def test_what_is_not_less_may_be_nan():
    """TensorFlow's optimiser of graphs makes `a > b` of `not a <= b`."""

    @pcbatch.autobatch
    def program(x, y):
        turns, found = 0, 0
        while not x > y:
            turns += 1
            x = x + 1.0
            if tf.logical_not(x < 2.0) or ~(x >= 4.0):
                found += 1
            if turns == 9:
                break
        return turns, found, tf.math.logical_not(y >= 0.0)

    x, y = np.array([np.nan, 0, 1, 2], np.float32), np.array([1, 3, np.nan, np.nan], np.float32)
    wanted = [[int(each) for each in program.single(a, b)] for a, b in zip(tf.constant(x), tf.constant(y), strict=True)]
    found = program.options(form="lockstep", jit=False)(x, y)
    np.testing.assert_array_equal(np.stack(found, 1), wanted)
    with tf.GradientTape() as tape:
        tape.watch(floats := tf.constant(x))
        taped = program.options(form="lockstep", jit=False)(floats, y)
    np.testing.assert_array_equal(np.stack(taped, 1), wanted)


@pytest.mark.parametrize("lanes", [0, 1, 2])
@pytest.mark.parametrize("how", ["by depth", "in a graph"])
def test_a_squeeze_keeps_the_axis_of_lanes_however_many_there_are(lanes, how):
    """Code that is traced for any number of lanes: Keras's `add` squeezes biases in it."""

    @pcbatch.autobatch(jit=False)
    def squeezed(x, y):
        return tf.squeeze(x) + tf.nn.bias_add(y, tf.squeeze(x)), tf.squeeze(y, 0), tf.reshape(y, [2, 1])

    given = [np.arange(2 * lanes, dtype=np.float32).reshape(lanes, 1, 2)] * 2
    if how == "by depth":
        found = squeezed.options(strategy="depth", jit=True)(*given)
    else:
        found = tf.function(squeezed, input_signature=[tf.TensorSpec([None, 1, 2])] * 2)(*given)
    np.testing.assert_array_equal(found[0], 3 * given[0])
    np.testing.assert_array_equal(found[1], given[0][:, 0])
    np.testing.assert_array_equal(found[2], given[0].transpose(0, 2, 1))
