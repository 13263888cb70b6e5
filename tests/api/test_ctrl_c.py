"""Ctrl-C within a second, whatever runs; and then all is as before."""

import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import threads
from pcbatch.runtime.backends.tensorflow import prompt

SOON = 2.0
"""Seconds, for machines that have much else to do: nothing here would end by itself."""


pytestmark = pytest.mark.usefixtures("no_collector")


def interrupted(call, after=0.4):
    """Ctrl-C so many seconds after the `call` has begun: how many seconds later it ended."""
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        call()
    return time.perf_counter() - started - after


def still_at_work():
    """The number of threads that do what nobody waits for any more."""
    return sum(each.name == "pcbatch-waited" for each in threading.enumerate()) - len(threads._idle)


def loop(**options):
    @pcbatch.autobatch(**options)
    def endless(n, x):
        while n != 0:
            x = x + tf.sin(x)
            n = n - 1 if n > 0 else n
        return x

    return endless


def recursion(**options):
    @pcbatch.autobatch(**options)
    def endless(n, x):
        return x + 1.0 if n == 0 else endless(n - 1 if n > 0 else n, x) if n > 0 else inner(n, x)

    @pcbatch.autobatch(**options)
    def inner(n, x):
        return inner(n, x * 1.0) if n < 0 else x

    return endless


MADE = {
    "lockstep": lambda: loop(form="lockstep"),
    "native": lambda: loop(form="native"),
    "calls": lambda: recursion(form="lockstep"),
    "few lanes": lambda: loop(max_lanes=2),
    "graph": lambda: loop(jit=False),
}


@pytest.mark.parametrize(
    "how", [*list(MADE)[:3], *(pytest.param(each, marks=pytest.mark.slow) for each in list(MADE)[3:])]
)
def test_a_run_that_would_not_end(how):
    """At first, when all runs so far were short, and when the last one was long."""
    function, x = MADE[how](), tf.constant([1.0, 2.0, 3.0])
    n, endless = tf.constant([1, 2, 3]), tf.constant([1, -1, 3])
    whole = np.asarray(function(n, x))
    for _ in range(3):
        function(n, x)
    for call in (function, function.run):
        assert interrupted(lambda call=call: call(endless, x)) < SOON
        np.testing.assert_array_equal(function(n, x), whole)
    assert not still_at_work()


def test_a_gradient_that_would_not_end():
    function, x = loop(form="lockstep"), tf.constant([1.0, 2.0])

    def gradient(n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(n, x)
        return tape.gradient(y, x)

    whole = gradient(tf.constant([1, 2]))
    assert interrupted(lambda: gradient(tf.constant([1, -1]))) < SOON
    np.testing.assert_array_equal(gradient(tf.constant([1, 2])), whole)


def test_a_compilation_goes_on_behind(monkeypatch):
    """Each first call is waited for; the next one finds what the abandoned one has compiled."""
    function, calls, goes_on = loop(form="lockstep"), [], threading.Event()

    def slowly(call, captured, size_of):
        def run(*given):
            calls.append(threading.current_thread().name)
            goes_on.wait(60)
            return call(*given)

        return plain(run, captured, size_of)

    plain = prompt.prompt
    monkeypatch.setattr(prompt, "prompt", slowly)
    n, x = tf.constant([1, 2]), tf.constant([1.0, 2.0])
    function.check(n, x)

    def until_called():
        while not calls:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=until_called).start()
    with pytest.raises(KeyboardInterrupt):
        function(n, x)
    assert calls == ["pcbatch-waited"]
    assert still_at_work()
    goes_on.set()
    np.testing.assert_array_equal(function(n, x), loop(form="lockstep")(n, x))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may fall into a `__del__`
@pytest.mark.parametrize("form", ["lockstep", "native"])
def test_whatever_it_falls_into(form):
    """Exceptions of a handler at any moment of a first call leave nothing half made."""

    class Out(BaseException):
        pass

    def raising(*_):
        raise Out

    function, x = loop(form=form), tf.constant([1.0, 2.0])
    whole = np.asarray(loop(form=form)(tf.constant([1, 2]), x))
    before = signal.signal(signal.SIGALRM, raising)
    fell = 0
    try:
        for after in (0.02, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6):
            try:
                signal.setitimer(signal.ITIMER_REAL, after)
                function(tf.constant([1, 2]), x)
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except Out:
                fell += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fell
    np.testing.assert_array_equal(function(tf.constant([1, 2]), x), whole)


def test_other_threads_go_on():
    """A run of another thread ends as it would, though Ctrl-C ends one of the same program here."""
    function, x = loop(form="lockstep"), tf.constant([1.0, 2.0])
    n, many = tf.constant([1, 2]), tf.constant([1, 300_000])
    for _ in range(3):
        function(n, x)
    found = []
    other = threading.Thread(target=lambda: found.append(function.run(many, x)))
    other.start()
    assert interrupted(lambda: function(tf.constant([1, -1]), x)) < SOON
    other.join()
    assert not found[0].status.any()
    np.testing.assert_array_equal(found[0].value, function(many, x))


def test_handlers_of_others_do_not_stop_it():
    """Who handles SIGINT without raising anything gets the whole run."""
    function, x, seen = loop(form="lockstep"), tf.constant([1.0, 2.0]), []
    for _ in range(3):
        function(tf.constant([1, 2]), x)
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("theirs"))
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        run = function.run(tf.constant([1, 300_000]), x)
        while not seen:  # until the timer's thread has had its turn
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == ["theirs"]
    assert not run.status.any()


def test_the_files_of_others_are_told():
    """Of a signal during a run, as asyncio's loop wants to be; and their file is put back."""
    function, x = loop(form="lockstep"), tf.constant([1.0, 2.0])
    for _ in range(3):
        function(tf.constant([1, 2]), x)
    here, there = socket.socketpair()
    there.setblocking(False)
    here.settimeout(5.0)
    before = signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    try:
        assert interrupted(lambda: function(tf.constant([1, -1]), x)) < SOON
        assert here.recv(1) == bytes([signal.SIGINT])
    finally:
        assert signal.set_wakeup_fd(before) == there.fileno()


def test_waiting_is_for_the_main_thread():
    seen = []
    waits = threading.Thread(target=lambda: seen.append(prompt.off_thread(threading.current_thread)))
    waits.start()
    waits.join()
    assert seen == [waits]
    assert prompt.off_thread(threading.current_thread).name == "pcbatch-waited"
    with pytest.raises(ZeroDivisionError):
        threads.waited(lambda: 1 / 0, lambda: None)


def test_noted_interrupts_stop_what_is_waited_for():
    """What is told to stop has come as far as it has; what does not stop is left."""
    stop = threading.Event()
    with threads.Interrupts() as noted:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert threads.waited(lambda: stop.wait(20.0), stop.set)
        assert noted.pending
    with threads.Interrupts():
        assert interrupted(lambda: threads.waited(lambda: time.sleep(3.0), lambda: None), 0.1) < SOON


@pytest.mark.parametrize("options", [{}, {"progress": True}], ids=str)
def test_what_compiles_in_the_middle_of_a_run_is_waited_for(options, monkeypatch):
    """XLA compiles a run's leg for each size of its stacks; slices call the leg itself, on arrays of another size."""

    @pcbatch.autobatch(form="lockstep", **options)
    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    for _ in range(3):
        deep([3, 4])
    waited = []
    monkeypatch.setattr(prompt, "waited", lambda call, stop: waited.append(call) or call())
    monkeypatch.setattr(prompt, "LONG", 1e9)
    assert np.asarray(deep([3, 200])).tolist() == [3, 200]
    assert waited
