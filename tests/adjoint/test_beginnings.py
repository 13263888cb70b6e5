"""`tape="replay"` keeps a bounded number of beginnings, however long the run, and runs few segments often: on NumPy."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.checkpointing import Checkpoints
from pcbatch.runtime.adjoint.tape import Sizes
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import ArraySpec
from tests.runtime.numpy_backend.backend import numpy_backend

LANES = 3
POOL = Pool.of(LANES)
HELD = {"pc": ArraySpec(TensorType("int32")), "weight": ArraySpec(TensorType("float32", (5,)))}


class Counted:
    """Segments of which the state is how many there have been, and the tape which one it is."""

    def __init__(self, beginnings, bytes_=1):
        self.backend, self.runs = numpy_backend(), 0
        self.tapes = SimpleNamespace(sizes=Sizes(beginnings=beginnings, bytes=bytes_))
        self.layout = SimpleNamespace(carried=[*HELD], all_stacks=[], arrays=HELD)
        self.keys, self.changed, self.held = [*HELD], {"pc"}, [HELD["pc"]]
        loop = SimpleNamespace(counter_specs={})
        self.legs = SimpleNamespace(loop=loop, flat=list, specs=self.specs, capacity=lambda _: 0)

    @staticmethod
    def lanes(snapshot):
        return LANES

    @staticmethod
    def specs(pool, capacity):
        return [(held.type.dtype, (LANES, *held.type.shape)) for held in HELD.values()]

    def run(self, flat):
        self.runs += 1
        place, weight = flat
        assert np.all(weight == 7)
        return [place + 1, weight, place]

    @staticmethod
    def unpack(packed, pool):
        *flat, tape = packed
        return SimpleNamespace(snapshot=Flat(flat), lacking=False, tape={"which": tape})

    @staticmethod
    def grown(snapshot, lacking):
        return snapshot


class Flat(list):
    """A snapshot that is flat."""

    pool = POOL


def there_and_back(count, beginnings):
    """How many segments are run on the way back, and how many beginnings are there at most, at a run of `count`."""
    segments = Counted(beginnings)
    aside, most = Checkpoints(segments), 0
    segments.backend.records = records = type(segments.backend.records)()
    with_record = records.added

    def seen(records, arrays):
        nonlocal most
        found = with_record(records, arrays)
        most = max(most, *map(len, found))
        return found

    records.added = seen
    snapshot = Flat([np.zeros(LANES, np.int32), np.full((LANES, 5), 7, np.float32)])
    kept = aside.nothing(snapshot)
    for number in range(count):
        kept = aside.added(kept, np.int32(number), snapshot, [])
        snapshot = Flat(segments.run(snapshot)[:2])
    segments.runs = 0
    for number in range(count, 0, -1):
        kept, tape = aside.last(kept, np.int32(number), POOL, segments.run)
        np.testing.assert_array_equal(tape[0], np.full(LANES, number - 1))
    assert kept[1] == 0
    return segments.runs, most


@pytest.mark.parametrize("beginnings", [2, 4, 8])
def test_few_are_kept_and_few_run_often(beginnings):
    for count in [*range(1, 36), 100, 257]:
        runs, most = there_and_back(count, beginnings)
        apart = 2 ** max(math.ceil(math.log2(count / beginnings)), 0)
        assert most <= beginnings + math.log2(apart) + 1
        assert runs <= count * (1 + math.log2(apart) / 2)


def test_where_all_are_kept_each_runs_once():
    assert there_and_back(8, 8) == (8, 8)
    assert there_and_back(100, 100)[0] == 100


def test_room_that_is_free_again_is_used():
    """Of two that are left, those in between are put where there were others."""
    runs, most = there_and_back(16, 8)
    assert (runs, most) == (16 + 8, 8)
    assert there_and_back(32, 8)[0] < 32 * 2


@pytest.mark.parametrize(("bytes_", "room"), [(1, 4), (4 * (LANES + 1) * 9, 8), (2**30, 256)])
def test_small_ones_are_kept_more_often(bytes_, room):
    first = Flat([np.zeros(LANES, np.int32), np.zeros((LANES, 5), np.float32)])
    assert Checkpoints(Counted(4, bytes_)).nothing(first)[0] == room
