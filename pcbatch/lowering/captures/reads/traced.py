"""Following the user's code by a trace function of Python's: where there is no `monitored`.

Under it all code of the thread runs half as fast, so that it is set for the user's only.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pcbatch.ir.types import Type
from pcbatch.lowering.captures.reads.frames import Run
from pcbatch.lowering.captures.reads.watch import Watch, is_others

_METHODS = (types.MethodType, types.BuiltinMethodType)


class Traced:
    """Has `watch` follow what runs in this thread. A debugger's trace function goes on being called."""

    def __init__(self, watch: Watch):
        self.watch = watch
        self.before: Any = None

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Inside, the user's code is followed."""
        self.before = before = sys.gettrace()
        self.set(True)
        try:
            yield
        finally:
            if sys.gettrace() == self.called:  # unless the user's code has started a debugger
                sys.settrace(before)

    def is_set(self) -> bool | None:
        """See `following.Follower`."""
        now = sys.gettrace()
        return None if self.before is not None or now not in (None, self.called) else now is not None

    def set(self, follows: bool) -> None:
        """See `following.Follower`."""
        if follows:
            sys._getframe().f_trace_opcodes = True  # Python 3.12 gives opcodes from a settrace on after such a wish
        sys.settrace(self.called if follows else None)

    def note(self, owner: Any, get: Callable[[], tuple[Any, ...]]) -> None:
        """See `following.Follower`."""
        self.watch.note(owner, get)

    def may_reach_users(self, function: Callable[..., Any], types: Iterable[Type]) -> bool:
        """See `following.Follower`."""
        return self.watch.may_reach_users(function, types)

    def called(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """The trace function of calls: the user's code gets a trace function of its own, other code none."""
        if self.before is None and is_others(frame.f_code):
            return None
        outer = self.before(frame, event, arg) if isinstance(self.before, (types.FunctionType, _METHODS)) else None
        if not self.watch.is_to_follow(frame):
            return outer
        traced = _Frame(self.watch, outer)
        frame.f_trace = traced.traced  # Python 3.13 looks at it when it is asked for opcodes
        frame.f_trace_opcodes = True
        frame.f_trace_lines = outer is not None
        with contextlib.suppress(Exception):
            traced.run.enter(frame)
        return traced.traced


class _Frame:
    """A run that is followed, and what a debugger has to do with it."""

    def __init__(self, watch: Watch, outer: Any):
        self.run = Run(watch)
        self.outer = outer

    def traced(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        """The trace function of one frame."""
        if event == "opcode":
            if not self.run.at(frame, frame.f_lasti):
                frame.f_trace_opcodes = False
        elif event == "return":
            self.run.watch.returned = arg
        if self.outer is not None and event != "opcode":
            self.outer = self.outer(frame, event, arg)
        return self.traced
