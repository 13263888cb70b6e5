"""Pieces: abstract evaluation, vectorisation in every context, and errors that point at the user's line."""

import linecache

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import PrimitiveError, Span
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import StructType, TensorType
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import ops
from pcbatch.runtime.backends.tensorflow.pieces import abstract_eval, vectorize
from pcbatch.runtime.backends.tensorflow.structures import type_of

I32, F32, F64, BOOL = (TensorType(name) for name in ("int32", "float32", "float64", "bool"))
WEAK_INT, WEAK_FLOAT = TensorType("int32", (), weak=True), TensorType("float64", (), weak=True)
VECTOR = TensorType("float32", (3,))


def piece(body, reads=(), writes=("y",), shared=(), sites=(), **free):
    """A piece as the emitter makes it: a function from text, line k of its body being line 10 * (k + 1) of user.py."""
    lines = [line for line in body.splitlines() if line]
    results = ", ".join(writes) + ","
    source = "\n    ".join([f"def piece({', '.join((*reads, *shared))}):", *lines, f"return ({results})"])
    namespace = {"tf": tf, "np": np, "_ops": ops, **free}
    file = f"<test {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), namespace)
    spans = tuple(Span("user.py", 10 * (k + 1), 0, 10 * (k + 1), 5) for k in range(len(lines)))
    return Piece(namespace["piece"], tuple(reads), tuple(writes), tuple(shared), tuple(sites), spans)


def modes():
    """Ways to run a function of arrays: at once, in a graph, under XLA, and inside cond inside while_loop."""

    def looped(function):
        def inner(*arrays):
            def body(turn, state):
                taken = tf.cond(turn >= 0, lambda: function(*arrays), lambda: [tf.identity(s) for s in state])
                for new, old in zip(taken, state, strict=True):
                    new.set_shape(old.shape)
                return turn + 1, taken

            start = [tf.zeros_like(array) for array in function(*arrays)]
            return tf.while_loop(lambda turn, _: turn < 2, body, (0, start))[1]

        return inner

    def compiled(jit):
        return lambda function: tf.function(function, jit_compile=jit, autograph=False)

    def dynamic(function):
        def wrapped(*arrays):
            specs = [tf.TensorSpec([None, *array.shape[1:]], array.dtype) for array in arrays]
            return tf.function(function, input_signature=specs, autograph=False)(*arrays)

        return wrapped

    return {
        "eager": lambda f: f,
        "graph": compiled(False),
        "xla": compiled(True),
        "looped graph": lambda f: compiled(False)(looped(f)),
        "looped xla": lambda f: compiled(True)(looped(f)),
        "unknown lanes": dynamic,
    }


@pytest.fixture(params=modes())
def mode(request):
    return modes()[request.param]


def lanes_of(array):
    return tf.shape(array)[0] if array.shape[0] is None else array.shape[0]


def vectorized(p, reads, shared, types, read_types, lanes):
    """`vectorize` of structures, to structures."""
    signature = Signature(read_types, [type_of(value) for value in shared], types)
    leaves = [values.flatten(type_, value) for type_, value in zip(read_types, reads, strict=True)]
    same = [values.flatten(type_, value) for type_, value in zip(signature.shared, shared, strict=True)]
    outputs, site = vectorize(p, signature, leaves, same, lanes)
    return [values.pack(type_, output) for type_, output in zip(types, outputs, strict=True)], site


def run(mode, p, reads, read_types, types, shared=()):
    """The piece's outputs as NumPy arrays, the site vector last where it has checks."""

    def function(*arrays):
        outputs, site = vectorized(p, arrays, shared, types, read_types, lanes_of(arrays[0]))
        return [*outputs, *([] if site is None else [site])]

    return [np.asarray(value) for value in mode(function)(*(tf.constant(read) for read in reads))]


# -- abstract_eval -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reads", "types", "expected"),
    [
        ("y = 1", (), (), WEAK_INT),
        ("y = True", (), (), BOOL),
        ("y = n + 1", ("n",), (WEAK_INT,), WEAK_INT),
        ("y = n * 0.5", ("n",), (WEAK_INT,), WEAK_FLOAT),
        ("y = n + x", ("n", "x"), (WEAK_INT, F64), F64),
        ("y = n < x", ("n", "x"), (WEAK_INT, F64), BOOL),
        ("y = a / a", ("a",), (I32,), F64),
        ("y = np.float64(2.0)", (), (), F64),
        ("y = (n, [x], {'k': x})", ("n", "x"), (WEAK_INT, VECTOR), None),
        ("y = tf.reduce_sum(x)", ("x",), (VECTOR,), F32),
    ],
)
def test_types(body, reads, types, expected):
    if expected is None:
        expected = StructType("tuple", (WEAK_INT, StructType("list", (VECTOR,)), StructType("dict", (VECTOR,), ("k",))))
    assert abstract_eval(piece(body, reads), types, ()) == (expected,)


def test_shared_operands_and_variables():
    variable = tf.Variable(tf.ones([4, 3]))
    p = piece("y = tf.linalg.matvec(W, x)\nz = tf.gather(v, n)", ("x", "n"), ("y", "z"), ("W",), v=variable)
    matrix = TensorType("float32", (4, 3))
    assert abstract_eval(p, (VECTOR, I32), (matrix,)) == (TensorType("float32", (4,)), VECTOR)


# -- vectorize ---------------------------------------------------------------------------------------------------------

LANES = 5
N = np.arange(LANES, dtype=np.int32)


def test_outputs_take_the_joined_types(mode):
    p = piece("y = n + 1\nz = n * 0.5\nt = (n, x)", ("n", "x"), ("y", "z"))
    x = np.linspace(0, 1, LANES).astype(np.float32)
    y, z = run(mode, p, (N, x), (WEAK_INT, F32), (F64, F32))
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, N + 1)
    np.testing.assert_array_equal(z, N * np.float32(0.5))


def test_outputs_that_no_lane_differs_in_are_broadcast(mode):
    p = piece("y = 7\nz = tf.ones([2])\nw = n", ("n",), ("y", "z", "w"))
    y, z, w = run(mode, p, (N,), (I32,), (WEAK_INT, TensorType("float32", (2,)), I32))
    np.testing.assert_array_equal(y, np.full(LANES, 7))
    np.testing.assert_array_equal(z, np.ones((LANES, 2)))
    np.testing.assert_array_equal(w, N)


@pytest.mark.parametrize("lanes", [0, 1, 3])
def test_numbers_of_lanes(mode, lanes):
    p = piece("y = _ops.floordiv(12, n, 3)", ("n",), sites=(3,))
    n = np.arange(lanes, dtype=np.int32)
    y, site = run(mode, p, (n,), (I32,), (I32,))
    np.testing.assert_array_equal(site, np.where(n == 0, 4, 0))
    np.testing.assert_array_equal(y[n > 0], 12 // n[n > 0])


@pytest.mark.parametrize("lanes", [0, 1, 4])
def test_pieces_that_read_nothing(lanes):
    p = piece("y = 2.5\nz = W + 1", (), ("y", "z"), ("W",))
    matrix = TensorType("float32", (2, 2))
    (y, z), site = vectorized(p, (), (tf.ones([2, 2]),), (F64, matrix), (), lanes)
    assert site is None
    np.testing.assert_array_equal(y, np.full(lanes, 2.5))
    np.testing.assert_array_equal(z, np.full((lanes, 2, 2), 2.0))


def test_structures(mode):
    pair = StructType("tuple", (WEAK_INT, VECTOR))
    p = piece("n, x = p\nq = {'sum': x + n, 'n': n}", ("p",), ("q",))
    x = np.arange(LANES * 3, dtype=np.float32).reshape(LANES, 3)

    def function(n, x):
        (value,), _ = vectorized(
            p, [(n, x)], (), (StructType("dict", (VECTOR, I32), ("sum", "n")),), (pair,), lanes_of(n)
        )
        return [value["sum"], value["n"]]

    total, n = mode(function)(tf.constant(N), tf.constant(x))
    np.testing.assert_array_equal(total, x + N[:, None])
    np.testing.assert_array_equal(n, N)


def test_a_shared_matrix_stays_one_product():
    p = piece("y = tf.linalg.matvec(W, x)", ("x",), shared=("W",))
    matrix = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    four = TensorType("float32", (4,))

    @tf.function(autograph=False)
    def function(x, matrix):
        return vectorized(p, (x,), (matrix,), (four,), (VECTOR,), 2)[0][0]

    x = tf.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_allclose(function(x, matrix), tf.linalg.matmul(x, matrix, transpose_b=True))
    graph = function.get_concrete_function(x, matrix).graph
    assert not any(output.shape == [2, 4, 3] for op in graph.get_operations() for output in op.outputs)


def test_gradients_inside_a_piece(mode):
    p = piece("with tf.GradientTape() as tape:\n    tape.watch(x)\n    v = x * x * x\ny = tape.gradient(v, x)", ("x",))
    x = np.linspace(-1, 1, LANES).astype(np.float32)
    (y,) = run(mode, p, (x,), (F32,), (F32,))
    np.testing.assert_allclose(y, 3 * x * x, rtol=1e-6)


def test_undeclared_sites_are_an_internal_error():
    p = piece("y = _ops.floordiv(1, n, 3)", ("n",), sites=(2,))
    with pytest.raises(ValueError, match="declares"):
        vectorized(p, (tf.constant(N),), (), (I32,), (I32,), LANES)


# -- rules of our own --------------------------------------------------------------------------------------------------

SQUARE = np.random.default_rng(0).normal(size=(LANES, 3, 3)).astype(np.float32)
TABLE = tf.Variable(np.arange(12, dtype=np.float32).reshape(6, 2))

RULES = {
    "ResourceGather": ("y = tf.gather(v, n)", (N,), lambda n: TABLE[n]),
    "embedding": ("y = tf.nn.embedding_lookup(v, tf.stack([n, n + 1]))", (N,), lambda n: tf.gather(TABLE, [n, n + 1])),
    "ResourceGatherNd": ("y = tf.gather_nd(v, tf.stack([n, 1]))", (N,), lambda n: TABLE[n, 1]),
    "GatherNd": ("y = tf.gather_nd(W, tf.stack([n, 1]))", (N,), lambda n: TABLE[n, 1]),
    "Qr": ("q, r = tf.linalg.qr(a)\ny = q @ r", (SQUARE,), lambda a: a),
    "Svd": ("y = tf.linalg.svd(a, compute_uv=False)", (SQUARE,), lambda a: tf.linalg.svd(a, compute_uv=False)),
    "MatrixDeterminant": ("y = tf.linalg.det(a)", (SQUARE,), tf.linalg.det),
    "ScatterNd": (
        "y = tf.scatter_nd(tf.stack([[n], [1]]), a[0, :2], [6])",
        (N, SQUARE),
        lambda n, a: tf.scatter_nd([[n], [1]], a[0, :2], [6]),
    ),
    "TensorScatterAdd": (
        "y = tf.tensor_scatter_nd_add(a, tf.stack([[k]]), tf.ones([1, 3]))",
        (N % 3, SQUARE),
        lambda k, a: tf.tensor_scatter_nd_add(a, [[k]], tf.ones([1, 3])),
    ),
    "Betainc": (
        "y = tf.math.betainc(2.0, a, 0.3)",
        (np.abs(SQUARE) + 1,),
        lambda a: tf.math.betainc(tf.fill([3, 3], 2.0), a, tf.fill([3, 3], 0.3)),
    ),
    "CumulativeLogsumexp": (
        "y = tf.math.cumulative_logsumexp(a, axis=1)",
        (SQUARE,),
        lambda a: tf.math.cumulative_logsumexp(a, axis=1),
    ),
    "MirrorPad": (
        "y = tf.pad(a, [[1, 0], [0, 2]], 'REFLECT')",
        (SQUARE,),
        lambda a: tf.pad(a, [[1, 0], [0, 2]], "REFLECT"),
    ),
    "uint32": (
        "u = tf.cast(n, tf.uint32)\n"
        "y = tf.bitwise.bitwise_xor(tf.bitwise.left_shift(u, 13), tf.bitwise.right_shift(~u, 7)) + u",
        (N,),
        lambda n: ((n.astype(np.uint32) << 13) ^ (~n.astype(np.uint32) >> 7)) + n.astype(np.uint32),
    ),
}


NOT_UNDER_XLA = {"ResourceGatherNd", "MatrixDeterminant"}  # XLA has no kernel for these, batched or not


@pytest.mark.parametrize(
    ("name", "jit"), [(n, jit) for n in RULES for jit in (False, True) if not (jit and n in NOT_UNDER_XLA)]
)
def test_rules(name, jit):
    body, arrays, expected = RULES[name]
    names = tuple(("k" if "[k]" in body else "n") if array.dtype == np.int32 else "a" for array in arrays)
    p = piece(body, names, shared=("W",), v=TABLE)
    read_types = [TensorType(array.dtype.name, array.shape[1:]) for array in arrays]
    (type_,) = abstract_eval(p, read_types, (TensorType("float32", (6, 2)),))
    (y,) = run(modes()["xla" if jit else "graph"], p, arrays, read_types, (type_,), (tf.convert_to_tensor(TABLE),))
    lanes = [np.asarray(expected(*lane)) for lane in zip(*arrays, strict=True)]
    np.testing.assert_allclose(y, np.stack(lanes), rtol=2e-4, atol=1e-5)


# -- errors ------------------------------------------------------------------------------------------------------------


def diagnostic(error):
    (only,) = error.value.diagnostics
    return only


def test_an_error_while_tracing_points_at_the_line():
    p = piece("a = x + 1\ny = a + tf.ones([4])\nz = y", ("x",), ("z",))
    with pytest.raises(PrimitiveError) as error:
        abstract_eval(p, (VECTOR,), ())
    assert (diagnostic(error).code, diagnostic(error).span.line) == ("PCB401", 20)
    assert "must be equal" in diagnostic(error).message
    assert error.value.__suppress_context__


def test_an_error_in_a_helper_points_at_the_call():
    def helper(x):
        raise KeyError("weights")

    p = piece("a = x\ny = helper(a)", ("x",), helper=helper)
    with pytest.raises(PrimitiveError) as error:
        abstract_eval(p, (VECTOR,), ())
    assert (diagnostic(error).message, diagnostic(error).span.line) == ("KeyError: 'weights'", 20)


def test_a_weak_float_with_an_int_tensor_says_which_cast():
    p = piece("a = 1\ny = k + h", ("k", "h"))
    with pytest.raises(PrimitiveError, match=r"tf\.cast") as error:
        abstract_eval(p, (I32, WEAK_FLOAT), ())
    assert diagnostic(error).span.line == 20


@pytest.mark.parametrize(("value", "word"), [("'a'", "string"), ("tf.sin", "function"), ("tf.GradientTape()", "tape")])
def test_outputs_that_are_no_tensors(value, word):
    p = piece(f"a = 1\ny = {value}\nz = 1", (), ("y", "z"))
    with pytest.raises(PrimitiveError, match=word) as error:
        abstract_eval(p, (), ())
    assert (diagnostic(error).code, diagnostic(error).span.line) == ("PCB404", 20)


ROWS = np.array([[1.0, 2.0, 1.0], [3.0, 3.0, 3.0]], np.float32)
NUMBERS_OF_THEM = [[0, 1, 0], [0, 0, 0]]


def test_a_missing_rule_names_the_operation_and_the_line(capfd):
    """XLA has no arrays of a length that is known only when they are there, so not even for one lane."""
    p = piece("a = x + 1\ny = tf.unique(a)[1] + 0 * tf.size(tf.unique(a)[0])", ("x",))
    with pytest.raises(PrimitiveError, match="Unique cannot be batched") as error:
        run(modes()["xla"], p, (ROWS,), (VECTOR,), (TensorType("int32", (3,)),))
    assert (diagnostic(error).code, diagnostic(error).span.line) == ("PCB402", 20)
    assert "pcbatch.primitive(fn, batched=..)" in diagnostic(error).help
    assert "pcbatch.fallback(fn)" in diagnostic(error).help
    assert "pfor" not in capfd.readouterr().err
    (found,) = run(modes()["graph"], p, (ROWS,), (VECTOR,), (TensorType("int32", (3,)),))
    np.testing.assert_array_equal(found, NUMBERS_OF_THEM)


def test_a_missing_rule_inside_a_tf_function_runs_lane_after_lane():
    inner = tf.function(lambda x: tf.unique(x + 1)[1], autograph=False)
    p = piece("a = x\ny = inner(a)", ("x",), inner=inner)
    (found,) = run(modes()["eager"], p, (ROWS,), (VECTOR,), (TensorType("int32", (3,)),))
    np.testing.assert_array_equal(found, NUMBERS_OF_THEM)


def test_a_slice_with_lane_bounds_inside_a_helper():
    p = piece("y = tf.ensure_shape(x[n : n + 2], [2])", ("x", "n"))
    reads = (ROWS, np.array([0, 1], np.int32)), (VECTOR, I32), (TensorType("float32", (2,)),)
    with pytest.raises(PrimitiveError, match=r"tf\.gather"):
        run(modes()["xla"], p, *reads)
    (found,) = run(modes()["graph"], p, *reads)
    np.testing.assert_array_equal(found, [[1.0, 2.0], [3.0, 3.0]])


@pytest.mark.parametrize(
    "body",
    [
        "y = tf.cond(n > 0, lambda: _ops.floordiv(1, n, 0), lambda: 0)",
        "y = tf.vectorized_map(lambda i: _ops.floordiv(i, n - i, 0), tf.range(3))",
        "y = tf.map_fn(lambda i: _ops.getitem(tf.range(3), i + n, 0), tf.range(3))",
    ],
)
def test_checks_inside_functions_that_tensorflow_calls_are_refused(body):
    with pytest.raises(PrimitiveError, match="cannot be checked inside"):
        abstract_eval(piece(body, ("n",), sites=(0,)), (I32,), ())
