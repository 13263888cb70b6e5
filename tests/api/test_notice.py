"""The line that says that a first call is compiling: to whom it appears, when, and that it goes away."""

from __future__ import annotations

import io
import sys
import threading
import types

import numpy as np
import pytest

import pcbatch
from pcbatch import notice

LINE = "pcbatch: compiling twice for a first call with such arguments .."


class Terminal(io.StringIO):
    """A terminal, and what a person sees on it at last."""

    def isatty(self):
        return True

    @property
    def seen(self):
        lines = []
        for line in self.getvalue().split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part) :]
            lines.append(shown.rstrip())
        return lines


class AtOnce:
    """A timer that does not wait."""

    def __init__(self, seconds, action):
        self.action = action

    def start(self):
        self.action()

    def cancel(self):
        pass


class Never(AtOnce):
    """A timer whose time never comes."""

    def start(self):
        pass


def twice():
    """A function that nothing is compiled for yet."""

    def twice(n):
        while n < 10:
            n = n * 2
        return n

    return pcbatch.autobatch(twice, backend="reference")


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(notice, "Timer", AtOnce)
    put_at(monkeypatch, found := Terminal())
    return found


def put_at(monkeypatch, stream):
    """Have `stream` for standard error, which pytest puts elsewhere."""
    monkeypatch.setattr(notice, "sys", types.SimpleNamespace(stderr=stream, modules=sys.modules))


@pytest.mark.parametrize(
    "options", [{"form": "native"}, {"form": "lockstep"}, {"strategy": "hybrid"}, {"backend": "reference"}], ids=str
)
def test_a_first_call_says_so_and_takes_it_back(options, terminal):
    function = twice().options(**{"backend": "tensorflow", **options})
    function(np.array([3, 5]))
    assert LINE in terminal.getvalue()
    assert terminal.seen == [""]
    terminal.truncate(0)
    function(np.array([3, 7]))
    function(n=np.array([3, 7]))
    assert "compiling" not in terminal.getvalue(), "it is compiled"
    function(np.array([3.0, 5.0]))
    assert LINE in terminal.getvalue(), "other types"


def test_before_two_seconds_there_is_none(terminal, monkeypatch):
    asked = []
    monkeypatch.setattr(notice, "Timer", lambda seconds, action: asked.append(seconds) or Never(seconds, action))
    twice()(np.array([3, 5]))
    assert terminal.getvalue() == ""
    assert asked[0] == notice.DELAY == 2.0
    assert max(asked) == asked[0], "what compiles later counts from the beginning of the call"


def test_compiling_ahead_of_time_says_so(terminal):
    function = twice().options(backend="tensorflow")
    function.compile(np.array([3, 5]))
    assert LINE in terminal.getvalue()
    assert terminal.seen == [""]
    terminal.truncate(0)
    function(np.array([3, 5]))
    assert terminal.getvalue() == ""


def test_a_refused_function_leaves_nothing_behind(terminal):
    @pcbatch.autobatch
    def refused(n):
        return n + nowhere  # noqa: F821

    with pytest.raises(pcbatch.CompileError):
        refused(np.array([1]))
    assert terminal.seen == [""]


def test_where_nobody_waits_there_is_none_unless_asked_for(terminal, monkeypatch):
    put_at(monkeypatch, file := io.StringIO())
    twice()(np.array([3]))
    assert file.getvalue() == ""
    twice().options(notice=True)(np.array([3]))
    assert file.getvalue() == f"{LINE}\n", "once, and it stays"
    put_at(monkeypatch, None)
    twice().options(notice=True)(np.array([3]))
    put_at(monkeypatch, terminal)
    twice().options(notice=False)(np.array([3]))
    monkeypatch.setenv("TERM", "dumb")
    twice()(np.array([3]))
    assert terminal.getvalue() == ""


def test_it_goes_where_standard_error_was_when_the_call_began(terminal, monkeypatch):
    waiting = []
    monkeypatch.setattr(notice, "Timer", lambda seconds, action: waiting.append(action) or Never(seconds, action))
    with notice.announcing("twice", "auto"):
        notice.compiling()
        put_at(monkeypatch, file := io.StringIO())
        waiting[0]()
        assert LINE in terminal.getvalue()
    assert (terminal.seen, file.getvalue()) == ([""], "")
    waiting[0]()
    assert terminal.seen == [""], "a timer that comes too late"


def test_a_line_is_no_wider_than_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    twice()(np.array([3]))
    assert LINE[:29] in terminal.getvalue()
    assert LINE[:30] not in terminal.getvalue()
    assert terminal.seen == [""]


def test_threads_and_workers_say_nothing(terminal, monkeypatch):
    done = []
    worker = threading.Thread(target=lambda: done.append(twice()(np.array([3]))))
    worker.start()
    worker.join()
    assert done
    monkeypatch.setattr("multiprocessing.process.parent_process", lambda: object())
    twice()(np.array([3]))
    assert terminal.getvalue() == ""


def test_what_lanes_print_comes_when_the_line_is_gone(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stdout", terminal)

    def told(n):
        pcbatch.debug("n is {}", n)
        return n + 1

    pcbatch.autobatch(told, backend="reference")(np.array([3]))
    assert [line for line in terminal.seen if line] != []
    assert not any("compiling" in line for line in terminal.seen)


def test_beside_a_bar_there_is_no_line(terminal):
    twice().options(progress=True, backend="tensorflow", jit=False)(np.array([3, 5]))
    assert "compiling" not in "".join(terminal.seen)


def test_a_stream_that_fails_ends_no_call(monkeypatch, terminal):
    class Broken(Terminal):
        def write(self, text):
            raise OSError("closed")

    put_at(monkeypatch, Broken())
    assert twice()(np.array([3])).numpy().tolist() == [12]
    put_at(monkeypatch, closed := io.StringIO())
    closed.close()
    assert twice()(np.array([3])).numpy().tolist() == [12]
    put_at(monkeypatch, object())
    assert twice()(np.array([3])).numpy().tolist() == [12]


def test_a_notebook_shows_it_as_an_output_of_the_cell(terminal, monkeypatch):
    outputs = []

    class Handle:
        def update(self, data, raw):
            outputs[0] = data

    def display(data, raw, display_id):
        outputs.append(data)
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    shown = types.ModuleType("IPython.display")
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    with notice.announcing("twice", "auto"):
        notice.compiling()
        assert outputs == [{"text/plain": LINE}]
        with notice.perhaps_compiling():
            pass
        assert outputs == [{"text/plain": "", "text/html": ""}]
        notice.compiling()
        assert outputs == [{"text/plain": LINE}], "in the same place"
    assert outputs == [{"text/plain": "", "text/html": ""}]
    assert terminal.getvalue() == ""


def test_an_option_that_makes_no_sense():
    with pytest.raises(pcbatch.UsageError, match="PCB504"):
        twice().options(notice="loud")
