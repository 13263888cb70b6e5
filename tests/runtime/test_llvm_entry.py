"""Warm calls of native programs: how much they go through, and that they look at all that may be different."""

import functools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.llvm import entry
from tests.api.warm import settled, warm
from tests.runtime.probes import ways
from tests.threads import in_threads

X, Y = (np.random.default_rng(seed).normal(size=4).astype(np.float32) for seed in range(2))


@pcbatch.autobatch(output="numpy")
def larger(x, y):
    if x > y:
        return x * 2.0
    return y


@pcbatch.autobatch(output="numpy")
def total(n):
    if n <= 0:
        return 0
    return total(n - 1) + n


@pcbatch.autobatch(output="numpy")
def turns(n):
    count = 0
    while count < n:
        count += 1
    return count


@pcbatch.autobatch(output="numpy")
def root(x):
    if x < 0.0:
        raise ValueError("below 0")
    return x * x


def entered(call):
    """The functions, by file and name, that a call goes through: Python's own."""
    found = []

    def note(frame, event, arg):
        if event == "call":
            found.append((frame.f_code.co_filename, frame.f_code.co_name))

    with ways.without_collections():
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
    return found


def doubled(x, y):
    """The program as NumPy computes it."""
    return np.where(x > y, np.float32(2.0) * x, y).tolist()


@pytest.mark.parametrize(("output", "functions", "files"), [("numpy", 20, 15), ("tensors", 28, 18)])
def test_a_warm_call_goes_through_little(output, functions, files):
    function = larger.options(output=output)
    settled(function, X, Y)
    function(X, Y)
    found = entered(lambda: function(X, Y))
    assert len(found) <= functions
    assert len({file for file, _ in found}) <= files
    if output == "numpy":
        assert {Path(file).name for file, _ in found if "tensorflow/python" in file} <= {"context.py"}


def test_arrays_of_every_kind_are_told_apart():
    class Own(np.ndarray):
        pass

    settled(larger, X, Y)
    strided, swapped, fortran = np.repeat(X, 2)[::2], X.astype(">f4"), np.asfortranarray(X)
    alike = np.frombuffer(b"." + X.tobytes(), np.float32, 4, 1)
    for _ in range(3):
        for x in (X, strided, swapped, fortran, alike, X.view(Own), X.tolist(), tf.constant(X), X.astype(np.float16)):
            assert np.asarray(larger(x, Y)).tolist() == doubled(np.asarray(x, np.float32), Y), type(x)
    assert larger(X[:2], Y[:2]).tolist() == doubled(X[:2], Y[:2])
    with pytest.raises(pcbatch.CompileError, match="PCB301"):
        larger(X.astype(np.int32), Y.astype(np.int32))
    assert larger(X[:0], Y[:0]).shape == (0,)
    with pytest.raises(pcbatch.UsageError):
        larger(X, Y[:2])
    with pytest.raises((pcbatch.UsageError, TypeError)):
        larger(X)
    assert larger(X, Y).tolist() == doubled(X, Y)


def test_an_entry_can_be_made_here_but_for_dtypes_that_may_be_gone_one_day():
    assert entry._made() is not None, "it tells arrays apart by itself"
    strange = np.zeros(3, np.dtype(np.float32, metadata={"of": "nobody"}))
    assert entry.entry(0, 1, [strange], 3, ()) is None


def test_the_code_of_entries_is_made_once_whoever_comes_first(monkeypatch):
    """Of two that are made at once one is collected, and entries live in it."""
    known, made = entry._made(), []

    @functools.cache
    def slowly():
        time.sleep(0.05)
        made.append(known)
        return known

    monkeypatch.setattr(entry, "_made", slowly)
    in_threads(4, lambda: entry.entry(0, 1, [X], 3, (0,)))
    assert len(made) == 1


def test_results_are_ones_own():
    """Memory of a result is written to once, however often and by whomever the function is called."""
    settled(larger, X, Y)
    first = larger(X, Y)
    again = [larger(Y, X) for _ in range(50)]
    assert first.tolist() == doubled(X, Y)
    assert all(each.tolist() == doubled(Y, X) for each in again)
    first[:] = 0.0
    assert larger(X, Y).tolist() == doubled(X, Y)


def test_a_lane_that_fails_in_a_warm_call():
    x = np.array([1.0, 2.0, 3.0], np.float32)
    settled(root, x)
    for _ in range(2):
        with pytest.raises(pcbatch.LaneError, match="below 0") as caught:
            root(np.array([1.0, -2.0, 3.0], np.float32))
        run = caught.value.run
        assert run.value[[0, 2]].tolist() == [1.0, 9.0]
        assert [each == pcbatch.LaneStatus.OK for each in run.status] == [True, False, True]
        assert root(x).tolist() == [1.0, 4.0, 9.0]
    assert root.run(x).block_runs == root.run(x).block_runs > 0


def test_a_warm_call_whose_stacks_are_too_small():
    few = np.array([3, 0, 2], np.int32)
    settled(total, few)
    (pipeline,) = total.session.compiled.values()
    spaces = pipeline.machine._whole.workspaces
    before, spaces.capacity = spaces.capacity, 8
    spaces._free.clear()
    try:
        many = np.array([3, 200, 2], np.int32)
        assert total(many).tolist() == [6, 20_100, 3]
        assert spaces.capacity > 200
        assert total(few).tolist() == [6, 0, 3]
    finally:
        spaces.capacity = before


def test_calls_in_several_threads_at_once():
    few, failures = np.array([5, 1, 3], np.int32), []
    settled(turns, few)

    def work(number):
        given = few + number
        for _ in range(300):
            if turns(given).tolist() != given.tolist():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
def test_a_signal_in_a_warm_call_that_takes_long():
    """Ctrl-C ends it; a handler may call the function itself, in memory of its own, and the call goes on."""
    few, many = np.array([5, 1, 3], np.int32), np.array([5, 2_000_000_000, 3], np.int32)
    settled(turns, few)
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            turns(many)
        assert turns(few).tolist() == [5, 1, 3]
        found = []
        signal.signal(signal.SIGALRM, lambda *_: found.append(turns(few).tolist()))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert turns(many // 10).tolist() == (many // 10).tolist()
        assert found == [[5, 1, 3]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_graph_and_a_tape_around_a_warm_call():
    function = larger.options(output="tensors")
    settled(function, X, Y)
    assert tf.function(lambda: function(X, Y), autograph=False)().numpy().tolist() == doubled(X, Y)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = function(X, Y) + x
    assert found.numpy().tolist() == (np.asarray(doubled(X, Y), np.float32) + X).tolist()
    assert tape.gradient(found, x).numpy().tolist() == [1.0] * 4, "nobody watches NumPy's arrays"


def test_what_a_program_reads_is_compared_before_it_runs():
    scale = 2.0

    @pcbatch.autobatch(output="numpy")
    def scaled(x):
        return x * scale if x > 0.0 else x

    x = np.array([1.0, -1.0], np.float32)
    assert settled(scaled, x) == [2.0, -1.0]
    scale = 3.0
    assert not warm(scaled, x)
    assert scaled(x).tolist() == [3.0, -1.0]
