"""Every function of `math` and NumPy that has an equivalent, against the original: values, shapes, ints and floats."""

from __future__ import annotations

import math
from operator import attrgetter

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import math_equivalents, numpy_equivalents
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.weak import Weak
from pcbatch.single.values import Number

DOUBLES = (0.3, 0.75, -0.5, 1.0, 1.5, 2.5, -2.5, 7.25, 0.0)
OF_TWO = ("atan2", "copysign", "fmod", "hypot", "pow")

VECTOR = np.array([0.5, -0.25, 1.0, 0.0, -1.0])
COUNTS = np.array([3, 1, -2, 0, 3], np.int32)
LARGE = np.array([1.0, 2.5, 3.5, 9.0, 1.25])
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
CUBE = np.arange(24, dtype=np.float64).reshape(2, 3, 4) - 7
TRUTHS = np.array([True, False, True, True, False])
BYTES = np.array([1, 200, 255, 0, 7], np.uint8)
PLACES = np.array([2**40, -3, 0, 7, -(2**40)])
ODD = np.array([np.nan, np.inf, -0.0, 1.5, -np.inf, 0.5])
ONE = [(VECTOR,), (COUNTS,), (LARGE,), (MATRIX,)]
TWO = [(VECTOR, LARGE), (MATRIX, MATRIX[0]), (COUNTS, COUNTS[::-1].copy())]
OF_BOOLS = [(TRUTHS, VECTOR), (COUNTS, TRUTHS), (VECTOR, True)]
REDUCED = ("all", "any", "argmax", "argmin", "cumsum", "max", "min", "prod", "sum", "var")
AXES = [*ONE, (MATRIX, 1), (MATRIX, 0), (CUBE, 1)]
SPECIAL = {
    "arccosh": [(LARGE,)],
    "clip": [(VECTOR, -0.5, 0.5), (COUNTS, 0, 2)],
    "where": [(TRUTHS, VECTOR, LARGE), (COUNTS, COUNTS, 7)],
    "abs": [*ONE, (TRUTHS,), (BYTES,)],
    "negative": [*ONE, (BYTES,)],
    **{key: [*TWO, (TRUTHS, TRUTHS[::-1].copy()), (COUNTS, PLACES)] for key in ("maximum", "minimum")},
    **{key: [*TWO, *OF_BOOLS, (COUNTS, PLACES)] for key in ("add", "multiply")},
    "divide": [(VECTOR, LARGE), (COUNTS, np.abs(PLACES) + 1)],
    "fmod": [(VECTOR, LARGE), (COUNTS, np.array([2, -2, 3, 5, 0], np.int32)), (PLACES, COUNTS)],
    "reciprocal": [(VECTOR,), (LARGE,)],
    "sort": [*ONE, (ODD,), (TRUTHS,), (BYTES,), (PLACES,)],
    "searchsorted": [(np.sort(ODD), ODD), (np.sort(ODD), ODD, "right"), (np.sort(VECTOR), ODD)],
    "digitize": [(ODD, np.sort(VECTOR)), (ODD, np.sort(VECTOR)[::-1].copy()), (COUNTS, np.array([2, 0], np.int32))],
    **{key: [*ONE, (ODD[1:],), (ODD[1:3],), (MATRIX, 1)] for key in ("median", "std", "mean", "nansum")},
    "quantile": [(VECTOR, 0.3), (ODD[1:], 0.2), (ODD[1:], 0.9), (ODD, 0.5)],
    "convolve": [(VECTOR, ODD[:3]), (ODD, LARGE), (ODD, VECTOR[:2], "same"), (COUNTS, BYTES)],
    "diagonal": [(MATRIX,), (CUBE,), (CUBE, 1), (CUBE, 0, 2, 1)],
    "trace": [(MATRIX,), (MATRIX, 1), (CUBE,), (CUBE, -1, 1, 2)],
    **{key: [*TWO, (ODD, ODD), (VECTOR, VECTOR)] for key in ("allclose", "array_equal", "isclose")},
    "cross": [(VECTOR[:3], LARGE[:3]), (MATRIX, MATRIX[0]), (COUNTS[:3], PLACES[:3])],
    "einsum": [("ij,jk->ik", MATRIX, MATRIX), ("ii", MATRIX), ("i,j", VECTOR, LARGE)],
    "kron": [(MATRIX, MATRIX[:2]), (VECTOR, LARGE)],
    "tensordot": [(MATRIX, MATRIX), (MATRIX, MATRIX, 1), (CUBE, CUBE, ((0, 1), (0, 1)))],
    "vdot": [(VECTOR, LARGE), (MATRIX, MATRIX), (COUNTS, PLACES)],
    "append": [(VECTOR, LARGE), (MATRIX, MATRIX, 0), (COUNTS, PLACES), (VECTOR, 1.0)],
    "full_like": [(VECTOR, 2), (COUNTS, 7), (MATRIX, VECTOR[0])],
    "pad": [(VECTOR, 2), (MATRIX, ((1, 0), (0, 2))), (VECTOR, 2, "reflect"), (VECTOR, (1, 2), "symmetric")],
    "swapaxes": [(MATRIX, 0, 1), (CUBE, -1, 0)],
    "tile": [(VECTOR, 2), (VECTOR, (2, 1)), (MATRIX, (2, 1, 1))],
    "correlate": [(VECTOR, ODD[:3]), (LARGE[:3], VECTOR, "full"), (LARGE[:2], VECTOR, "same")],
    "gradient": [(VECTOR,), (COUNTS,), (VECTOR, 2.0)],
    "interp": [(ODD, np.sort(VECTOR), LARGE), (VECTOR[0], np.sort(LARGE), VECTOR)],
    "polyval": [(VECTOR, LARGE), (VECTOR, LARGE[1])],
    "unwrap": [(VECTOR * 9,), (COUNTS,)],
    "percentile": [(VECTOR, 30), (ODD[1:], 20), (MATRIX, 30, 1)],
    **{key: [(MATRIX,), (CUBE,)] for key in ("fliplr", "flipud")},
    "array": [((COUNTS[0], PLACES[0]),), ((BYTES[0], COUNTS[0]),)],
    "broadcast_to": [(VECTOR, (2, 5)), (VECTOR[0], 3)],
    "moveaxis": [(CUBE, 0, -1), (CUBE, (0, 1), (-1, -2))],
    "repeat": [(VECTOR, 2), (MATRIX, 2, 1), (VECTOR, (1, 2, 0, 1, 1))],
    "tril": [(MATRIX,), (VECTOR,), (CUBE, 1)],
    "power": [(LARGE, VECTOR), (MATRIX, 2.0)],
    "dot": [(VECTOR, LARGE), (MATRIX, MATRIX), (MATRIX, MATRIX[0]), (CUBE, VECTOR[:4]), (VECTOR[:3], MATRIX)],
    "inner": [(VECTOR, LARGE), (MATRIX, MATRIX)],
    "matmul": [(MATRIX, MATRIX), (MATRIX, MATRIX[0]), (MATRIX[0], MATRIX), (VECTOR, LARGE)],
    "outer": [(VECTOR, COUNTS[:2].astype(float))],
    "linalg.solve": [(MATRIX, MATRIX[1]), (MATRIX, MATRIX[:, :2])],
    "linalg.norm": [(VECTOR,), (MATRIX,), (COUNTS,)],
    "concat": [((VECTOR, LARGE),), ((COUNTS, PLACES),)],
    "concatenate": [((VECTOR, LARGE),), ((MATRIX, MATRIX), 1)],
    "stack": [((VECTOR, LARGE),), ((MATRIX, MATRIX), 2)],
    "expand_dims": [(VECTOR, 0), (MATRIX, 1), (MATRIX, (0, -1))],
    "flip": [(VECTOR,), (MATRIX,), (MATRIX, 1), (CUBE, (0, 2))],
    "full": [(3, VECTOR[0]), ((2, 3), COUNTS[0])],
    **{key: [(COUNTS[0],), ((COUNTS[0], 2), np.int32), (PLACES[3], bool)] for key in ("ones", "zeros")},
    "arange": [(COUNTS[0],), (COUNTS[2], PLACES[3]), (PLACES[3], COUNTS[1] - 1, -2), (LARGE[1],)],
    "empty": [(COUNTS[3],), ((COUNTS[3], 2), np.int32)],
    "eye": [(COUNTS[0],), (COUNTS[0], 2, 1), (COUNTS[0], 4, -1, np.int64)],
    "identity": [(COUNTS[0],)],
    "reshape": [(CUBE, (6, 4)), (CUBE, -1)],
    "roll": [(VECTOR, 2), (MATRIX, 2), (MATRIX, 1, 1)],
    "squeeze": [(MATRIX[:1],), (CUBE[:, :1], 1)],
    "transpose": [(MATRIX,), (CUBE,), (CUBE, (1, 0, 2)), (CUBE, (-1, 0, 1))],
    "diff": [(VECTOR,), (MATRIX,)],
    **{key: [*AXES, (TRUTHS,), (BYTES,), (ODD,)] for key in REDUCED},
    "linalg.matrix_power": [(MATRIX, 3), (MATRIX, 0), (MATRIX, -1)],
    **{
        f"linalg.{name}": [(MATRIX,)]
        for name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "pinv", "slogdet", "svd")
    },
}


def examples(path: str) -> list[tuple]:
    """Arguments for NumPy's function at `path`."""
    if path in SPECIAL:
        return SPECIAL[path]
    function = attrgetter(path)(np)
    return TWO if isinstance(function, np.ufunc) and function.nin == 2 else ONE


def native(path: str, arguments: tuple):
    """NumPy's own answer."""
    function = np
    for step in path.split("."):
        function = getattr(function, step)
    with np.errstate(all="ignore"):
        return function(*arguments)


def tensors(value):
    """Arrays as tensors, in tuples too; shapes and axes stay what they are."""
    if isinstance(value, tuple) and value and isinstance(value[0], (np.ndarray, np.generic)):
        return tuple(map(tf.constant, value))
    return tf.constant(value) if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize("path", [path for path in numpy_equivalents.NAMES if path not in ("take", "trapz")])
def test_numpy(path):
    if not hasattr(np, path.split(".")[0]):
        pytest.skip("this NumPy has no such function")
    for arguments in examples(path):
        wanted = native(path, arguments)
        with recording():
            given = numpy_equivalents.EQUIVALENTS[numpy_equivalents.NAMES[path]](*map(tensors, arguments))
        if path == "linalg.eigh":  # the signs of the vectors are open
            wanted, given = wanted[0] * np.abs(wanted[1]), given[0] * np.abs(given[1])
        if path == "linalg.svd":
            wanted, given = ((np.abs(u) * values) @ np.abs(rows) for u, values, rows in (wanted, given))
        wanted, given = np.asarray(wanted), tf.convert_to_tensor(given)
        assert tuple(given.shape) == wanted.shape, arguments
        assert given.dtype.is_floating == np.issubdtype(wanted.dtype, np.floating), arguments
        assert (given.dtype == tf.bool) == (wanted.dtype == bool), arguments
        np.testing.assert_allclose(given, wanted, rtol=1e-7 if "float32" in path else 1e-12, atol=1e-13, err_msg=path)


def in_python(name: str, arguments: tuple):
    """`math`'s answer; None where it raises."""
    try:
        return getattr(math, name)(*arguments)
    except (ValueError, OverflowError):
        return None


@pytest.mark.parametrize("name", [name for name in math_equivalents.NAMES if name not in ("dist", "isqrt", "prod")])
def test_math(name):
    if not hasattr(math, name):  # Python 3.10 has no cbrt and exp2, and nobody can name them there
        assert name in ("cbrt", "exp2")
        return
    pairs = [(x, y) for x in DOUBLES for y in (0.5, -2.0, 3.0)]
    for arguments in pairs if name in OF_TWO else [(x,) for x in DOUBLES]:
        with recording() as recorder:
            given = math_equivalents.EQUIVALENTS[name](*(tf.constant(np.float64(x)) for x in arguments), site=3)
            failed = bool(recorder.site() > 0)
        wanted = in_python(name, arguments)
        assert failed == (wanted is None), arguments
        if wanted is not None:
            value = given.value if isinstance(given, Weak) else given
            assert value.dtype.is_integer == (type(wanted) is int)
            np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-15, err_msg=f"{name}{arguments}")


def test_math_of_ints_and_vectors():
    with recording():
        for n in (0, 1, 8, 9, 2**31 - 1):
            assert int(
                tf.convert_to_tensor(math_equivalents.EQUIVALENTS["isqrt"](tf.constant(n), site=0))
            ) == math.isqrt(n)
        assert float(math_equivalents.EQUIVALENTS["prod"](tf.constant(LARGE), site=0)) == math.prod(LARGE)
        given = math_equivalents.EQUIVALENTS["dist"](tf.constant([1.0, 2.0]), tf.constant([4.0, -2.0]), site=0)
        assert float(tf.convert_to_tensor(given)) == math.dist([1.0, 2.0], [4.0, -2.0])
        assert float(math_equivalents.EQUIVALENTS["prod"](tf.constant(LARGE), start=2.0, site=0)) == math.prod(
            LARGE, start=2.0
        )


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc"])
def test_a_rounded_int_is_that_int(name):
    with recording():
        given = math_equivalents.EQUIVALENTS[name](tf.constant(-7), site=3)
    assert (given.dtype, int(given)) == (tf.int32, -7)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "uint64"])
def test_one_examples_rounded_int_is_that_int(dtype):
    """Not by way of a float, in which large ones are others, and not as an int of 32 bits."""
    for number in (int(np.iinfo(dtype).max) // 3, 25, 35):
        for digits in ((), (0,), (-1,)):
            given = round(Number(np.dtype(dtype).type(number)), *digits)
            assert (given.dtype, given.value) == (tf.as_dtype(dtype), round(number, *digits))
