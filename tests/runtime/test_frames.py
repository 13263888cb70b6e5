"""Packed stacks: the numbers that are saved together lie side by side, and come back as they were."""

import numpy as np

from pcbatch.ir.machine import Block, Branch, Program, Push, PushJump, Return
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine.pointer_sharing import share_pointers
from pcbatch.runtime.machine.state import Layout, changes, in_place
from tests.runtime import tables
from tests.runtime.libraries import ON_BOTH, ints, library_named
from tests.runtime.tables import BOOL, FLOAT, INT, piece

SAVED = ("n", "k", "even", "odd", "x", "v")
VECTOR = TensorType("int32", (2,))


def saving():
    """Saves two ints, two bools, a float and a vector at each call, and folds what comes back; a lane is `n` deep."""
    blocks = (
        Block("b0", (piece(lambda n: (n <= 0,), "n", "t"),), Branch("t", 1, 2)),
        Block("b1", (piece(lambda n, x: (n + 1, n < 0, x), "n x", "r b y"),), Return()),
        Block(
            "b2",
            (
                piece(lambda n, x: (n % 2 == 0, n % 3 == 1, x), "n x", "even odd old"),
                piece(lambda n, k, v, x: (n - 1, k * 3 + 1, v + 1, x * 0.5), "n k v x", "n k v x"),
            ),
            PushJump(0, 3, 0),
            pushes=(*map(Push, "nkv"), Push("even", "even"), Push("odd", "odd"), Push("x", "old")),
        ),
        Block(
            "b3",
            (
                piece(lambda r, n, k, v: (r * 7 + n - 2 * k + v[0] - v[1],), "r n k v", "r"),
                piece(lambda b, even, odd, y, x: ((b ^ even) | odd, y - x), "b even odd y x", "b y"),
            ),
            Return(),
            pops=SAVED,
        ),
    )
    types = {"n": INT, "k": INT, "r": INT, "even": BOOL, "odd": BOOL, "x": FLOAT, "v": VECTOR, "t": BOOL, "b": BOOL}
    types |= {"y": FLOAT, "old": FLOAT}
    storage = {**dict.fromkeys(("r", "b", "y"), "register"), **dict.fromkeys(SAVED, "cached stack")}
    faults = (tables.DEPTH, tables.STEPS)
    program = Program(
        "saving", ("n", "k", "v", "x"), ("r", "b", "y"), types, storage, tables.stepping(blocks, 1), faults
    )
    return share_pointers(program)


def folded(n, k, v, x):
    """What it gives in Python."""
    if n <= 0:
        return n + 1, n < 0, x
    r, b, y = folded(n - 1, k * 3 + 1, [e + 1 for e in v], x * 0.5)
    return r * 7 + n - 2 * k + v[0] - v[1], b != (n % 2 == 0) or n % 3 == 1, y - x


@ON_BOTH
def test_what_is_saved_comes_back(library):
    """On stacks that grow, in a batch and in a pool that is refilled."""
    n, k = ints(0, 3, 5, 2, 6, -1), ints(1, 2, 3, 4, 5, 6)
    v, x = np.arange(12, dtype=np.int32).reshape(6, 2), np.linspace(0, 1, 6, dtype=np.float32)
    wanted = [folded(*each) for each in zip(n.tolist(), k.tolist(), v.tolist(), x.tolist(), strict=True)]
    for options in ({}, {"max_lanes": 2}) if library.name == "numpy" else ({},):
        outcome = library.run(saving(), n, k, v, x, **options)
        counted = library.run(saving(), n, k, v, x, schedule="sweep", **options)
        for place, (leaf, other) in enumerate(zip(outcome.values, counted.values, strict=True)):
            np.testing.assert_allclose(leaf, [each[place] for each in wanted], rtol=1e-6)
            assert np.asarray(leaf).tobytes() == np.asarray(other).tobytes()
        np.testing.assert_array_equal(outcome.steps, counted.steps)
        np.testing.assert_array_equal(outcome.active, counted.active)


@ON_BOTH
def test_stacks_that_grow_and_a_depth_that_is_too_much(library):
    arguments = ints(70, 3), ints(0, 0), np.zeros((2, 2), np.int32), np.zeros(2, np.float32)
    deep = library.run(saving(), *arguments)
    assert int(deep.stack_entries) == 129
    assert not np.any(deep.status)
    assert int(library.run(saving(), *arguments, max_depth=69).status[0]) == tables.DEPTH.status


def test_where_they_lie():
    layout = Layout(saving(), packs=True)
    assert layout.frames == {
        "frames n int32": ["stack n 0", "stack k 0"],
        "frames n uint8": ["stack even 0", "stack odd 0"],
    }
    stacked = {key: held.type.shape for key, held in layout.arrays.items() if held.stacked}
    assert stacked == {
        "calls": (),
        "frames n int32": (2,),
        "frames n uint8": (2,),
        "stack x 0": (),
        "stack v 0": (2,),
    }
    assert {*changes(layout, 2, None)} >= stacked.keys()
    assert in_place(layout, layout.program.blocks[2]) == stacked.keys()
    assert not Layout(saving()).frames


def test_sabotage_is_noticed(monkeypatch):
    """Each part is taken for its neighbour."""
    library, v, x = library_named("numpy"), np.zeros((2, 2), np.int32), np.zeros(2, np.float32)
    wanted = library.run(saving(), ints(3, 4), ints(1, 5), v, x)
    real = Layout.places.func
    shifted = property(lambda self: {key: (frame, 1 - place) for key, (frame, place) in real(self).items()})
    monkeypatch.setattr(Layout, "places", shifted)
    found = library.run(saving(), ints(3, 4), ints(1, 5), v, x)
    assert not np.array_equal(found.values[0], wanted.values[0])
