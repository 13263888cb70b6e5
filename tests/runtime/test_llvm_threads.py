"""When cores share the lanes of a native run, by the CPU time that lanes take; on a clock of its own in each thread."""

import threading
import time
from types import SimpleNamespace

import pytest

from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.llvm import multithreading
from pcbatch.runtime.llvm.interface import CONTROL, NEEDS_TAPE, REACHED, STATUS
from pcbatch.runtime.llvm.multithreading import LaneCost
from pcbatch.runtime.llvm.program import NativeCode, Running, TapeLengthError


@pytest.fixture
def lanes(monkeypatch):
    """Makes a call whose lanes take `seconds(lane)`; it has the parts that ran, and the threads that ran them."""
    clock = threading.local()
    monkeypatch.setattr(multithreading, "available", lambda: 2)
    monkeypatch.setattr(multithreading, "thread_time", lambda: getattr(clock, "now", 0.0))

    def make(seconds):
        def call(part):
            call.parts.append(part)
            call.threads.add(threading.get_ident())
            clock.now = getattr(clock, "now", 0.0) + sum(map(seconds, range(*part)))

        call.parts, call.threads = [], set()
        return call

    return make


def ran(call, count, cost):
    """The parts in which a run is made, which are all of its lanes, each once."""
    call.parts.clear()
    multithreading.run(call, (0, count), cost, lambda: None)
    parts = sorted(call.parts)
    assert [lane for part in parts for lane in range(*part)] == [*range(count)]
    return parts


def test_a_new_program_begins_with_a_lane_and_is_shared_as_soon_as_that_pays(lanes):
    cost, call = LaneCost(), lanes(lambda lane: 1e-5)
    parts = ran(call, 100_000, cost)
    assert parts[:2] == [(0, 1), (1, 17)]
    assert parts[2][0] <= 17 + multithreading.TRUSTED * 17
    assert len(parts) > 2 * multithreading.MOST_PARTS  # in the first run already, a second of work
    assert len(ran(call, 100_000, cost)) == 2 * multithreading.MOST_PARTS
    assert len(ran(call, 130, cost)) == 2 * 6  # 1.3 milliseconds


def test_one_call_does_for_little_work(lanes):
    cost, call = LaneCost(), lanes(lambda lane: 1e-6)
    assert ran(call, 300, cost) == [(0, 1), (1, 17), (17, 281), (281, 300)]
    assert ran(call, 300, cost) == [(0, 300)]
    assert ran(call, 1, cost) == [(0, 1)]
    assert len(call.threads) == 1


def test_a_lane_alone_is_never_shared(lanes):
    call = lanes(lambda lane: 5.0)
    assert [ran(call, 1, LaneCost()) for _ in range(3)] == [[(0, 1)]] * 3


def test_more_lanes_than_were_measured_are_measured_first(lanes):
    """Short calls of trivial lanes, then many of which only some are."""
    cost, call = LaneCost(), lanes(lambda lane: 1e-7 if lane < 50 else 1e-4)
    for _ in range(5):
        ran(call, 4, cost)
    parts = ran(call, 100_000, cost)
    assert parts[0][1] <= 2 * 4 * multithreading.TRUSTED
    assert len(parts) > 2 * multithreading.MOST_PARTS


def test_others_on_the_same_core_make_no_lane_dearer(monkeypatch):
    """A call that was held up: the wall's clock goes on, its thread's does not."""
    monkeypatch.setattr(multithreading, "available", lambda: 2)
    monkeypatch.setattr(multithreading, "_run_on_cores", lambda *_: pytest.fail("shared"))
    cost = LaneCost()
    for seconds in (20 * CPU.native_split, 0.0, 0.0, 20 * CPU.native_split, 20 * CPU.native_split, 0.0, 0.0):
        multithreading.run(lambda part: time.sleep(seconds) if seconds else None, (0, 4), cost, lambda: None)  # noqa: B023


def test_a_program_whose_lanes_become_dear_is_shared_soon(lanes):
    seconds = {"a lane": 1e-7}
    cost, call = LaneCost(), lanes(lambda lane: seconds["a lane"])
    for _ in range(5):
        ran(call, 100, cost)
    seconds["a lane"] = 1e-4
    counts = [len(ran(call, 100, cost)) for _ in range(2)]
    assert counts[0] == 1 < 2 * multithreading.PARTS < counts[1]


def test_short_runs_are_known_by_lanes_that_have_run(lanes):
    cost = LaneCost()
    assert not cost.short
    ran(lanes(lambda lane: 1e-7), 4, cost)
    assert 4 < cost.short <= multithreading.TRUSTED * 4  # more would be short, but nobody has seen these
    for _ in range(9):
        ran(lanes(lambda lane: 1e-6), 1000, cost)
    assert 0.9 < cost.short * 1e-6 / multithreading.short_seconds() < 1.1
    cost.doubt()
    assert not cost.short
    ran(lanes(lambda lane: 1e-6), 1000, cost)
    assert cost.short


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_does_not_wait_for_threads_that_others_keep_busy(fails, lanes):
    cost, call, free = LaneCost(), lanes(lambda lane: 1e-4), threading.Event()
    cost.note(1000, 0.1)
    busy = [multithreading._pool().submit(free.wait) for _ in range(multithreading._pool()._max_workers)]
    try:
        if fails:
            with pytest.raises(ZeroDivisionError):
                multithreading.run(lambda part: 1 // 0, (0, 1000), cost, lambda: None)
        else:
            ran(call, 1000, cost)
    finally:
        free.set()
    assert all(each.result() for each in busy)


@pytest.mark.parametrize(
    "seconds",
    [lambda lane: 1e-5, lambda lane: lane * 1e-9, lambda lane: 1e-5 if lane >= 19_000 else 1e-7],
    ids=["equal", "sorted", "dear at the end"],
)
def test_parts_are_balanced(seconds):
    """Whoever is done takes the next part; the last one to end is within 15% of half of the work."""
    count = 20_000
    cost, work = LaneCost(), [seconds(lane) for lane in range(count)]
    cost.note(count, sum(work))
    busy = [0.0, 0.0]
    for part in multithreading.parts(0, count, cost, 2):
        busy[busy.index(min(busy))] += sum(work[slice(*part)])
    assert max(busy) < 1.15 * sum(work) / 2


def test_groups_have_lanes_enough_in_each_part():
    """A part of a few lanes would leave places of its groups idle; a core without a part would be idle as a whole."""
    cost = LaneCost(least=256)
    cost.note(1000, 1.0)
    found = multithreading.parts(0, 1000, cost, 2)
    assert [behind - first for first, behind in found] == [250] * 4, "as many for each core"
    assert multithreading.parts(5, 100, cost, 2) == [(5, 52), (52, 100)]
    assert len(multithreading.parts(0, 1000, LaneCost(), 2)) >= 2 * multithreading.PARTS


class Space:
    """Memory of a thread whose tape is long."""

    capacity = 0

    def __init__(self):
        self.control, self.words_address, self.tape = [0] * CONTROL, id(self), "long"

    def take(self, addresses, first, behind):
        pass

    def lengthen(self, most):
        return False

    def shrink(self):
        self.tape = "given back"


def interrupted(control):
    raise KeyboardInterrupt


def without_tape(control):
    control[REACHED], control[STATUS] = 1, NEEDS_TAPE


@pytest.mark.parametrize(("what", "error"), [(interrupted, KeyboardInterrupt), (without_tape, TapeLengthError)])
@pytest.mark.parametrize("cores", [1, 2])
def test_a_run_that_ends_early_keeps_no_tape_and_teaches_nothing(what, error, cores, monkeypatch):
    monkeypatch.setattr(multithreading, "available", lambda: cores)
    spaces, cost, code = {}, LaneCost(), object.__new__(NativeCode)

    def take():
        space = Space()
        spaces[space.words_address] = space
        return space

    code.workspaces, code.longest_tape = SimpleNamespace(take=take, put_back=lambda space: None), 1
    code._loaded = SimpleNamespace(call=lambda address: what(spaces[address].control))
    if cores > 1:
        cost.note(4, 1.0)
    known = cost.of(1)
    with pytest.raises(error):
        code.run_part([], Running(), (0, 4), cost)
    assert cost.of(1) == known
    assert {space.tape for space in spaces.values()} == {"given back"}
