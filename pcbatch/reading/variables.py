"""Variables, what a name means where it stands, and places where containers are made, by which these are read anew."""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from pcbatch.installed import IN_PYTHON
from pcbatch.lowering.captures.guarded_paths import MISSING, Place
from pcbatch.reading.core import Core, NeedsConstantError, RefusedError
from pcbatch.reading.phis import unassigned
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import Cell, CellKind
from pcbatch.reading.values import Bound, Frame, Function, Generator, Host, Ref, Undefined, Value


class Variables(Core):
    """Names."""

    loops: list[Any]

    def lookup(self, name: str, node: Any = None) -> Value:
        """The value of a name; refused where it has none."""
        for frame in self.frame.around:
            found = self.state.names.get((frame.number, name))
            if found is None and frame is self.frame and name in scope_of(frame.function.tree).locals:
                found = unassigned(name)
            if found is not None:
                if isinstance(found, Undefined):
                    self.node = node or self.node
                return self.known(found)
        return self.outside(self.frame.function.outermost.live, name, node)

    def outer_value(self, value: Function, name: str) -> Any:
        """Return what a name means in the functions around another one; None where they have no such variable."""
        found = (self.state.names.get((frame.number, name)) for frame in value.frames)
        return next((each for each in found if each is not None), None)

    def globals_around(self) -> dict[str, Any]:
        """The names of the module of the function that is interpreted."""
        found: dict[str, Any] = self.frame.function.outermost.live.__globals__
        return found

    def outside(self, function: FunctionType | None, name: str, node: Any = None) -> Value:
        """Return the value of a name around a live function: in its closure, its module, or among the built-ins."""
        if function is not None:
            if name in function.__code__.co_freevars:
                cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
                try:
                    value = cell.cell_contents
                except ValueError:
                    raise self.refusal(
                        "PCB208", f"`{name}` is not assigned yet in the function around", node=node
                    ) from None
                return self.named(value, Place("cell", cell, "cell_contents", name), name)
            if name in function.__globals__:
                return self.named(function.__globals__[name], Place("global", function.__globals__, name, name), name)
        if hasattr(builtins, name):
            if function is not None:
                self.world.guards.note(Place("item", function.__globals__, name, name), MISSING)
            self.world.guards.note(Place("item", vars(builtins), name, name), getattr(builtins, name))
            return Host(getattr(builtins, name), path=name)
        raise self._unknown(name, function, node)

    def _unknown(self, name: str, function: FunctionType | None, node: Any) -> RefusedError:
        """The refusal of a name that nothing has."""
        known = [each for frame in self.frames for each in scope_of(frame.function.tree).locals]
        known += [*(function.__globals__ if function is not None else ()), *vars(builtins)]
        close = difflib.get_close_matches(name, known, 1)
        help = f"did you mean `{close[0]}`?" if close else f"define or import `{name}` in the module"
        return self.refusal("PCB208", f"`{name}` is not defined", help, label="unknown", node=node)

    def named(self, value: Any, place: Place, name: str) -> Value:
        """A captured value that the user knows by a name."""
        found = self.captured(value, place)
        if isinstance(found, Host):
            return Host(found.value, place, name, value)
        return found

    def assign(self, name: str, value: Value) -> None:
        """Give a variable of the call that is interpreted a value."""
        self.assign_in(self.frame, name, value)

    def assign_in(self, frame: Frame, name: str, value: Value) -> None:
        """Give a variable of a call a value, or of one around it where that is declared."""
        if name in scope_of(frame.function.tree).nonlocals:
            frame = next(each for each in frame.function.frames if self._has(each, name))  # the syntax check sees to it
        self.state.names[frame.number, name] = value
        self.state.places[frame.number, name] = self.node, self.file

    def _has(self, frame: Frame, name: str) -> bool:
        """Tell whether a call has a variable, assigned or not."""
        return (frame.number, name) in self.state.names or name in scope_of(frame.function.tree).locals

    def unbind(self, name: str) -> None:
        """Take a variable's value away."""
        self.lookup(name)
        self.state.names.pop((self.frame.number, name), None)

    def leave(self, frame: Frame) -> None:
        """Forget the variables of a call that is over, unless a function that is left refers to them."""
        if frame.escapes:
            return
        for name in [each for each in self.state.names if each[0] == frame.number]:
            del self.state.names[name]

    def living(self) -> Iterator[Value]:
        """The values of variables that may be read after what is interpreted now."""
        here = self._place()
        numbers = {frame.number: frame for frame in self.frames}
        for (number, name), value in self.state.names.items():
            frame = numbers.get(number)
            if frame is None or frame.escapes:
                yield value
                continue
            loads = scope_of(frame.function.tree).loads.get(name, ())
            at = here if frame is self.frame else self._call_place(frame)
            begins = self._loop_begin(frame)
            if any(place > at or (begins is not None and place >= begins) for place in loads):
                yield value

    def _place(self) -> tuple[int, int]:
        node = self.node
        if node is None or getattr(node, "lineno", None) is None:
            return (0, 0)
        return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset

    def _call_place(self, frame: Frame) -> tuple[int, int]:
        place = self.frames.index(frame)
        inner = self.frames[place + 1] if place + 1 < len(self.frames) else None
        if inner is None or inner.span is None:
            return (0, 0)
        return inner.span.line, inner.span.column

    def _loop_begin(self, frame: Frame) -> tuple[int, int] | None:
        """Return the beginning of a call's outermost loop around here: its reads are read again."""
        for loop in self.loops:
            if loop.frame is frame and loop.node is not None and getattr(loop.node, "lineno", None) is not None:
                return loop.node.lineno, loop.node.col_offset
        return None

    def users_name(self, is_it: Callable[[Value], bool], otherwise: str) -> str:
        """Return what the user calls a value, or something that leads to it: the variable that was assigned last."""
        users = (each for each in reversed(self.frames) if each.function.file not in IN_PYTHON)
        frame = next(users, self.frame)
        own = scope_of(frame.function.tree).locals
        for (number, name), value in reversed(self.state.names.items()):
            if number == frame.number and name in own and any(map(is_it, self.state.reachable(iter([value])))):
                return f"`{name}`"
        return otherwise

    def escape(self, value: Value) -> None:
        """A function that refers to frames has been made."""
        if isinstance(value, Function | Generator):
            for frame in value.frames if isinstance(value, Function) else value.frame.around:
                frame.escapes.append(True)
        elif isinstance(value, Bound) and isinstance(value.function, Function):
            self.escape(value.function)

    def new_container(self, kind: CellKind, items: Any) -> Ref:
        """A new list, set or dict that the user's code makes here; see `lengths`."""
        ref = self.new(kind, items)
        self.state.set_cell(ref, site=self.site())
        return ref

    def new_like(self, cell: Cell) -> Ref:
        """A new object with what another one has in it."""
        ref = self.new(cell.kind, cell.items, cell.cls)
        self.state.set_cell(ref, site=cell.site)
        return ref

    @contextmanager
    def wanting(self, container: Value | None = None) -> Iterator[None]:
        """Note that a number need not be known if `container`, or one made here, were one of `lengths`."""
        cell = None if container is None else self.cell(container)
        site = self.site() if container is None else None if cell is None else cell.site
        try:
            yield
        except NeedsConstantError as error:
            if site is not None:
                error.wants = (*error.wants, site)
            raise

    def site(self) -> Any:
        """The place at which something is made: in the source, and in which calls that are interpreted in place."""
        node = self.node
        place = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        return self.file, *place, tuple(frame.span for frame in self.frames[1:])
