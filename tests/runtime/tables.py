"""Tables of blocks written by hand, as the emitter would write them, for tests of the machine.

Their pieces are made of Python's operators, which the values of every array library know. Where one has a check, the
table is given `ops`, the library's checked operations.
"""

from __future__ import annotations

import dataclasses
from types import ModuleType

import numpy as np

from pcbatch.errors import Span
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
    Store,
)
from pcbatch.ir.types import TensorType

INT, FLOAT, BOOL = TensorType("int32"), TensorType("float32"), TensorType("bool")
WEAK = TensorType("int32", (), weak=True)
FILE = "user.py"
SOURCE = ["\n"] * 19 + ["    q = 10 // x\n", "    assert q > 0\n", "    raise ValueError\n", "    return\n"]


def at(line: int) -> Span:
    """A span on one line of the user's file."""
    return Span(FILE, line, 4, line, 9)


DEPTH = FaultSite(LaneStatus.MAX_DEPTH, "RecursionError: too many live calls", (), at(1))
STEPS = FaultSite(LaneStatus.MAX_STEPS, "RuntimeError: too many steps", (), at(2))


def stored(program: Program, kind: str) -> Program:
    """`program` with all its stacks of one storage kind, "stack" or "cached stack"."""
    storage = {name: "register" if old == "register" else kind for name, old in program.storage.items()}
    return dataclasses.replace(program, storage=storage)


def stepping(blocks: tuple[Block, ...], site: int) -> tuple[Block, ...]:
    """`blocks`, with `site` the fault of every turn and call that is one too many."""
    return tuple(dataclasses.replace(block, steps_site=site) for block in blocks)


def without_place(program: Program) -> Program:
    """`program`, whose first fault site has no place in the source."""
    first, *others = program.faults
    return dataclasses.replace(program, faults=(dataclasses.replace(first, span=None), *others))


def piece(function, reads: str, writes: str, *sites: int, shared: str = "") -> Piece:
    """A piece, its names given as words."""
    return Piece(function, tuple(reads.split()), tuple(writes.split()), tuple(shared.split()), sites, (at(10),))


def fibonacci(*, with_state: bool = False) -> Program:
    """1, 1, 2, 3, 5, ..: two calls, `n` and `left` saved across them. With a state, a vector is saved as well."""
    vector = ("v",) if with_state else ()
    kept = tuple(Push(name) for name in vector)
    blocks = (
        Block("b0", (piece(lambda n: (n <= 1,), "n", "t"),), Branch("t", 1, 2), span=at(1)),
        Block("b1", (piece(lambda: (1,), "", "r"),), Return(), span=at(2)),
        Block(
            "b2",
            (piece(lambda n: (n - 2,), "n", "n"), *(piece(lambda v: (v + 1.0,), "v", "v") for _ in vector)),
            PushJump(0, 3, 0),
            pushes=(Push("n"), *kept),
            span=at(3),
        ),
        Block(
            "b3",
            (
                piece(lambda n, r: (n - 1, r), "n r", "n left"),
                *(piece(lambda v: (v * 1.5,), "v", "v") for _ in vector),
            ),
            PushJump(0, 4, 0),
            pops=("n", *vector),
            pushes=(Push("left", "left"), *kept),
            span=at(3),
        ),
        Block(
            "b4",
            (piece(lambda left, r: (left + r,), "left r", "r"),),
            Return(),
            pops=("left", *vector),
            span=at(4),
        ),
    )
    types = {"n": INT, "left": INT, "r": INT, "t": BOOL, "v": TensorType("float32", (128,))}
    storage = {"n": "cached stack", "left": "cached stack", "r": "register", **dict.fromkeys(vector, "cached stack")}
    return Program("fibonacci", ("n", *vector), ("r", *vector), types, storage, stepping(blocks, 1), (DEPTH, STEPS))


def fibonacci_of(n: int) -> int:
    """What `fibonacci` should give."""
    return 1 if n <= 1 else fibonacci_of(n - 2) + fibonacci_of(n - 1)


def gcd(ops: ModuleType) -> Program:
    """Euclid's algorithm: a loop, no calls, and a checked `%`."""
    division = FaultSite(LaneStatus.ARITHMETIC, "ZeroDivisionError: integer modulo by zero", (), at(7))
    blocks = (
        Block("b0", (piece(lambda b: (b != 0,), "b", "t"),), Branch("t", 1, 2), span=at(6)),
        Block("b1", (piece(lambda a, b: (b, ops.mod(a, b, 1)), "a b", "a b", 1),), Jump(0, turn=True), span=at(7)),
        Block("b2", (), Return(), span=at(8)),
    )
    types = {"a": INT, "b": INT, "t": BOOL}
    return Program(
        "gcd", ("a", "b"), ("a",), types, {"a": "register", "b": "register"}, stepping(blocks, 0), (STEPS, division)
    )


def reverse(storage: str = "register") -> Program:
    """Writes `i` into `array[at - i]` for i = 0, 1, .. `count - 1`; an index out of range fails."""
    index = FaultSite(LaneStatus.INDEX, "IndexError: index {} is out of range", ("k",), at(12))
    blocks = (
        Block("b0", (piece(lambda: (0,), "", "i"),), Jump(1)),
        Block("b1", (piece(lambda i, count, at: (i < count, at - i), "i count at", "t k"),), Branch("t", 2, 3)),
        Block("b2", (Store("array", ("k",), "i", 1), piece(lambda i: (i + 1,), "i", "i")), Jump(1, turn=True)),
        Block("b3", (), Return()),
    )
    types = {"array": TensorType("float32", (5,)), "i": WEAK, "k": INT, "count": INT, "at": INT, "t": BOOL}
    registers = dict.fromkeys(("i", "k", "count", "at"), "register")
    return Program(
        "reverse",
        ("array", "count", "at"),
        ("array",),
        types,
        {"array": storage, **registers},
        stepping(blocks, 0),
        (STEPS, index),
    )


def even() -> Program:
    """Mutual recursion in bools: what comes back from a call is negated, by `is_even` unless 3 divides n."""
    blocks = (
        Block("b0", (piece(lambda n: (n == 0,), "n", "t"),), Branch("t", 1, 2), function="is_even"),
        Block("b1", (piece(lambda: (True,), "", "r"),), Return(), function="is_even"),
        Block(
            "b2",
            (piece(lambda n: (n - 1, n % 3 == 0), "n", "n flag"),),
            PushJump(4, 3, 0),
            pushes=(Push("n"), Push("flag", "flag")),
            function="is_even",
        ),
        Block(
            "b3",
            (piece(lambda r, flag: (~r ^ flag,), "r flag", "r"),),
            Return(),
            pops=("n", "flag"),
            function="is_even",
        ),
        Block("b4", (piece(lambda n: (n - 1, n == 0), "n", "m t"),), Branch("t", 5, 6), function="is_odd"),
        Block("b5", (piece(lambda: (True,), "", "r"),), Return(), function="is_odd"),
        Block("b6", (piece(lambda m: (m,), "m", "n"),), PushJump(0, 7, 0), function="is_odd"),
        Block("b7", (piece(lambda r: (~r,), "r", "r"),), Return(), function="is_odd"),
    )
    types = {"n": INT, "m": INT, "r": BOOL, "t": BOOL, "flag": BOOL}
    storage = {"n": "cached stack", "flag": "cached stack", "r": "register", "m": "register"}
    return Program("is_even", ("n",), ("r",), types, storage, stepping(blocks, 1), (DEPTH, STEPS))


def faults(ops: ModuleType) -> Program:
    """`10 // x`, then an assert that the quotient is positive, then a raise above 4; else its root."""
    sites = (
        FaultSite(LaneStatus.ARITHMETIC, "ZeroDivisionError: integer division by zero", (), at(20)),
        FaultSite(LaneStatus.ASSERTION, "AssertionError: {} is not positive", ("q",), at(21)),
        FaultSite(LaneStatus.RAISED, "ValueError: {} of {x} is too large".replace("{x}", "{}"), ("q", "x"), at(22)),
    )
    blocks = (
        Block("b0", (piece(lambda x: (ops.floordiv(10, x, 0),), "x", "q", 0),), Jump(1), span=at(20)),
        Block("b1", (piece(lambda q: (q > 0,), "q", "t"),), Branch("t", 3, 2), span=at(21)),
        Block("b2", (), Fault(1), span=at(21)),
        Block("b3", (piece(lambda q: (q > 4,), "q", "t"),), Branch("t", 4, 5), span=at(22)),
        Block("b4", (), Fault(2), span=at(22)),
        Block("b5", (piece(lambda q: (_root(ops, q), q), "q", "y i"),), Return(), span=at(23)),
    )
    types = {"x": INT, "q": INT, "t": BOOL, "y": FLOAT, "i": INT}
    storage = dict.fromkeys(("x", "q", "y", "i"), "register")
    return Program("faults", ("x",), ("y", "i"), types, storage, blocks, sites)


def predicated(ops: ModuleType) -> Program:
    """`12 // x` and a store of it at `x`, both only where `x` is not 0; what is left out neither fails nor writes."""
    division = FaultSite(LaneStatus.ARITHMETIC, "ZeroDivisionError: integer division by zero", (), at(20))
    index = FaultSite(LaneStatus.INDEX, "IndexError: index {} is out of range", ("x",), at(21))
    quotient = piece(lambda x: (ops.floordiv(12, x, 0),), "x", "q", 0)
    both = piece(lambda q, x: (q + x,), "q x", "sum")
    body = (
        piece(lambda x: (x != 0, x > 1), "x", "there large"),
        dataclasses.replace(quotient, predicate="there"),
        Store("array", ("x",), "q", 1, predicate="there"),
        dataclasses.replace(both, predicate="large"),
    )
    types = {"x": INT, "array": TensorType("int32", (4,)), "q": INT, "sum": INT, "there": BOOL, "large": BOOL}
    storage = dict.fromkeys(("x", "array", "q", "sum"), "register")
    blocks = (Block("b0", body, Jump(1)), Block("b1", (), Return()))
    return Program("predicated", ("x", "array"), ("array", "q", "sum"), types, storage, blocks, (division, index))


def read_after_stores() -> Program:
    """Stores `x` at `i`, adds 1 at `j` and gives the sum of it all, where `x` is above 1 ten times that; 3 times."""
    index = FaultSite(LaneStatus.INDEX, "IndexError: index {} is out of range", ("i",), at(21))
    tenfold = piece(lambda array: (array * 10,), "array", "array")
    body = (
        Store("array", ("i",), "x", 1),
        piece(lambda array, j, x: (array[j] + 1, x > 1), "array j x", "more large"),
        Store("array", ("j",), "more", 1),
        piece(lambda array: (sum(array[k] for k in range(4)), array), "array", "total copy"),
        dataclasses.replace(tenfold, predicate="large"),
        piece(lambda k: (k + 1, k < 2), "k", "k again"),
    )
    blocks = (
        Block("b0", (piece(lambda: (0,), "", "k"),), Jump(1)),
        Block("b1", body, Jump(Branch("again", 1, 2), turn=True)),
        Block("b2", (), Return()),
    )
    array, numbers = TensorType("int32", (4,)), dict.fromkeys(("x", "i", "j", "k", "more", "total"), INT)
    types = {"array": array, "copy": array, **numbers, "large": BOOL, "again": BOOL}
    storage = dict.fromkeys(("array", "copy", "x", "i", "j", "k", "total"), "register")
    parameters, results = ("array", "x", "i", "j"), ("array", "copy", "total")
    return Program("stores", parameters, results, types, storage, stepping(blocks, 0), (STEPS, index))


def _root(ops: ModuleType, q):
    """The root of a whole number, of one that is negative 0: other lanes may hold any."""
    return ops.to_float(ops.maximum(q, 0)) ** 0.5


def scaled(captured=None):
    """`W @ x`, W a shared operand, or a captured layer."""
    function = (lambda x, w: ((w @ x[:, None])[:, 0],)) if captured is None else (lambda x: (captured(x[None])[0],))
    shared = {} if captured is not None else {"W": TensorType("float32", (3, 3))}
    body = (piece(function, "x", "x", shared=" ".join(shared)),)
    vector = TensorType("float32", (3,))
    return Program(
        "scaled", ("x",), ("x",), {"x": vector}, {"x": "register"}, (Block("b0", body, Return()),),
        shared=tuple(shared), shared_types=shared,
    )  # fmt: skip


def singular(inverse):
    """Inverts a matrix in one block, which lanes that wait elsewhere must not make fail; then doubles in another."""
    matrix = TensorType("float32", (2, 2))
    blocks = (
        Block("b0", (piece(lambda m: (m[0, 0] + m[1, 1] > 0.0,), "m", "t"),), Branch("t", 1, 2), span=at(30)),
        Block("b1", (piece(lambda m: (inverse(m),), "m", "m"),), Return(), span=at(31)),
        Block("b2", (piece(lambda m: (m * 2.0,), "m", "m"),), Return(), span=at(32)),
    )
    return Program("singular", ("m",), ("m",), {"m": matrix, "t": BOOL}, {"m": "register"}, blocks)


VECTORS = np.random.default_rng(1).normal(size=(6, 128)).astype(np.float32)
CASES = {  # of programs, given a library's checked operations
    "fibonacci": (lambda _: fibonacci(), ([0, 1, 5, 6, 3, 4],), {}),
    "fibonacci with little depth": (lambda _: fibonacci(), ([0, 1, 5, 6, 3, 4],), {"max_depth": 3}),
    "fibonacci with few steps": (lambda _: fibonacci(), ([0, 1, 5, 6, 3, 4],), {"max_steps": 8}),
    "saved vectors": (lambda _: fibonacci(with_state=True), ([0, 1, 5, 2, 3, 4], VECTORS), {}),
    "gcd": (gcd, ([12, 5, 0, 100], [18, 0, 0, 75]), {"max_steps": 2}),
    "stores": (lambda _: reverse(), (np.ones([4, 5], np.float32), [0, 3, 5, 9], [0, 4, 2, 1]), {}),
    "reads after stores": (
        lambda _: read_after_stores(),
        (np.ones([4, 4], np.int32), [0, 3, 1, 2], [0, 3, 5, 1], [0, 1, 1, 1]),
        {},
    ),
    "bools": (lambda _: even(), (list(range(7)),), {}),
    "predicates": (predicated, ([3, 0, -2, 1, 7, 0], np.ones([6, 4], np.int32)), {}),
    "faults": (faults, ([3, 0, -2, 1, 5, 2],), {}),
}
"""Programs, given a library's checked operations, with arguments and limits: returns, and every kind of fault."""


def case(name: str, ops: ModuleType) -> tuple[Program, list[np.ndarray], dict[str, int]]:
    """The program, the arguments and the limits of one of the cases."""
    program, arguments, limits = CASES[name]
    return program(ops), [np.asarray(a, np.int32) if isinstance(a, list) else a for a in arguments], limits
