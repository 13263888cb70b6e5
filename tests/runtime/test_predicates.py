"""Items under a predicate: the machine, masked and gathered, compiled and as a graph, against the reference."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.ir.machine import (
    Block,
    Branch,
    Fault,
    FaultSite,
    Jump,
    LaneStatus,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
    Statement,
    Store,
)
from pcbatch.ir.types import StructType, TensorType
from pcbatch.optimize.machine.compaction import Compaction
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, ops
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.strategies.reference import run_reference
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.machine_interpreter import interpret_machine
from tests.ir.ops import op_of
from tests.runtime import tables
from tests.runtime.tables import BOOL, FLOAT, INT, WEAK, at

BACKEND = TensorFlowBackend()
GATHERED = Compaction(every=True, rows=3)
"""Every block is costly: it runs on few rows where few lanes wait."""
MODES = {
    "masked, compiled": {"schedule": "sweep", "jit": True, "compaction": None},
    "masked, as a graph": {"schedule": "earliest", "jit": False, "compaction": None},
    "gathered, compiled": {"schedule": "earliest", "jit": True, "compaction": GATHERED},
    "gathered, as a graph": {"schedule": "sweep", "jit": False, "compaction": GATHERED},
}
DIVISION = FaultSite(LaneStatus.ARITHMETIC, "ZeroDivisionError: integer division by zero", (), at(3))
INDEX = FaultSite(LaneStatus.INDEX, "IndexError: index out of range", (), at(4))
VECTOR, INTEGERS, MATRIX = TensorType("float32", (3,)), TensorType("int32", (3,)), TensorType("float32", (2, 2))


def piece(function, reads, writes, *sites, under=None, shared=""):
    """A piece, its names given as words."""
    names = (tuple(words.split()) for words in (reads, writes, shared))
    return Piece(function, *names, sites, (at(10),), predicate=under)


def program(name, parameters, results, types, blocks, faults=(), **storage):
    """A program; what is a parameter or a result and has no other storage is a register."""
    registers = dict.fromkeys((*parameters.split(), *results.split()), "register")
    kinds = {**registers, **storage}
    return Program(name, tuple(parameters.split()), tuple(results.split()), types, kinds, blocks, faults)


def converted(storage="register"):
    """`if n > 0: total = 100 // n; array[n - 1] = total`, in one block; then n - 1 is read, whether it was or not.

    The division would fail for n = 0 and the store for n = -7.
    """
    block = Block(
        "b0",
        (
            piece(lambda n: (n > 0, -1), "n", "t total"),
            piece(lambda n: (ops.floordiv(100, n, 0), n - 1), "n", "total place", 0, under="t"),
            Store("array", ("place",), "total", 1, "t"),
            piece(lambda place: (place + 1,), "place", "extra"),
        ),
        Return(),
    )
    types = {"n": INT, "array": INTEGERS, "t": BOOL, "total": INT, "place": INT, "extra": INT}
    faults = (DIVISION, INDEX)
    return program("converted", "n array", "array total extra", types, (block,), faults, array=storage)


def changed_before():
    """A store under a predicate to an array that the block has changed."""
    block = Block(
        "b0",
        (
            piece(lambda n, array: (n > 0, array * 2), "n array", "t array"),
            Store("array", ("n",), "n", 0, "t"),
        ),
        Return(),
    )
    return program("changed_before", "n array", "array", {"n": INT, "array": INTEGERS, "t": BOOL}, (block,), (INDEX,))


def singular():
    """Inverts a matrix where its determinant is not zero; else a graph's operation would raise."""
    block = Block(
        "b0",
        (
            piece(lambda m: (tf.linalg.trace(m) > 0.0,), "m", "t"),
            piece(lambda m: (tf.linalg.inv(m),), "m", "m", under="t"),
        ),
        Return(),
    )
    return program("singular", "m", "m", {"m": MATRIX, "t": BOOL}, (block,))


def recursion(storage="cached stack"):
    """Down to n = 0, doubling `v` where n is odd, and on the way back adding what was saved where n is odd."""
    blocks = (
        Block("b0", (piece(lambda n: (n <= 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda v: (v,), "v", "r"),), Return()),
        Block(
            "b2",
            (
                piece(lambda n: (n % 2 == 1,), "n", "t"),
                piece(lambda v: (v * 2.0,), "v", "v", under="t"),
                piece(lambda n: (n - 1,), "n", "n"),
            ),
            PushJump(0, 3, 0),
            pushes=(Push("n"), Push("v", "v")),
        ),
        Block(
            "b3",
            (
                piece(lambda n: (n % 2 == 1,), "n", "t"),
                piece(lambda v, r: (r + v,), "v r", "r", under="t"),
            ),
            Return(),
            pops=("n", "v"),
            dead=("v",),
        ),
    )
    types = {"n": INT, "v": VECTOR, "r": VECTOR, "t": BOOL}
    return program("recursion", "n v", "r", types, blocks, (tables.DEPTH,), n=storage, v=storage)


def nested():
    """`if n > 0: if 12 // n > 3: ..`: the second predicate is written under the first; values that never were."""
    pair = StructType("dict", (FLOAT, StructType("tuple", (WEAK, BOOL))), ("x", "rest"))
    block = Block(
        "b0",
        (
            piece(lambda n: (n > 0,), "n", "t"),
            piece(lambda n: (ops.floordiv(12, n, 0) > 3,), "n", "inner", 0, under="t"),
            piece(lambda: ({"x": 1.5, "rest": (7, True)}, 3), "", "p count", under="inner"),
            piece(lambda p: (p["x"], p["rest"][0], p["rest"][1]), "p", "x k flag"),
        ),
        Return(),
    )
    types = {"n": INT, "t": BOOL, "inner": BOOL, "p": pair, "x": FLOAT, "k": INT, "flag": BOOL, "count": WEAK}
    return program("nested", "n", "x k flag count", types, (block,), (DIVISION,))


def after_a_fault():
    """Lanes that an item has stopped take part in nothing; a message shows what was written under a predicate."""
    raised = FaultSite(LaneStatus.RAISED, "ValueError: {} is odd", ("q",), at(5))
    blocks = (
        Block(
            "b0",
            (
                piece(lambda n: (ops.floordiv(24, n, 0), n > 0), "n", "q t", 0),
                piece(lambda m: (tf.linalg.inv(m),), "m", "m", under="t"),
                piece(lambda q: (q + 1,), "q", "q", under="t"),
                piece(lambda q: (q % 2 == 1,), "q", "odd"),
            ),
            Branch("odd", 1, 2),
        ),
        Block("b1", (piece(lambda q: (q * 10,), "q", "q", under="t"),), Fault(1)),
        Block("b2", (), Return()),
    )
    types = {"n": INT, "m": MATRIX, "q": INT, "t": BOOL, "odd": BOOL}
    return program("after_a_fault", "n m", "m q", types, blocks, (DIVISION, raised), t="register")


def looping():
    """The place of the highest bit of `n`, in a loop; 0, where no turn of the loop gives it a value."""
    blocks = (
        Block("b0", (piece(lambda: (0,), "", "i"),), Jump(1)),
        Block(
            "b1",
            (
                piece(lambda n, i: (tf.bitwise.right_shift(n, i) % 2 == 1,), "n i", "t"),
                piece(lambda i: (i + 1,), "i", "total", under="t"),
                piece(lambda i, n: (i + 1, tf.bitwise.right_shift(n, i + 1) > 0), "i n", "i more"),
            ),
            Jump(Branch("more", 1, 2), turn=True),
            steps_site=0,
        ),
        Block("b2", (), Return()),
    )
    types = {"n": INT, "i": INT, "total": INT, "t": BOOL, "more": BOOL}
    faults = (tables.STEPS,)
    return program("looping", "n", "total", types, blocks, faults, i="register")


GOOD = np.array([[2, 1], [1, 3]], np.float32)
MATRICES = np.stack([GOOD, np.zeros((2, 2)), GOOD * 3, np.full((2, 2), np.nan), -GOOD, np.zeros((2, 2))]).astype("f")
VECTORS = np.arange(18, dtype=np.float32).reshape(6, 3)
ARRAYS = VECTORS.astype(np.int32)
SIGNS = {"mixed": [3, 0, -7, 1, 4, -1], "nobody": [0, -1, -2, 0, -7, 0], "everybody": [1, 2, 3, 3, 2, 1]}
BITS = {"mixed": [0, 1, 5, 4, 6, 2], "nobody": [0] * 6, "everybody": [1, 3, 7, 15, 3, 1]}
CASES = {
    "if-converted": (converted(), {kind: (n, ARRAYS) for kind, n in SIGNS.items()}),
    "if-converted, array in a stack": (converted("stack"), {kind: (n, ARRAYS) for kind, n in SIGNS.items()}),
    "changed before": (changed_before(), {kind: (n, ARRAYS) for kind, n in SIGNS.items()}),
    "singular": (
        singular(),
        {"mixed": (MATRICES,), "nobody": (np.zeros_like(MATRICES),), "everybody": (np.stack([GOOD] * 6),)},
    ),
    "recursion": (recursion(), {kind: (n, VECTORS) for kind, n in BITS.items()}),
    "recursion, tops in stacks": (recursion("stack"), {kind: (n, VECTORS) for kind, n in BITS.items()}),
    "nested": (nested(), {kind: (n,) for kind, n in SIGNS.items()}),
    "after a fault": (
        after_a_fault(),
        {"mixed": ([3, 0, 2, -1, 8, -5], MATRICES[[0, 1, 2, 3, 0, 5]]), "everybody": ([5] * 6, np.stack([GOOD] * 6))},
    ),
    "looping": (looping(), {kind: (n,) for kind, n in BITS.items()}),
}


RUNS = [
    pytest.param(case, mode, marks=() if place % len(MODES) == turn else pytest.mark.slow)
    for place, case in enumerate(CASES)
    for turn, mode in enumerate(MODES)
]
"""Each case quickly in one mode, the modes in turn."""


@pytest.mark.parametrize(("case", "mode"), RUNS)
def test_the_machine_equals_the_reference(case, mode):
    """Values, status, sites, steps, and what messages show; nothing raises for lanes that take no part."""
    table, batches = CASES[case]
    machine = Machine(table, BACKEND, **MODES[mode])
    for kind, batch in batches.items():
        arguments = [np.asarray(a, np.int32) if isinstance(a, list) else a for a in batch]
        wanted = run_reference(table, BACKEND, arguments, [], 6)
        actual = machine.run(arguments, [], 6)
        for got, expected in zip(actual.values, wanted.values, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=kind)
        for name in ("status", "site", "place", "steps", "active"):
            np.testing.assert_array_equal(getattr(actual, name), getattr(wanted, name), err_msg=f"{kind}: {name}")
        failed = np.asarray(wanted.status) == LaneStatus.RAISED
        for name, leaves in wanted.fault_values.items():
            for got, expected in zip(actual.fault_values[name], leaves, strict=True):
                np.testing.assert_array_equal(np.asarray(got)[failed], np.asarray(expected)[failed], err_msg=kind)


def reference(case, kind):
    table, batches = CASES[case]
    arguments = [np.asarray(a, np.int32) if isinstance(a, list) else a for a in batches[kind]]
    return run_reference(table, BACKEND, arguments, [], 6)


def test_the_reference_does_what_python_does():
    """By hand: the reference is what the machine is compared with."""
    outcome = reference("if-converted", "mixed")
    array, total, extra = (np.asarray(value) for value in outcome.values)
    expected = ARRAYS.copy()
    expected[0, 2], expected[3, 0], expected[4] = 33, 100, 0
    np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(total, [33, -1, -1, 100, 0, -1])
    np.testing.assert_array_equal(extra, [3, 1, 1, 1, 0, 1])
    np.testing.assert_array_equal(outcome.status, [0, 0, 0, 0, LaneStatus.INDEX, 0])
    assert not np.any(reference("if-converted", "nobody").status)


def test_the_reference_gives_zeros_for_what_never_was():
    x, k, flag, count = (np.asarray(value) for value in reference("nested", "mixed").values)
    np.testing.assert_array_equal(x, [1.5, 0, 0, 1.5, 0, 0])  # 12 // 3 and 12 // 1 are above 3
    np.testing.assert_array_equal(k, [7, 0, 0, 7, 0, 0])
    np.testing.assert_array_equal(flag, [True, False, False, True, False, False])
    np.testing.assert_array_equal(count, [3, 0, 0, 3, 0, 0])


def test_the_reference_saves_what_it_should():
    def recursive(n, v):
        """`recursion` in Python."""
        if n <= 0:
            return v
        v = v * 2.0 if n % 2 else v
        r = recursive(n - 1, v)
        return r + v if n % 2 else r

    (r,) = reference("recursion", "mixed").values
    np.testing.assert_array_equal(r, [recursive(n, v) for n, v in zip(BITS["mixed"], VECTORS, strict=True)])


STATEMENTS = {
    "a = b + 1": lambda b: (b + 1,),
    "b = a - 2": lambda a: (a - 2,),
    "a = b // a": lambda b, a: (ops.floordiv(b, a, 0),),
    "p = a > 0": lambda a: (a > 0,),
    "q = t == 0": lambda t: (tf.equal(t, 0),),
    "t = a % b": lambda a, b: (ops.mod(a, b, 0),),
    "v = v + 1": lambda v: (v + 1,),
}
"""What a lane may do, and how the machine does it. `t` is a temporary."""
ITEMS = st.tuples(st.sampled_from([*STATEMENTS, "store"]), st.sampled_from([None, "p", "q"]))


@settings(max_examples=8, deadline=None)
@given(
    items=st.lists(ITEMS, min_size=2, max_size=8), mode=st.sampled_from(["masked, as a graph", "gathered, as a graph"])
)
def test_the_machine_equals_the_interpreter(items, mode):
    """Any statements under any predicates, checked ones and stores among them: the IR says what they mean."""
    start = {"p = a > 0": lambda a: (a > 0,), "q = b > 0": lambda b: (b > 0,), "t = 0": lambda: (0,)}
    pieces = [as_piece(text, None, function) for text, function in start.items()]
    for text, predicate in items:
        if text == "store":
            pieces.append(Store("v", ("a",), "b", 1, predicate))
        else:
            pieces.append(as_piece(text, predicate, STATEMENTS[text]))
    types = {"a": INT, "b": INT, "v": INTEGERS, "p": BOOL, "q": BOOL, "t": INT}
    table = program("random", "a b v", "a b v", types, (Block("b0", tuple(pieces), Return()),), (DIVISION, INDEX))
    a, b = np.meshgrid(np.arange(-1, 3, dtype=np.int32), np.arange(-2, 2, dtype=np.int32))
    arguments = [a.ravel(), b.ravel(), np.arange(48, dtype=np.int32).reshape(16, 3)]
    outcome = Machine(table, BACKEND, **MODES[mode]).run(arguments, [], 16)
    for lane, (number, other, array) in enumerate(zip(*arguments, strict=True)):
        wanted = interpret_machine(table, (int(number), int(other), array), python_evaluate({}), copy_store)
        assert LaneStatus(int(outcome.status[lane])).name == wanted.status
        for got, expected in zip(outcome.values, wanted.value or (0, 0, [0, 0, 0]), strict=True):
            np.testing.assert_array_equal(got[lane], expected)


def as_piece(text, predicate, function):
    """A piece both as generated code and as the statement that it is generated from."""
    op = op_of(text)
    sites = (0,) if "//" in text or "%" in text else ()
    return Piece(function, op.inputs, op.outputs, sites=sites, statements=(Statement(op, sites),), predicate=predicate)


@pytest.mark.parametrize("mode", ["masked, compiled", "masked, as a graph"])
def test_no_lanes(mode):
    """A batch of none."""
    outcome = Machine(converted(), BACKEND, **MODES[mode]).run(
        [np.zeros(0, np.int32), np.zeros((0, 3), np.int32)], [], 0
    )
    assert [value.shape for value in outcome.values] == [(0, 3), (0,), (0,)]
