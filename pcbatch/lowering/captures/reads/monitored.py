"""Following the user's code by events of `sys.monitoring`, which Python has from 3.12 on.

All but the user's code runs at its own speed: a function that is not the user's is looked at when it first begins.
With a trace function, as before 3.12, the first call of a sampler takes 1.25 times as much CPU time there. And 3.12
crashes: a thread that sets a trace function of instructions has all code written anew, and takes away the next
instruction of another thread that is in its own trace function (CPython issue 118415).

Events concern all threads, each of which is followed by watches of its own. They end with the last watch, so that
nothing is taken away from code that is being followed.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pcbatch.ir.types import Type
from pcbatch.lowering.captures.reads.bytecode import steps
from pcbatch.lowering.captures.reads.frames import Run
from pcbatch.lowering.captures.reads.watch import Watch, is_others

_monitoring: Any = getattr(sys, "monitoring", None)
TOOLS = (3, 4)
"""Numbers that Python gives to no kind of tool."""


class Monitored:
    """Has `watch` follow what runs in this thread. Debuggers and profilers go on as they would."""

    def __init__(self, watch: Watch):
        self.watch = watch
        self.follows = False
        self.runs: dict[types.FrameType, Run] = {}

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Inside, the user's code is followed."""
        own = _EVENTS.watches.setdefault(threading.get_ident(), [])
        own.append(self)
        self.set(True)
        try:
            yield
        finally:
            own.remove(self)
            self.runs.clear()

    def is_set(self) -> bool | None:
        """See `following.Follower`."""
        return self.follows

    def set(self, follows: bool) -> None:
        """See `following.Follower`."""
        self.follows = follows

    def note(self, owner: Any, get: Callable[[], tuple[Any, ...]]) -> None:
        """See `following.Follower`."""
        self.watch.note(owner, get)

    def may_reach_users(self, function: Callable[..., Any], types: Iterable[Type]) -> bool:
        """See `following.Follower`."""
        return self.watch.may_reach_users(function, types)


class _Events:
    """The events of the user's code, of all threads, as long as there are watches."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.tool = TOOLS[0]
        self.watches: dict[int, list[Monitored]] = {}
        """Of each thread, the one that began last at the end."""
        self.followed: set[types.CodeType] = set()
        """What gives events of instructions."""
        self.worn: set[types.CodeType] = set()
        """Code of which instructions are no longer looked at, as they have run too often in one run."""

    def enter(self) -> bool:
        """One watch more; False if other tools have all numbers."""
        with self.lock:
            self.count += 1
            if self.count > 1:
                return True
            free = [tool for tool in TOOLS if _monitoring.get_tool(tool) is None]
            if not free:
                self.count = 0
                return False
            self.tool = free[0]
            _monitoring.use_tool_id(self.tool, "pcbatch")
            for event, function in self._functions().items():
                _monitoring.register_callback(self.tool, event, function)
            events = _monitoring.events
            _monitoring.set_events(self.tool, events.PY_START | events.PY_UNWIND)
            return True

    def leave(self) -> None:
        """One less."""
        with self.lock:
            self.count -= 1
            if self.count:
                return
            _monitoring.set_events(self.tool, 0)
            for code in self.followed:
                _monitoring.set_local_events(self.tool, code, 0)
            for event in self._functions():
                _monitoring.register_callback(self.tool, event, None)
            _monitoring.free_tool_id(self.tool)
            self.followed, self.worn, self.watches = set(), set(), {}

    def _functions(self) -> dict[int, Callable[..., Any]]:
        events = _monitoring.events
        return {
            events.PY_START: self.starts,
            events.INSTRUCTION: self.instruction,
            events.PY_RETURN: self.returns,
            events.PY_YIELD: self.yields,
            events.PY_UNWIND: self.unwinds,
        }

    def present(self) -> list[Monitored]:
        """The watches that follow this thread now."""
        return [each for each in self.watches.get(threading.get_ident(), ()) if each.follows]

    def starts(self, code: types.CodeType, _: int) -> Any:
        """A function begins."""
        if is_others(code):
            return _monitoring.DISABLE
        for each in self.present():
            frame = sys._getframe(1)
            if each.watch.is_to_follow(frame):
                run = each.runs[frame] = Run(each.watch)
                with contextlib.suppress(Exception):
                    run.enter(frame)
                self._follow(code)
        return None

    def _follow(self, code: types.CodeType) -> None:
        if code in self.worn:
            _monitoring.set_local_events(self.tool, code, 0)
            self.worn.discard(code)
            self.followed.discard(code)
        if code not in self.followed:
            self.followed.add(code)
            events = _monitoring.events
            every = events.INSTRUCTION | events.PY_RETURN | events.PY_YIELD
            _monitoring.set_local_events(self.tool, code, every)

    def instruction(self, code: types.CodeType, place: int) -> Any:
        """An instruction is about to run."""
        if place not in steps(code):
            return _monitoring.DISABLE
        for each in self.present():
            frame = sys._getframe(1)
            run = each.runs.get(frame)
            if run is not None and not run.at(frame, place):
                self.worn.add(code)
                return _monitoring.DISABLE
        return None

    def returns(self, code: types.CodeType, place: int, result: Any) -> None:
        """A function that is followed returns."""
        self.yields(code, place, result)
        self._end()

    def yields(self, _: types.CodeType, __: int, result: Any) -> None:
        """It gives a value, and may go on."""
        for each in self.present():
            each.watch.returned = result

    def unwinds(self, code: types.CodeType, _: int, __: BaseException) -> None:
        """An exception leaves a function."""
        if code in self.followed:
            self._end()

    def _end(self) -> None:
        frame = sys._getframe(2)
        for each in self.watches.get(threading.get_ident(), ()):
            each.runs.pop(frame, None)


_EVENTS = _Events()


@contextlib.contextmanager
def events() -> Iterator[bool]:
    """Inside, `Monitored` can follow; but if the result is False: there are no events, or other tools have all."""
    are_given = _monitoring is not None and _EVENTS.enter()
    try:
        yield are_given
    finally:
        if are_given:
            _EVENTS.leave()
