"""One run of a function of the user's, by instructions: what it reads from objects that were there before."""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
from typing import Any

from pcbatch.lowering.captures.reads import stored
from pcbatch.lowering.captures.reads.bytecode import Step, steps
from pcbatch.lowering.captures.reads.record import MISSING
from pcbatch.lowering.captures.reads.watch import MANY, PLAIN, Watch, is_bound

PENDING: Any = type("Pending", (), {})()
"""What a call will give."""


class Run:
    """One run of one function: the value that the latest instruction gave, MISSING where it is not known."""

    def __init__(self, watch: Watch):
        self.watch = watch
        self.top: Any = MISSING
        self.counts: dict[int, int] = {}

    def at(self, frame: types.FrameType, place: int) -> bool:
        """The instruction at this offset is about to run; False if it has been looked at too often in this run."""
        step = steps(frame.f_code).get(place)
        if step is None:
            return True
        count = self.counts[place] = self.counts.get(place, 0) + 1
        with contextlib.suppress(Exception):  # what the user's classes do to a look-up is no fault of the program
            self.top = self._read(frame, step)
        return count <= MANY

    def enter(self, frame: types.FrameType) -> None:
        """Find the function that runs, if it is a method of the class of its first argument."""
        code = frame.f_code
        if not code.co_argcount:
            return
        first = frame.f_locals.get(code.co_varnames[0])
        class_ = first if isinstance(first, type) else type(first)
        if (class_, code) not in self.watch.methods and stored.is_users_class(class_):
            self.watch.methods.add((class_, code))
            for function in stored.class_entries(self.watch.record, class_, code):
                self.watch.meet(function, ends=False)
        if class_ is not first and self.watch.known.get(id(first)) is first:
            self.watch.record.add(first, functools.partial(getattr, first), "__class__", class_)

    def _read(self, frame: types.FrameType, step: Step) -> Any:
        watch, name = self.watch, step.key
        match step.kind:
            case "local":
                return frame.f_locals.get(name, MISSING)
            case "called":
                watch.returned = MISSING
                return frame.f_globals if self.top is builtins.globals else PENDING
            case "imported":
                module = sys.modules.get(step.variable or "")
                value = MISSING if module is None else stored.attribute(watch.record, module, name, known=True)
            case "global":
                value = self._global(frame, name)
            case "cell":
                value = self._cell(frame, name)
            case "attribute":
                owner = watch.returned if self.top is PENDING else self.top
                if owner is MISSING or isinstance(owner, PLAIN):
                    return MISSING
                watch.returned = MISSING
                value = stored.attribute(watch.record, owner, name, watch.known.get(id(owner)) is owner)
                if value is MISSING:
                    return PENDING  # a property gives what its function returns
                if watch.known.get(id(owner)) is not owner and not isinstance(value, types.FunctionType):
                    return value
            case _:
                value = self._item(frame, step)
        if value is not MISSING:
            watch.meet(value, step.ends)
        return value

    def _global(self, frame: types.FrameType, name: str) -> Any:
        names = frame.f_globals
        value = names.get(name, MISSING)
        if not frame.f_code.co_filename.startswith(stored.GENERATED):
            self.watch.record.add(names, names.get, name, value)
        return value if value is not MISSING else getattr(builtins, name, MISSING)

    def _cell(self, frame: types.FrameType, name: str) -> Any:
        value = frame.f_locals.get(name, MISSING)
        for function in self.watch.functions.get(frame.f_code, ()):
            cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
            cell = cells.get(name)
            if cell is not None and is_bound(cell) and cell.cell_contents is value:
                self.watch.record.add(cell, functools.partial(getattr, cell), "cell_contents", value)
                return value
        return value if self.watch.known.get(id(value)) is value else MISSING

    def _item(self, frame: types.FrameType, step: Step) -> Any:
        owner = self.watch.returned if self.top is PENDING else self.top
        key = step.key if step.variable is None else frame.f_locals.get(step.variable)
        if self.watch.known.get(id(owner)) is not owner and owner is not frame.f_globals:
            return MISSING
        if isinstance(owner, dict) and isinstance(key, PLAIN):
            value = owner.get(key, MISSING)
            self.watch.record.add(owner, owner.get, key, value)
            return value
        if isinstance(owner, (list, tuple)) and isinstance(key, int):
            if isinstance(owner, list):
                self.watch.record.add_contents(owner)
            return owner[key]
        return MISSING
