"""Threads: work that Ctrl-C can interrupt, properties that several threads share, and Python's parser.

Compiled code runs while Python sees no signal, and Ctrl-C is to come through within a second all the same.

What may take long, since it is compiled first or took long the last time, is `waited` for: another thread does it, and
this one can be woken. Everything else runs in this thread. A signal does not wake that, but a `Watcher` hears of it and
tells the loops of the program to stop, if they ask: each trip reads a number from memory.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from functools import cached_property
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

# -- parsing -----------------------------------------------------------------------------------------------------------


_turn = threading.Lock()


def parse(text: str | bytes, **options: Any) -> Any:
    """`ast.parse`, one thread at a time.

    Python 3.11 counts the depth of the tree in the making for all threads together, and raises "SystemError: AST
    constructor recursion depth mismatch" where two make trees at the same time.
    """
    with _turn:
        return ast.parse(text, **options)


# -- properties --------------------------------------------------------------------------------------------------------


T = TypeVar("T")


class once(cached_property[T]):  # noqa: N801 - a decorator, as `cached_property` is
    """`functools.cached_property`, for which other threads wait while one computes it.

    From Python 3.12 on that has no lock: each thread that asks computes a value, and goes on with its own.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value."""
        if instance is None:
            return self
        with vars(instance).setdefault(f"_once_{self.attrname}", threading.RLock()):
            return super().__get__(instance, owner)


# -- interrupts --------------------------------------------------------------------------------------------------------


LOOK = 0.1
"""Seconds after which a thread that waits looks whether Ctrl-C is `pending`."""
PATIENCE = 3
"""The number of looks for which it may go on before it is told to stop, and again before it is abandoned."""
GRACE = 0.3
"""Seconds that Ctrl-C waits for the work that it has told to stop."""


class Interrupts:
    """A context in which the first Ctrl-C only sets `pending`; the second raises KeyboardInterrupt as usual.

    A signal handler runs between two instructions of Python, so an exception from it could fall between the end of a
    compiled program and the assignment of what it gave. Only in the main thread, and only where Python's own handler is
    in place: whoever has installed another one knows better.
    """

    _now: Interrupts | None = None
    """The innermost one whose handler is in place."""

    def __init__(self) -> None:
        self.pending = False
        self._before: Any = None
        self._around: Interrupts | None = None

    def __enter__(self) -> Interrupts:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._around, Interrupts._now = Interrupts._now, self
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            Interrupts._now = self._around
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True

    @staticmethod
    def are_pending() -> bool:
        """Return whether a Ctrl-C was noted that nothing has acted upon yet."""
        return Interrupts._now is not None and Interrupts._now.pending


def is_main() -> bool:
    """Return whether this is the thread in which Python handles signals."""
    return threading.get_ident() == threading.main_thread().ident


class _Worker:
    """A thread that does one call after another: to begin one takes 0.2 ms, as TensorFlow prepares each."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, name="pcbatch-waited", daemon=True).start()

    def begin(self, call: Callable[[], None]) -> None:
        """Let the thread do `call`, which raises nothing."""
        self._calls.put(call)

    def _work(self) -> None:
        while True:
            self._calls.get()()


_idle: list[_Worker] = []
"""Workers that wait for a call; others are busy with calls that nobody waits for any more."""

if hasattr(os, "register_at_fork"):  # threads do not live on in a child
    os.register_at_fork(after_in_child=_idle.clear)


def waited(call: Callable[[], T], stop: Callable[[], None]) -> T:
    """`call()`, done by another thread, while this one can be interrupted.

    Who interrupts it, as by Ctrl-C, has `stop` called and does not wait for the end: what cannot be stopped, such as a
    compilation, goes on behind, for whoever calls the same next.
    """
    try:
        worker = _idle.pop() if _idle else _Worker()
    except RuntimeError:  # no thread can be started any more: the process ends
        return call()
    found: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def there() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)
        finally:
            _idle.append(worker)
            done.set()

    try:
        worker.begin(there)
        noted = 0
        while not done.wait(LOOK):
            noted += Interrupts.are_pending()
            if noted == PATIENCE:
                stop()  # what it has done by then is of use to those who note Ctrl-C
            elif noted == 2 * PATIENCE:
                raise KeyboardInterrupt
    except BaseException:
        stop()
        done.wait(GRACE)
        raise
    if failed:
        raise failed[0]
    return found[0]


class Watcher:
    """Hears of Ctrl-C while the main thread is in compiled code, which `stop` is to end.

    Python's own handler notes a signal and has it raised once the code is left. It also writes a byte to a file
    descriptor, which belongs to the process; so it is borrowed for each call, and what comes is passed on.
    """

    def __init__(self, stop: Callable[[], None]):
        self._stop, self._is_inside, self._others = stop, False, -1
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        self._file = self._told.fileno()
        threading.Thread(target=self._listen, name="pcbatch-watcher", daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """`function(*arguments)`, in the main thread."""
        outer = None
        try:
            outer = self._others = signal.set_wakeup_fd(self._file, warn_on_full_buffer=False)
            self._is_inside = True
            return function(*arguments)
        finally:
            self._is_inside = False
            if outer is not None:
                signal.set_wakeup_fd(outer, warn_on_full_buffer=outer == -1)

    def _listen(self) -> None:
        while heard := self._heard.recv(64):
            if not self._is_inside:
                continue
            if signal.SIGINT in heard and _raises(signal.getsignal(signal.SIGINT)):
                self._stop()
            if self._others >= 0:
                with contextlib.suppress(OSError):
                    os.write(self._others, heard)


def _raises(handler: Any) -> bool:
    """Return whether a handler of SIGINT raises KeyboardInterrupt, or notes the signal as `Interrupts` do."""
    return handler is signal.default_int_handler or getattr(handler, "__func__", None) is Interrupts._note
