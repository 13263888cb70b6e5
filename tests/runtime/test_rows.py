"""The rows of gathered lanes: which blocks run in chunks, and that rows go back to the lanes that they are of."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.ir.machine import Block, Chunks, Jump, Program, Return
from pcbatch.optimize.machine.compaction import DEFAULT, DETERMINISTIC, PAIRED, Row
from pcbatch.runtime.machine.values import Rows
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
    """By hand: 8 lanes store 0, 1, 2, 3, 4, 4, 4, 4 times; blocks run on 3 rows at a time, from 7 lanes on on all 8."""
    arguments = np.zeros((8, 5), np.float32), ints(0, 1, 2, 3, 4, 4, 4, 4), ints(*[4] * 8)
    outcome = library.run(tables.reverse(), *arguments, schedule="sweep", jit=jit, compaction=EVERY_BLOCK)
    assert np.asarray(outcome.executions).tolist() == [1, 5, 4, 5]
    assert np.asarray(outcome.active).tolist() == [8, 8 + 7 + 6 + 5 + 4, 7 + 6 + 5 + 4, 1 + 1 + 1 + 1 + 4]
    assert np.asarray(outcome.rows).tolist() == [8, 8 + 8 + 6 + 6 + 6, 8 + 6 + 6 + 6, 3 + 3 + 3 + 3 + 6]


@on_both("jit", [True, False], [True])
def test_chunks_alone(library, jit):
    """Blocks that are never run for all lanes at once; chunks may have more rows than lanes, and run in pairs."""
    case = tables.reverse(), np.zeros((5, 5), np.float32), ints(0, 1, 2, 4, 4), ints(*[4] * 5)
    blocks = [
        replace(block, chunks=Chunks(rows, pairs=rows < 5))
        for block, rows in zip(case[0].blocks, (2, 8, 5, 1), strict=True)
    ]
    chunked = replace(case[0], blocks=tuple(blocks))
    options = {"jit": jit, "compaction": None}
    plain, found = (library.run(program, *case[1:], **options) for program in (case[0], chunked))
    for actual, expected in zip(found.values, plain.values, strict=True):
        np.testing.assert_array_equal(actual, expected)
    for count in COUNTS:
        np.testing.assert_array_equal(getattr(found, count), getattr(plain, count), err_msg=count)
    executions, active, rows = (np.asarray(each).tolist() for each in (found.executions, found.active, found.rows))
    assert rows[0] == 6
    assert rows[1] == 8 * executions[1]
    assert rows[2] == 5 * executions[2]
    assert rows[3] == active[3]


def chunks_of(row, lanes, compaction=DEFAULT, sync=False):
    """The chunks of a block behind the first one, whose rows are like `row` and move nothing."""
    blocks = (Block("b0", (), Jump(1)), Block("b1", (), Return(), sync=sync))
    program = Program("chunks", (), (), {}, {}, blocks)
    return compaction.chunks(program, [Row(1.0), row], lanes)[1]


def test_chunks_by_price():
    """Expensive rows few at a time, cheap ones many; at least 16 where they share a matrix or half a batch."""
    assert chunks_of(Row(1e6), 64) == Chunks(4, 52)
    assert chunks_of(Row(3e4), 64) == Chunks(16, 52)
    assert chunks_of(Row(1e6, shares=True), 64) == Chunks(8)
    assert chunks_of(Row(1e4, shares=True), 512) == Chunks(32)
    assert chunks_of(Row(2e3), 4096) == Chunks(32, 3277)
    assert chunks_of(Row(1e6, shares=True), 31) == Chunks(8, 25)
    assert chunks_of(Row(1e6, shares=True), 8) == Chunks(4, 7)


def test_expensive_rows_run_in_pairs_of_chunks():
    """Where nothing is kept of a run, its rows share a matrix and fill a chunk, and there are lanes for four."""
    assert chunks_of(Row(1e6, shares=True), 64, PAIRED) == Chunks(8, pairs=True)
    assert chunks_of(Row(1e6, shares=True), 31, PAIRED) == Chunks(8, 25)
    assert chunks_of(Row(1e4, shares=True), 512, PAIRED) == Chunks(32, pairs=True)
    assert chunks_of(Row(2e3, shares=True), 4096, PAIRED) == Chunks(32, 3277)
    assert chunks_of(Row(1e6), 64, PAIRED) == Chunks(4, 52)


def test_some_blocks_run_on_all_lanes_only():
    """Cheap ones, small batches, and where lanes wait for each other those that come seldom."""
    assert chunks_of(Row(1e3), 64) is None
    assert chunks_of(Row(1e6), 4) is None
    assert chunks_of(Row(1e6), 64, sync=True) is None
    assert chunks_of(Row(1e7), 64, sync=True) == Chunks(4, 52)


def test_chunks_are_not_lost_beside_a_dear_block():
    """What they save is compared with what the dearest block costs."""
    blocks = (Block("b0", (), Jump(1)), Block("b1", (), Jump(2)), Block("b2", (), Return()))
    program = Program("beside", (), (), {}, {}, blocks)
    assert DEFAULT.chunks(program, [Row(1.0), Row(3e4), Row(1e5)], 64) == [None, Chunks(16, 52), Chunks(4, 52)]
    assert DEFAULT.chunks(program, [Row(1.0), Row(3e4), Row(1e7)], 64) == [None, None, Chunks(4, 52)]


def test_deterministic_chunks_do_not_depend_on_the_batch():
    """Every block that rounds has some, the first one too, cheap as it may be."""
    blocks = (Block("b0", (), Jump(1)), Block("b1", (), Return()))
    program = Program("always", (), (), {}, {}, blocks)
    rows = [Row(1.0), Row(1e6, shares=True, rounds=False)]
    found = {lanes: DETERMINISTIC.chunked(program, rows, lanes) for lanes in (1, 64, None)}
    assert [block.chunks for block in found[1].blocks] == [Chunks(32), None]
    assert found[1] == found[64] == found[None]


@BY_NAME
def test_listed(name):
    """Compiled it is a function of its own: the lanes of the mask in order, behind them any."""
    backend = library_named(name).backend
    listed = backend.compile(backend.listed, jit=True)
    for seed, share in enumerate((0.0, 0.3, 0.8, 1.0)):
        mask = np.random.default_rng(seed).random(40) < share
        order, count = (np.asarray(each) for each in listed(backend.array(mask, "bool")))
        np.testing.assert_array_equal(order[: int(count)], np.flatnonzero(mask))
        assert order.shape == mask.shape
        assert np.all((order >= 0) & (order < 40))


@BY_NAME
@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any), st.integers(1, 12), st.data())
def test_rows_go_back_to_their_lanes(name, mask, size, data):
    """Whole rows and numbers. Rows that are left over are of the last lane that takes part, which is in the chunk."""
    backend = library_named(name).backend
    waiting = np.flatnonzero(mask)
    first = data.draw(st.integers(0, len(waiting) - 1))
    order, _ = backend.listed(backend.array(mask, "bool"))
    places = [backend.constant(len(waiting)), backend.constant(first)]
    rows = Rows.chunk(backend, order, *places, size)
    lanes = waiting[first : first + size]
    np.testing.assert_array_equal(rows.lanes, [*lanes, *[waiting[-1]] * (size - len(lanes))])
    np.testing.assert_array_equal(rows.mask, np.arange(size) < len(lanes))
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
