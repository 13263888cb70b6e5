"""The rows of gathered lanes: which sizes blocks get, and that rows go back to the lanes that they are of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.optimize.machine.row_sizes import Compaction
from pcbatch.runtime.machine.rows import Rows
from tests.runtime import tables
from tests.runtime.libraries import EVERY_BLOCK, MODES, ints, library_named, on_both

BY_NAME = pytest.mark.parametrize("name", ["numpy", "tensorflow"])


COUNTS = ("status", "site", "place", "steps", "executions", "active", "trips")
EVERYWHERE = [(case, *mode) for case in tables.CASES for mode in MODES]


@on_both("case, schedule, jit", EVERYWHERE, [("stores", "sweep", True)])
def test_gathered_lanes_give_what_masked_ones_give(library, case, schedule, jit):
    """The same results, faults and counts; never more rows. The corpus says so of every program."""
    program, arguments, limits = tables.case(case, library.ops)
    masked, gathered = (
        library.run(program, *arguments, schedule=schedule, jit=jit, compaction=compaction, **limits)
        for compaction in (None, EVERY_BLOCK)
    )
    for count in COUNTS:
        np.testing.assert_array_equal(getattr(gathered, count), getattr(masked, count), err_msg=count)
    shown = zip(gathered.fault_values.values(), masked.fault_values.values(), strict=True)
    for actual, expected in (*zip(gathered.values, masked.values, strict=True), *shown):
        np.testing.assert_array_equal(actual, expected)
    lanes = len(arguments[0])
    executions, active, rows = (np.asarray(each) for each in (gathered.executions, gathered.active, gathered.rows))
    np.testing.assert_array_equal(masked.rows, executions * lanes)
    assert np.all((active <= rows) & (rows <= executions * lanes))


@on_both("jit", [True, False], [False])
def test_rows_are_counted(library, jit):
    """By hand: 8 lanes store 0, 1, 2, 3, 4, 4, 4, 4 times; blocks run at 8, 4 or 2 rows."""
    arguments = np.zeros((8, 5), np.float32), ints(0, 1, 2, 3, 4, 4, 4, 4), ints(*[4] * 8)
    outcome = library.run(tables.reverse(), *arguments, schedule="sweep", jit=jit, compaction=EVERY_BLOCK)
    assert np.asarray(outcome.executions).tolist() == [1, 5, 4, 5]
    assert np.asarray(outcome.active).tolist() == [8, 8 + 7 + 6 + 5 + 4, 7 + 6 + 5 + 4, 1 + 1 + 1 + 1 + 4]
    assert np.asarray(outcome.rows).tolist() == [8, 8 + 8 + 8 + 8 + 4, 8 + 8 + 8 + 4, 2 + 2 + 2 + 2 + 4]


def test_sizes():
    """Eighths and halves while each saves enough more than the last, down to the floor."""
    compaction = Compaction(floor=4, most=4, fixed=1000.0)
    assert compaction._sizes(10.0, 0.0, 64) == (8,)
    assert compaction._sizes(100.0, 0.0, 64) == (4, 8, 16, 32)
    assert compaction._sizes(1e6, 0.0, 64) == (4, 8, 16, 32)
    assert compaction._sizes(1e6, 0.0, 512) == (4, 8, 64, 256)
    assert compaction._sizes(1e6, 0.0, 17) == (4, 8, 12)
    assert Compaction(multiple=1, fixed=1000.0)._sizes(1e6, 0.0, 17) == (5, 9)


def test_sizes_are_not_lost_beside_a_dear_block():
    """What a size saves is compared with what the dearest block costs."""
    compaction = Compaction(floor=4, most=4, fixed=1000.0)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 100.0) == (4, 8, 16, 32)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 4_000.0) == (8,)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 10_000.0) == ()


def test_some_blocks_run_on_all_lanes_only():
    """Cheap ones, those with much to move, batches of one lane; where lanes wait for each other there are quarters."""
    compaction = Compaction(fixed=1000.0)
    assert compaction._sizes(1.0, 0.0, 64) == ()
    assert compaction._sizes(100.0, 1e6, 64) == ()
    assert compaction._sizes(1e6, 0.0, 1) == ()
    assert compaction._sizes(100.0, 0.0, 64, waits=True) == ()
    assert compaction._sizes(800.0, 0.0, 64, waits=True) == (16,)
    assert compaction._sizes(4000.0, 0.0, 64, waits=True) == (4, 16)
    assert compaction._sizes(4000.0, 0.0, 64, 0.02 * 64 * 4000.0, waits=True) == (16,)


@BY_NAME
@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 40))
def test_compact(name, mask, size):
    """The first lanes of the mask in order, then the first again."""
    backend = library_named(name).backend
    lanes = np.flatnonzero(mask)
    rows = np.asarray(backend.compact(backend.array(mask, "bool"), size))
    if len(lanes):
        np.testing.assert_array_equal(rows, [*lanes[:size], *[lanes[0]] * (size - len(lanes))])
    assert rows.shape == (size,)


@BY_NAME
@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 12), st.data())
def test_rows_go_back_to_their_lanes(name, mask, size, data):
    """Whole rows and numbers."""
    backend = library_named(name).backend
    rows = Rows.gathered(backend, backend.array(mask, "bool"), size)
    writing = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))) & np.asarray(rows.mask)
    pairs, numbers = np.zeros((len(mask), 2), np.float32), np.zeros(len(mask), np.float32)
    arrays = [backend.array(pairs.copy(), "float32"), backend.array(numbers.copy(), "float32")]
    masks = [backend.array(writing, "bool")] * 2
    new = np.arange(2 * size, dtype=np.float32).reshape(size, 2) + 1
    for row in np.flatnonzero(writing):
        pairs[rows.lanes[row]], numbers[rows.lanes[row]] = new[row], 7
    values = [backend.array(new, "float32"), backend.array(7.0, "float32")]
    for found, expected in zip(rows.put_each(arrays, masks, values), (pairs, numbers), strict=True):
        np.testing.assert_array_equal(found, expected)


@BY_NAME
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_gathered_stores_and_loads(name, data):
    """`load` and `masked_store` with lanes do what NumPy does row by row."""
    lanes, rows = 6, data.draw(st.permutations(range(6)))[: data.draw(st.integers(1, 6))]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    place = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))), np.int32)
    array = np.arange(lanes * 4, dtype=np.float32).reshape(lanes, 4)
    value = -np.arange(1, len(rows) + 1, dtype=np.float32)
    expected = array.copy()
    for row, lane in enumerate(rows):
        if mask[row]:
            expected[lane, place[row]] = value[row]
    backend = library_named(name).backend
    given, given_rows = backend.array(array, "float32"), backend.array(rows, "int32")
    places, masks, values = backend.array(place, "int32"), backend.array(mask, "bool"), backend.array(value, "float32")
    stored = backend.masked_store(given, [places], masks, values, given_rows)
    np.testing.assert_array_equal(stored, expected)
    np.testing.assert_array_equal(backend.load(given, [places], given_rows), array[rows, place])
