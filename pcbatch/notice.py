"""The line that says that a first call is compiling, for whoever waits for it at a terminal or in a notebook.

A call opens a notice (`announcing`); what compiles in it, deep below, begins it and ends it. A leaf module.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import IO, Any, Literal

Wish = bool | Literal["auto"]
Writer = Callable[[str, dict[str, Any]], Callable[[], None]]
"""A function that shows a text and returns one that removes it; the dict is the writer's memory."""
DELAY = 2.0
"""The seconds after which the line appears, if something is still compiling."""
Timer: Callable[[float, Callable[[], None]], threading.Timer] = threading.Timer


class Notice:
    """The line of one call: shown `DELAY` after compiling began, gone when it ends, shown again if it goes on."""

    def __init__(self, name: str, wish: Wish):
        self._name, self._wish = name, wish
        self._since: float | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._is_on = False
        self._remove: Callable[[], None] | None = None
        self._memory: dict[str, Any] = {}

    def begin(self) -> None:
        """Count from here, if nothing is compiling yet."""
        writer = writer_for(self._wish) if self._timer is None else None
        if writer is None:
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._is_on = True
        self._timer = Timer(max(0.0, self._since + DELAY - now), lambda: self._show(writer))
        self._timer.daemon = True
        with suppress(RuntimeError):  # no thread can be started any more
            self._timer.start()

    def go_on(self) -> None:
        """Begin again, if it has begun before."""
        if self._since is not None:
            self.begin()

    def end(self) -> None:
        """End the notice: the line is gone, or never appears."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        with self._lock:
            self._is_on = False
            remove, self._remove = self._remove, None
        if remove is not None:
            with suppress(Exception):  # no stream or notebook that is gone ends a call
                remove()

    def _show(self, writer: Writer) -> None:
        with self._lock, suppress(Exception):
            if self._is_on and self._remove is None:
                text = f"pcbatch: compiling {self._name} for a first call with such arguments .."
                self._remove = writer(text, self._memory)


_current: ContextVar[Notice | None] = ContextVar("notice", default=None)


@contextmanager
def announcing(name: str, wish: Wish) -> Iterator[None]:
    """Announce in a line that `name` is compiling, as long as something is inside; calls inside of it have none."""
    if _current.get() is not None:
        yield
        return
    notice = Notice(name, wish)
    token = _current.set(notice)
    try:
        yield
    finally:
        _current.reset(token)
        notice.end()


@contextmanager
def silent() -> Iterator[None]:
    """Show no line inside, where something else is shown."""
    around = _current.get()
    if around is not None:
        around.end()
    token = _current.set(Notice("", False))
    try:
        yield
    finally:
        _current.reset(token)


def compiling() -> None:
    """Say that something is compiled from here on."""
    notice = _current.get()
    if notice is not None:
        notice.begin()


@contextmanager
def perhaps_compiling() -> Iterator[None]:
    """Announce that something may be compiled inside, as part of the call that has begun, and nothing after it."""
    notice = _current.get()
    if notice is None:
        yield
        return
    notice.go_on()
    try:
        yield
    finally:
        notice.end()


def writer_for(wish: Wish) -> Writer | None:
    """The way to show a line to whoever is there; None where nobody is, unless it is asked for.

    By itself it is for the main thread at a terminal or of a notebook: workers' output belongs to their user.
    """
    stream = sys.stderr
    if wish is False or stream is None or not (wish is True or _is_main()):
        return None
    if _is_notebook():
        return _in_notebook
    if _is_terminal(stream):
        return partial(_at_terminal, stream)
    return partial(_as_line, stream) if wish is True else None


def _is_main() -> bool:
    """Return whether this is the main thread of a process that nobody's pool has started."""
    process = sys.modules.get("multiprocessing.process")
    is_child = process is not None and process.parent_process() is not None
    return threading.current_thread() is threading.main_thread() and not is_child


def _is_terminal(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal on which a line can be wiped out again."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # some object of the user's, or closed
        return False


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _at_terminal(stream: IO[str], text: str, memory: dict[str, Any]) -> Callable[[], None]:
    """Write on a line that is wiped out again."""
    text = text[: max(1, shutil.get_terminal_size().columns - 1)]
    stream.write(f"\r{text}")
    stream.flush()

    def remove() -> None:
        stream.write(f"\r{' ' * len(text)}\r")
        stream.flush()

    return remove


def _in_notebook(text: str, memory: dict[str, Any]) -> Callable[[], None]:
    """Write as an output of the cell, which is made empty again."""
    shown = memory.get("shown")
    if shown is None:
        display = importlib.import_module("IPython.display").display
        shown = memory["shown"] = display({"text/plain": text}, raw=True, display_id=True)
    else:
        shown.update({"text/plain": text}, raw=True)
    return lambda: shown.update({"text/plain": "", "text/html": ""}, raw=True)


def _as_line(stream: IO[str], text: str, memory: dict[str, Any]) -> Callable[[], None]:
    """Write to a file, where it stays."""
    if not memory:
        memory["written"] = True
        stream.write(f"{text}\n")
        stream.flush()
    return lambda: None
