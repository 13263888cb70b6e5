"""The NumPy backend: it computes what TensorFlow does, refuses what a compiler would, and needs no TensorFlow."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from pcbatch import UsageError
from pcbatch.ir import values
from pcbatch.ir.types import ConflictError, StructType, TensorType, join
from pcbatch.options import Options
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.arrays import OPERATIONS
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import repeated
from tests.runtime.libraries import ints, library_named
from tests.runtime.numpy_backend.backend import numpy_backend
from tests.runtime.tables import BOOL, FLOAT, INT, WEAK, piece

BACKEND = numpy_backend()
OPS = library_named("numpy").ops

ALONE = """
import sys
from tests.runtime import tables
from tests.runtime.libraries import SCHEDULES, ints, library_named
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.strategies.reference import run_reference

library = library_named("numpy")
program = tables.faults(library.ops)
for schedule in SCHEDULES:
    print(Run.of(program, library.run(program, ints(3, 0, -2, 1), schedule=schedule)).report())
run_reference(tables.fibonacci(), library.backend, [ints(5)], [], 1)
found = [name for name in sys.modules if name.split(".")[0] in ("tensorflow", "keras")]
assert not found, found[:5]
"""


def test_the_machine_runs_without_tensorflow():
    """Not even imported: tables, machine, schedules, report and reference need an array library, and NumPy is one."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ZeroDivisionError: integer division by zero") == 6


def test_users_cannot_choose_it():
    with pytest.raises(UsageError, match="'numpy'"):
        Options(backend="numpy")
    with pytest.raises(ValueError, match="no backend 'numpy'"):
        backend_named("numpy")
    for refused in (
        lambda: BACKEND.as_arrays([1.0]),
        lambda: BACKEND.spread(1, INT, 3),
        lambda: BACKEND.type_of(1, batch=True),
    ):
        with pytest.raises(NotImplementedError, match="users' arguments"):
            refused()


MASK, NUMBERS = np.array([True, False, True, True]), ints(5, -3, 0, 7)
CUBE = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
SAME = {
    "zeros": lambda b: b.zeros(2, TensorType("float16", (3,)), 4),
    "made_apart": lambda b: b.made_apart([b.zeros(2, INT), b.zeros(3, FLOAT)], b.constant(2))[1],
    "constant": lambda b: b.constant(7),
    "array": lambda b: b.array([1, 2], "int64"),
    "lane_numbers": lambda b: b.lane_numbers(3),
    "lengthen": lambda b: b.lengthen(b.array(CUBE, "float32"), 5),
    "cast to int": lambda b: b.cast(b.array([1.9, -1.9], "float32"), "int32"),
    "cast to bool": lambda b: b.cast(b.array([0, 2], "uint8"), "bool"),
    "where": lambda b: b.where(b.array(MASK, "bool"), b.array(CUBE, "float32"), b.array(-CUBE, "float32")),
    "where of a scalar": lambda b: b.where(b.array(MASK, "bool"), b.constant(1), b.array(NUMBERS, "int32")),
    "where of each": lambda b: b.where([b.array(MASK, "bool")], [b.constant(1)], [b.array(NUMBERS, "int32")])[0],
    "once_there": lambda b: b.once_there(b.array(MASK, "bool"), [b.array(CUBE, "float32")]),
    "take": lambda b: b.load(b.array(CUBE, "float32"), [], b.array([3, 0, 3], "int32")),
    "store that adds": lambda b: b.masked_store(
        b.array(CUBE, "float32"),
        [],
        b.array([True, False, True], "bool"),
        b.array(CUBE[:3], "float32"),
        b.array([1, 1, 1], "int32"),
        adds=True,
    ),
    "sum_of_gradients": lambda b: b.sum_of_gradients(b.array(CUBE, "float32"), b.array(CUBE, "float32")),
    "listed": lambda b: b.listed(b.array(MASK, "bool"))[1],
    "load": lambda b: b.load(b.array(CUBE, "float32"), [b.array([2, 9, -4, 1], "int32")]),
    "load of lanes": lambda b: b.load(
        b.array(CUBE, "float32"), [b.array([2, 1], "int32"), b.array([0, 1], "int32")], b.array([3, 1], "int32")
    ),
    "store": lambda b: b.masked_store(
        b.array(CUBE, "float32"),
        [b.array(ints(2, 9, 0, 1), "int32")],
        b.array(MASK, "bool"),
        b.array([9.0] * 4, "float32"),
    ),
    "store of whole lanes": lambda b: b.masked_store(
        b.array(CUBE, "float32"),
        [],
        b.array([True, False], "bool"),
        b.array([1.0, 2.0], "float32"),
        b.array([2, 2], "int32"),
    ),
    "store at vectors": lambda b: b.masked_store(
        b.array(CUBE, "float32"),
        [b.array([[0, 2]] * 4, "int32"), b.array([[1, 0]] * 4, "int32")],
        b.array(MASK, "bool"),
        b.array(np.arange(16).reshape(4, 2, 2), "float32"),
    ),
    "store at a vector and a number": lambda b: b.masked_store(
        b.array(CUBE, "float32"),
        [b.array([[0, 2]] * 4, "int32"), b.array(ints(1, 0, 1, 0), "int32")],
        b.array(MASK, "bool"),
        b.array(NUMBERS, "float32"),
    ),
    "any of a lane": lambda b: b.any(b.array(CUBE > 20, "bool"), by_lane=True),
    "zeros of one lane": lambda b: b.zeros(None, TensorType("float16", (3,))),
    "constant of bool": lambda b: b.constant(True),
    "where of a scalar mask": lambda b: b.where(b.constant(True), b.array(CUBE, "float32"), b.array(-CUBE, "float32")),
    "extended": lambda b: b.extended(b.array(CUBE, "float32"), 6),
    "counted": lambda b: b.counted(b.array(MASK, "bool")),
    "marked": lambda b: b.marked(6, b.array([5, 0, 5, 1], "int32"), b.array(MASK, "bool")),
    "any": lambda b: b.any(b.array(MASK, "bool")),
    "sum": lambda b: b.sum(b.array(MASK, "bool")),
    "min": lambda b: b.min(b.array(NUMBERS, "int32")),
    "min of none": lambda b: b.min(b.array(NUMBERS[:0], "int32")),
    "max": lambda b: b.max(b.array(NUMBERS, "int32")),
    "sum with weights": lambda b: b.sum(b.array(MASK, "bool"), [1.0, 2.0, 0.5, 0.25]),
    "tally": lambda b: b.tally(b.array([1, 4, 1, 9], "int32"), range(5)),
    "stack": lambda b: b.stack([b.constant(n) for n in range(11)]),
    "stack of columns": lambda b: b.stack([b.array(NUMBERS, "int32"), b.array(NUMBERS, "int32")], -1),
    "joined": lambda b: b.joined(b.array(NUMBERS, "int32"), b.array([1], "int32")),
    "unstack": lambda b: b.unstack(b.array(NUMBERS, "int32"), 4)[3],
    "with_rows": lambda b: b.with_rows(b.array(CUBE, "float32"), b.constant(1), b.array(CUBE[:2], "float32")),
    "rows_at": lambda b: b.rows_at(b.array(CUBE, "float32"), b.constant(1), 2),
    "load of vectors": lambda b: b.load(
        b.array(CUBE, "float32"), [b.array([[0, 2], [1, 1], [2, 0], [0, 9]], "int32"), b.array([0, 1, 1, 0], "int32")]
    ),
    "load of one index of lanes": lambda b: b.load(
        b.array(CUBE, "float32"), [b.array([2, 0], "int32")], b.array([3, 1], "int32")
    ),
    "unspread": lambda b: b.unspread(b.array(CUBE, "float32"), (1, 2)),
    "unspread to less": lambda b: b.unspread(b.array(CUBE, "float32"), (2,)),
    "sum_rows": lambda b: b.sum_rows(b.array(CUBE, "float32"), b.array(MASK, "bool")),
    "sums of rows by lane": lambda b: b.sum_rows(
        b.array(CUBE, "float32"), b.array(MASK, "bool"), b.array([1] * len(MASK), "int32"), 3
    ),
    "cond": lambda b: b.cond(b.constant(0) == 0, lambda: [b.constant(1)], [b.constant(2)])[0],
    "cond that does not hold": lambda b: b.cond(b.constant(1) == 0, lambda: [b.constant(1)], [b.constant(2)])[0],
    "cond of two functions": lambda b: b.cond(b.constant(0) == 0, lambda: [b.constant(1)], lambda: [b.constant(2)])[0],
    "cond of two functions, the other": lambda b: b.cond(
        b.constant(1) == 0, lambda: [b.constant(1)], lambda: [b.constant(2)]
    )[0],
    "guarded": lambda b: b.guarded(b.constant(0) == 0, lambda go, n: [b.where(go, n + 1, n)], [b.constant(1)], [False])[
        0
    ],
    "repeated": lambda b: repeated(
        b, b.constant(0) == 0, lambda go, arrays: (arrays[0] < 9, [arrays[0] * 2]), [b.constant(1)]
    )[0],
    "while_loop": lambda b: b.while_loop(lambda s: s["n"] < 9, lambda s: {"n": s["n"] * 3}, {"n": b.constant(2)})["n"],
}


@pytest.mark.parametrize("what", SAME)
def test_it_computes_what_tensorflow_does(what):
    """Values, shapes and dtypes of every operation."""
    actual, wanted = (np.asarray(SAME[what](each)) for each in (BACKEND, library_named("tensorflow").backend))
    assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(actual, wanted)


YES = BACKEND.constant(0) == 0
REFUSED = {
    "a choice between dtypes": lambda: BACKEND.where(MASK, NUMBERS, np.ones(4, np.float32)),
    "a vector of several dtypes": lambda: BACKEND.stack([np.int32(1), np.int64(1)]),
    "a number cut off": lambda: BACKEND.array(1.5, "int32"),
    "a row of another dtype": lambda: BACKEND.with_rows(CUBE, np.int32(0), np.zeros((1, 3, 2))),
    "a store of another dtype": lambda: BACKEND.masked_store(NUMBERS, [], MASK, np.zeros(4)),
    "a store outside": lambda: BACKEND.masked_store(CUBE, [ints(0, 0, 3, 0)], MASK, np.zeros(4, np.float32)),
    "a store before the start": lambda: BACKEND.masked_store(CUBE, [ints(0, 0, -1, 0)], MASK, np.zeros(4, np.float32)),
    "two rows for a lane": lambda: BACKEND.masked_store(NUMBERS, [], MASK, ints(1, 2, 3, 4), ints(0, 1, 2, 2)),
    "a row that is not there": lambda: BACKEND.load(NUMBERS, [], ints(4)),
    "a row from the end": lambda: BACKEND.load(NUMBERS, [], ints(-1)),
    "too many scalars": lambda: BACKEND.unstack(NUMBERS, 3),
    "a guard that changes a dtype": lambda: BACKEND.cond(YES, lambda: [np.float32(1)], [np.int32(1)]),
    "a guard that drops an array": lambda: BACKEND.cond(YES, list, [np.int32(1)]),
    "a guard that changes a length": lambda: BACKEND.guarded(YES, lambda go, n: [n[1:]], [NUMBERS], [False]),
    "a loop that changes an axis": lambda: BACKEND.while_loop(np.any, lambda n: n[0], NUMBERS),
    "a loop that forgets": lambda: BACKEND.while_loop(lambda s: YES, lambda s: {}, {"n": NUMBERS}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_refuses_what_a_compiler_would(what):
    with pytest.raises((TypeError, IndexError, ValueError)):
        REFUSED[what]()


def test_lengths_may_grow_in_a_loop():
    """As those of stacks do between legs."""
    grown = BACKEND.while_loop(lambda a: len(a) < 5, lambda a: BACKEND.joined(a, a), NUMBERS)
    np.testing.assert_array_equal(grown, [*NUMBERS, *NUMBERS])


def vectorized(made, types, **reads):
    """A piece run for all lanes of `reads`, each a type and an array."""
    columns = [column for _, column in reads.values()]
    read_types = [type_ for type_, _ in reads.values()]
    leaves = [values.flatten(type_, column) for type_, column in zip(read_types, columns, strict=True)]
    outputs, site = BACKEND.vectorize(made, Signature(read_types, [], types), leaves, [], len(leaves[0][0]))
    return [values.pack(type_, output) for type_, output in zip(types, outputs, strict=True)], site


def test_weak_numbers_take_the_dtype_that_they_meet():
    """As Python's do, lane by lane."""
    half = TensorType("float16")
    made = piece(lambda i, x: (i + 1, i * x), "i x", "j y")
    (j, y), site = vectorized(made, [WEAK, half], i=(WEAK, ints(2, 3)), x=(half, np.array([0.5, 1], np.float16)))
    assert (j.dtype, y.dtype, site) == (np.int32, np.float16, None)
    np.testing.assert_array_equal(j, [3, 4])
    np.testing.assert_array_equal(y, [1, 3])
    assert BACKEND.facts(made, [WEAK, half], []).types == (WEAK, half)


def test_structures_go_in_and_out():
    pair = StructType("dict", (FLOAT, StructType("tuple", (BOOL, INT))), ("x", "rest"))
    made = piece(lambda p: ({"x": p["x"] * 2, "rest": (~p["rest"][0], p["rest"][1] - 1)},), "p", "p")
    value = {"x": np.array([1, 2], np.float32), "rest": (np.array([True, False]), ints(7, 8))}
    (found,), _ = vectorized(made, [pair], p=(pair, value))
    np.testing.assert_array_equal(found["x"], [2, 4])
    np.testing.assert_array_equal(found["rest"][0], [False, True])
    np.testing.assert_array_equal(found["rest"][1], [6, 7])
    assert BACKEND.facts(made, [pair], []).types == (pair,)


def test_the_first_failed_check_is_the_lanes():
    """Each lane has its own; a zero of floats is none."""
    made = piece(lambda a, b: (OPS.mod(OPS.floordiv(a, b, 4), a, 6),), "a b", "q", 4, 6)
    a, b = (INT, ints(6, 0, 5, 0)), (INT, ints(4, 0, 0, 3))
    (q,), site = vectorized(made, [INT], a=a, b=b)
    np.testing.assert_array_equal(site, [0, 5, 5, 7])
    assert q[0] == 1
    floats = (FLOAT, np.zeros(2, np.float32))
    _, site = vectorized(made, [FLOAT], a=floats, b=floats)
    np.testing.assert_array_equal(site, [0, 0])
    weak = TensorType("float64", weak=True)
    _, site = vectorized(made, [weak], a=(weak, np.ones(1)), b=(weak, np.zeros(1)))
    np.testing.assert_array_equal(site, [5])


def test_pieces_that_do_not_do_what_they_declare():
    """A check that is not declared, an output of another dtype or shape."""
    one = (INT, ints(1))
    with pytest.raises(ValueError, match=r"checks \{3\}"):
        vectorized(piece(lambda a: (OPS.mod(a, a, 3),), "a", "a"), [INT], a=one)
    for type_, function in [
        (INT, lambda a: (0.5,)),
        (INT, lambda a: (a / 2,)),
        (BOOL, lambda a: (1,)),
        (INT, lambda a: ([a],)),
    ]:
        with pytest.raises(TypeError, match=r"is not int32\[\]|does not fit"):
            vectorized(piece(function, "a", "a"), [type_], a=one)


@pytest.mark.parametrize("name", ["numpy", "tensorflow"])
def test_spellings_are_names_of_the_library(name):
    """What messages tell users to write is there."""
    spelling = library_named(name).backend.spelling
    module = importlib.import_module(name)
    operations = [each for each in OPERATIONS if (name, each) != ("numpy", "function")]  # NumPy traces none
    for operation in (*operations, "bool", "int32", "float16", "float32", "float64", "complex64", "uint8"):
        prefix, _, path = spelling(operation).partition(".")
        assert prefix == {"numpy": "np", "tensorflow": "tf"}[name]
        assert getattr(module, path) is not None


def test_a_conflict_is_told_in_the_librarys_words():
    with pytest.raises(ConflictError) as caught:
        join(INT, FLOAT)
    assert str(caught.value) == "dtypes int32 and float32 differ; write cast(.., float32) for the other one"
    for name, told in (("numpy", "np.astype(.., np.float32)"), ("tensorflow", "tf.cast(.., tf.float32)")):
        assert told in caught.value.told(library_named(name).backend.spelling)
    with pytest.raises(ConflictError, match=r"\{a: 1\}"):  # braces of a type's are no fields
        raise ConflictError("{a: 1} does not fit")
