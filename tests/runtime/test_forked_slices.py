"""Runs whose calls are forked, in slices: the same to the bit, wherever they stop, are saved and go on."""

import numpy as np
import pytest

from pcbatch.errors import UsageError
from pcbatch.runtime.machine.forked_slices import ForkedSlices, is_forked
from pcbatch.runtime.resume.checkpoint import FORMAT, Checkpoint, Saved
from pcbatch.runtime.resume.savefile import read
from tests.runtime.libraries import ints
from tests.runtime.test_forking import NONE, N, assert_equal, expected, forked, trapped

TRAP, SPIN = NONE.copy(), NONE.copy()
TRAP[4], TRAP[2], SPIN[2] = 1, 4, 3


def sliced(machine, arguments, trips, between=lambda slices, snapshot: snapshot):
    """A run in slices of so many trips: the last outcome, and the snapshots at the ends of all slices."""
    slices, seen = ForkedSlices(machine), []
    snapshot = slices.begin(arguments, len(arguments[0]))
    while True:
        arrived, outcome = slices.leg(snapshot, [], trips)
        snapshot = slices.grown(arrived.snapshot) if arrived.paused else arrived.snapshot
        if snapshot is None or not (arrived.can_run or arrived.paused):
            return outcome, seen
        seen.append(snapshot)
        snapshot = between(slices, snapshot)


@pytest.mark.parametrize(("spread", "trips"), [(16, 1), (1, 2), (2, 5), (3, None)])
def test_slices_give_what_a_run_gives(spread, trips):
    """With lanes enough, and with few, to which more come."""
    wanted = forked(trapped(), spread=64, jit=False).run([N, NONE, NONE], [], 7)
    outcome, seen = sliced(forked(trapped(), spread=spread, jit=False), [N, NONE, NONE], trips)
    assert_equal(outcome, wanted)
    np.testing.assert_array_equal(outcome.active, wanted.active)
    assert all(map(is_forked, seen))
    assert (max(snapshot.pool.lanes for snapshot in seen) > 7 * spread) == (spread < 4)


@pytest.mark.parametrize("limit", [0, 2**22])
def test_what_is_left_goes_on_in_sequence(limit):
    """Examples that fail, one beside a call that would not end, and all that find no lanes: the others have ended."""
    machine = forked(trapped(), spread=16, limit=limit, jit=False)
    outcome, seen = sliced(machine, [N, TRAP, SPIN], 3)
    wanted = expected(trapped(), [N, TRAP, SPIN])
    assert_equal(outcome, wanted)
    assert is_forked(seen[0]) == (limit > 0)
    assert not is_forked(seen[-1])
    assert outcome.executions.size == len(machine.program.blocks)


class Files:
    """Saves and reads each snapshot that it is shown."""

    def __init__(self, path):
        self.path = path

    def __call__(self, slices, snapshot):
        return self.read().snapshot(slices.legs, slices.forked) if self.save(snapshot) else snapshot

    def save(self, snapshot):
        origin = {"program": "", "options": {}, "types": {}, "shared": [], "defaults": {}, "records": []}
        Checkpoint(snapshot, {}, {}, origin, "1", False).save(self.path)
        return True

    def read(self):
        return Saved(str(self.path), *read(self.path))


def test_a_run_that_is_saved_after_each_slice(tmp_path):
    machine = forked(trapped(), spread=2, jit=False)
    outcome, seen = sliced(machine, [N, TRAP, SPIN], 4, Files(tmp_path / "run.npz"))
    assert_equal(outcome, expected(trapped(), [N, TRAP, SPIN]))
    assert len(seen) > 4
    assert FORMAT == 3


FORGED = {
    "lists": lambda array: array + 10**6,
    "lengths": lambda array: array * 0 + 3,
    "parent": lambda array: array * 0,
    "child 0": lambda array: array - 7,
    "calls": lambda array: array * 0 + 9,
    "pc": lambda array: array * 0 + 99,
    "given up": lambda array: array + 2,
    "depth": lambda array: array + 40,
}


@pytest.mark.parametrize("key", FORGED)
def test_files_of_no_run_are_refused(key, tmp_path):
    machine, files = forked(trapped(), spread=8, jit=False), Files(tmp_path / "run.npz")
    _, seen = sliced(machine, [ints(5, 3), NONE[:2], NONE[:2]], 2)
    snapshot = seen[1]
    snapshot.state[key] = FORGED[key](np.asarray(snapshot.state[key]))
    files.save(snapshot)
    slices = ForkedSlices(machine)
    with pytest.raises(UsageError, match="PCB592"):
        files.read().snapshot(slices.legs, slices.forked)
