"""Every function of `math` and NumPy that has an equivalent, against the original: values, shapes, ints and floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import math_equivalents, numpy_equivalents
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.weak import Weak

DOUBLES = (0.3, 0.75, -0.5, 1.0, 1.5, 2.5, -2.5, 7.25, 0.0)
OF_TWO = ("atan2", "copysign", "fmod", "hypot", "pow")

VECTOR = np.array([0.5, -0.25, 1.0, 0.0, -1.0])
COUNTS = np.array([3, 1, -2, 0, 3], np.int32)
LARGE = np.array([1.0, 2.5, 3.5, 9.0, 1.25])
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
CUBE = np.arange(24, dtype=np.float64).reshape(2, 3, 4) - 7
TRUTHS = np.array([True, False, True, True, False])
ONE = [(VECTOR,), (COUNTS,), (LARGE,), (MATRIX,)]
TWO = [(VECTOR, LARGE), (MATRIX, MATRIX[0]), (COUNTS, COUNTS[::-1].copy())]
AXES = [*ONE, (MATRIX, 1), (MATRIX, 0), (CUBE, 1)]
SPECIAL = {
    "arccosh": [(LARGE,)],
    "append": [(VECTOR, LARGE), (MATRIX, MATRIX, 0)],
    "broadcast_to": [(VECTOR, (2, 5))],
    "clip": [(VECTOR, -0.5, 0.5), (COUNTS, 0, 2)],
    "concat": [((VECTOR, LARGE),)] if hasattr(np, "concat") else [],
    "convolve": [(VECTOR, LARGE[:3]), (LARGE, VECTOR, "same"), (LARGE, VECTOR[:2], "valid")],
    "correlate": [(VECTOR, LARGE[:3]), (LARGE, VECTOR[:2], "full")],
    "cross": [(MATRIX[0], MATRIX[1])],
    "diagonal": [(MATRIX,)],
    "digitize": [(VECTOR, np.sort(LARGE)), (LARGE, np.sort(LARGE), True)],
    "einsum": [("ij,jk->ik", MATRIX, MATRIX), ("ii->", MATRIX)],
    "fliplr": [(MATRIX,), (CUBE,)],
    "fmod": [(VECTOR, LARGE), (COUNTS, np.array([2, 3, 4, 5, -2], np.int32))],
    "full_like": [(VECTOR, 2.5)],
    "gradient": [(LARGE,), (VECTOR, 0.5)],
    "interp": [(VECTOR, np.sort(VECTOR), LARGE), (LARGE, np.sort(VECTOR), LARGE)],
    "kron": [(MATRIX, MATRIX), (VECTOR, LARGE)],
    "linalg.matrix_power": [(MATRIX, 3), (MATRIX, 0)],
    "linalg.pinv": [(MATRIX,)],
    "moveaxis": [(CUBE, 0, 2)],
    "pad": [(VECTOR, 2), (MATRIX, ((1, 0), (0, 2)))],
    "polyval": [(LARGE, VECTOR), (VECTOR, 2.0)],
    "reciprocal": [(LARGE,), (MATRIX,)],
    "repeat": [(VECTOR, 2), (MATRIX, 2, 1)],
    "searchsorted": [(np.sort(LARGE), VECTOR), (np.sort(LARGE), LARGE, "right")],
    "swapaxes": [(CUBE, 0, 2)],
    "tensordot": [(MATRIX, MATRIX, 1), (CUBE, CUBE, ((0, 1), (0, 1)))],
    "tile": [(VECTOR, 2), (MATRIX, (2, 1))],
    "vdot": [(VECTOR, LARGE)],
    **{key: [(VECTOR, VECTOR), (VECTOR, LARGE), (COUNTS, COUNTS)] for key in ("allclose", "array_equal", "isclose")},
    "linalg.eigvalsh": [(MATRIX,)],
    **{key: [(VECTOR, 0.25), (MATRIX, 0.5, 0), (COUNTS, 0.7)] for key in ("percentile", "quantile")},
    **{key: [(MATRIX,), (MATRIX, 1)] for key in ("tril", "triu")},
    **{key: [(VECTOR,), (VECTOR, LARGE)] for key in ("trapezoid", "trapz")},
    "where": [(TRUTHS, VECTOR, LARGE), (COUNTS, COUNTS, 7)],
    "power": [(LARGE, VECTOR), (MATRIX, 2.0)],
    "dot": [(VECTOR, LARGE), (MATRIX, MATRIX), (MATRIX, MATRIX[0]), (CUBE, VECTOR[:4]), (VECTOR[:3], MATRIX)],
    "inner": [(VECTOR, LARGE), (MATRIX, MATRIX)],
    "matmul": [(MATRIX, MATRIX), (MATRIX, MATRIX[0]), (MATRIX[0], MATRIX), (VECTOR, LARGE)],
    "outer": [(VECTOR, COUNTS[:2].astype(float))],
    "linalg.solve": [(MATRIX, MATRIX[1]), (MATRIX, MATRIX[:, :2])],
    "linalg.norm": [(VECTOR,), (MATRIX,), (COUNTS,)],
    "concatenate": [((VECTOR, LARGE),), ((MATRIX, MATRIX), 1)],
    "stack": [((VECTOR, LARGE),), ((MATRIX, MATRIX), 2)],
    "expand_dims": [(VECTOR, 0), (MATRIX, 1)],
    "flip": [(VECTOR,), (MATRIX,), (MATRIX, 1)],
    "full": [(3, VECTOR[0]), ((2, 3), COUNTS[0])],
    "reshape": [(CUBE, (6, 4)), (CUBE, -1)],
    "roll": [(VECTOR, 2), (MATRIX, 2), (MATRIX, 1, 1)],
    "squeeze": [(MATRIX[:1],), (CUBE[:, :1], 1)],
    "transpose": [(MATRIX,), (CUBE,), (CUBE, (1, 0, 2))],
    "diff": [(VECTOR,), (MATRIX,)],
    **dict.fromkeys(
        ("all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"), AXES
    ),
    **{name: [(MATRIX,)] for name in ("trace", "linalg.cholesky", "linalg.det", "linalg.inv")},
}


def examples(path: str) -> list[tuple]:
    """Arguments for NumPy's function at `path`."""
    if path in SPECIAL:
        return SPECIAL[path]
    function = getattr(np, path)
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
    if isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
        return tuple(map(tf.constant, value))
    return tf.constant(value) if isinstance(value, (np.ndarray, np.generic)) else value


ELSEWHERE = ("linalg.eigh", "take")
"""Tested below: one gives two arrays, one takes a fault site."""


@pytest.mark.parametrize("path", [path for path in numpy_equivalents.NAMES if path not in ELSEWHERE])
def test_numpy(path):
    if path in ("concat", "trapezoid", "trapz") and not hasattr(np, path):  # a name of NumPy 1 or of NumPy 2
        return
    for arguments in examples(path):
        wanted = np.asarray(native(path, arguments))
        with recording():
            given = numpy_equivalents.EQUIVALENTS[numpy_equivalents.NAMES[path]](*map(tensors, arguments))
        assert tuple(given.shape) == wanted.shape, arguments
        assert given.dtype.is_floating == np.issubdtype(wanted.dtype, np.floating), arguments
        assert (given.dtype == tf.bool) == (wanted.dtype == bool), arguments
        np.testing.assert_allclose(given, wanted, rtol=1e-7 if "float32" in path else 1e-12, atol=1e-13, err_msg=path)


def test_eigenvectors():
    with recording():
        values, vectors = numpy_equivalents.EQUIVALENTS["linalg_eigh"](tf.constant(MATRIX))
    np.testing.assert_allclose(values, np.linalg.eigh(MATRIX)[0], rtol=1e-12)
    np.testing.assert_allclose(MATRIX @ vectors.numpy(), vectors * values, atol=1e-12)


@pytest.mark.parametrize(("positions", "axis", "fails"), [([2, 0, -1], None, False), ([1], 0, False), ([3], 1, True)])
def test_take(positions, axis, fails):
    with recording() as recorder:
        found = numpy_equivalents.EQUIVALENTS["take"](tf.constant(MATRIX), tf.constant(positions), axis, site=3)
        assert bool(recorder.site() > 0) == fails
    if not fails:
        np.testing.assert_array_equal(found, np.take(MATRIX, positions, axis))


def in_python(name: str, arguments: tuple):
    """`math`'s answer; None where it raises."""
    try:
        return getattr(math, name)(*arguments)
    except (ValueError, OverflowError):
        return None


@pytest.mark.parametrize("name", [name for name in math_equivalents.NAMES if name not in ("isqrt", "prod")])
def test_math(name):
    if not hasattr(math, name):  # Python 3.10 has no cbrt and exp2, and nobody can name them there
        assert name in ("cbrt", "exp2")
        return
    pairs = [(x, y) for x in DOUBLES for y in (0.5, -2.0, 3.0)]
    for arguments in pairs if name in OF_TWO else [(x,) for x in DOUBLES]:
        with recording() as recorder:
            given = math_equivalents.EQUIVALENTS[name](*(tf.constant(x, tf.float64) for x in arguments), site=3)
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
        assert float(math_equivalents.EQUIVALENTS["prod"](tf.constant(LARGE), start=2.0, site=0)) == math.prod(
            LARGE, start=2.0
        )


@pytest.mark.parametrize("name", ["ceil", "floor"])
def test_a_rounded_int_is_that_int(name):
    with recording():
        given = math_equivalents.EQUIVALENTS[name](tf.constant(-7), site=3)
    assert (given.dtype, int(given)) == (tf.int32, -7)
