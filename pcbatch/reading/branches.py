"""Branches: arms that are interpreted from copies of the state and joined, or computed both where that is straight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.ir import payload
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsBlocksError
from pcbatch.reading.joins import End, Joins
from pcbatch.reading.operations import AND, CHOICE, OR, UNARY, builtin
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    Bound,
    Function,
    Generator,
    Host,
    Lane,
    OneOf,
    Range,
    Ref,
    Super,
    Tuple,
    Undefined,
    Value,
    is_same,
)
import gast

Arm = Callable[[], "Value | None"]
BOOL = TensorType("bool")


class Branches(Joins):
    """Truth and choice."""

    # -- truth ---------------------------------------------------------------------------------------------------------

    def truth(self, value: Value) -> Host | Lane:
        """`bool(value)`: known, or a bool of the lane's."""
        value = self.read(self.known(value))
        match value:
            case Host(host) if not self.is_array(host):
                return Host(bool(host))
            case Tuple(items):
                return Host(bool(items))
            case Range(start, stop, step):
                return self.truth(self.range_length(value))
            case Ref():
                cell = self.state.cell(value)
                if cell.kind in ("list", "dict", "set"):
                    return Host(bool(cell.items))
                found = self.object_truth(value)
                if found is not None:
                    return found
                return Host(True)
            case Function() | Bound() | Generator() | Super() | OneOf():
                return Host(True)
        lane = self.lane(value)
        if lane.type.dtype == "bool" and not lane.type.shape:
            return lane
        if lane.type.shape:
            self.refuse(
                "PCB302",
                f"the truth of an array ({lane.type}) is ambiguous",
                f"write {self.backend.spelling('any')}(..) or {self.backend.spelling('all')}(..)",
            )
        name = self.emitter.fresh(BOOL, "t")
        self.emitter.assign(name, (lane.name,), payload.Truth(), self.span())
        return Lane(name, BOOL)

    def object_truth(self, value: Ref) -> Host | Lane | None:
        """What `__bool__` or `__len__` of an object says; see `objects`."""
        raise NotImplementedError

    def range_length(self, value: Range) -> Value:
        """How many numbers a range has; see `loops`."""
        raise NotImplementedError

    def negated(self, truth: Host | Lane) -> Host | Lane:
        """`not truth`."""
        if isinstance(truth, Host):
            return Host(not truth.value)
        found = self.emit(UNARY[gast.Not], [truth])
        assert isinstance(found, Lane)
        return found

    def both(self, a: Host | Lane, b: Host | Lane) -> Host | Lane:
        """`a and b` of two truths."""
        if isinstance(a, Host):
            return b if a.value else a
        if isinstance(b, Host):
            return a if b.value else b
        found = self.emit(AND, [a, b])
        assert isinstance(found, Lane)
        return found

    def either(self, a: Host | Lane, b: Host | Lane) -> Host | Lane:
        """`a or b` of two truths."""
        if isinstance(a, Host):
            return a if a.value else b
        if isinstance(b, Host):
            return b if b.value else a
        found = self.emit(OR, [a, b])
        assert isinstance(found, Lane)
        return found

    # -- arms ----------------------------------------------------------------------------------------------------------

    def fork(self, condition: Lane, arms: Sequence[Arm]) -> Value:
        """Go one of two ways, by blocks; the value that the arms give, joined."""
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a branch")
        blocks = [self.emitter.block() for _ in arms]
        self.emitter.branch(condition, *blocks, self.span())  # type: ignore[call-arg]
        return self.meet(zip(blocks, [self.state.copy() for _ in arms], arms, strict=True))

    def refuse_inside(self, what: str) -> None:
        """Refuse what takes blocks inside of a `with` statement."""
        if self.contexts:
            self.refuse("PCB107", f"{what} inside of `with`", "keep it outside: a context manager is entered in one piece")

    def meet(self, ways: Any) -> Value:
        """Interpret arms, each from its block and state, and go on where they meet with the value that they give."""
        slot = (0, f"value_{self.number()}")
        ends: list[End] = []
        gives = False
        for block, state, arm in ways:
            self.emitter.enter(block)
            self.state = state
            value = arm()
            if self.is_live:
                if value is not None:
                    self.state.names[slot] = value
                    gives = True
                assert self.emitter.current is not None
                ends.append((self.emitter.current, self.state))
        self.join(ends)
        if not gives or not self.is_live:
            return Host(None)
        return self.state.names.pop(slot)

    def choose(self, condition: Lane, a: Callable[[], Value], b: Callable[[], Value]) -> Value:
        """`a() if condition else b()`: both computed where that is straight, else by blocks."""
        mark = self.mark()
        try:
            x = self.straightly(condition, a)
            y = self.straightly(self.negated(condition), b)  # type: ignore[arg-type]
            return self.selection(condition, x, y)
        except NeedsBlocksError:
            self.back_to(mark)
        return self.fork(condition, [a, b])

    def straightly(self, condition: Lane, what: Callable[[], Value]) -> Value:
        """What `what` gives, computed whether or not `condition` holds; NeedsBlocksError where that cannot be done."""
        before, outer = self.state, self.guard
        self.state = before.copy()
        names, heap = dict(before.names), dict(before.heap)
        block = self.emitter.current
        self.straight += 1
        try:
            self.guard = condition if outer is None else self._both_hold(outer, condition)
            value = what()
        finally:
            self.straight -= 1
            self.guard = outer
        if self.emitter.current is not block or self._has_changed(names, heap):
            raise NeedsBlocksError
        return value

    def _both_hold(self, a: Lane, b: Lane) -> Lane:
        found = self.emit(AND, [a, b])
        assert isinstance(found, Lane)
        return found

    def _has_changed(self, names: dict[Any, Value], heap: dict[int, Any]) -> bool:
        now: State = self.state
        if any(now.heap.get(number) is not cell for number, cell in heap.items()):
            return True
        return any(name not in now.names or now.names[name] is not value for name, value in names.items()) or any(
            name not in names for name in now.names
        )

    def require(self, truth: Host | Lane, message: str, arguments: tuple[str, ...] = ()) -> None:
        """Fail the lane unless `truth` holds."""
        if isinstance(truth, Host):
            if not truth.value:
                self.emitter.fault(message, arguments, "raise", self.span())
            return
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a check")
        right, wrong = self.emitter.block(), self.emitter.block()
        self.emitter.branch(truth, right, wrong, self.span())
        self.emitter.enter(wrong)
        self.emitter.fault(message, arguments, "raise", self.span())
        self.emitter.enter(right)

    def selection(self, condition: Lane, x: Value, y: Value) -> Value:
        """The one of two values that are there; NeedsBlocksError where they are no numbers, arrays or tuples."""
        if is_same(x, y):
            return x
        if isinstance(x, Tuple) and isinstance(y, Tuple) and x.cls is y.cls and len(x.items) == len(y.items):
            pairs = zip(x.items, y.items, strict=True)
            return Tuple(tuple(self.selection(condition, a, b) for a, b in pairs), x.cls)
        if isinstance(x, Undefined) or isinstance(y, Undefined):
            self.known(x), self.known(y)
        if self.type_of(x) is None or self.type_of(y) is None:
            raise NeedsBlocksError
        return self.sharing(self.emit(CHOICE, [condition, self.pattern(x), self.pattern(y)]), [x, y])

    def sharing(self, found: Value, sources: Sequence[Value]) -> Value:
        """An array that is one of several, which Python does not copy."""
        if isinstance(found, Lane) and found.type.shape:
            self.state.origins[found.name] = frozenset().union(*map(self.shares, sources))
        return found

    def chosen(self, condition: Lane, x: Value, y: Value) -> Value:
        """The one of two values that are there: selected where they are numbers, else by blocks."""
        try:
            return self.selection(condition, x, y)
        except NeedsBlocksError:
            return self.fork(condition, [lambda: x, lambda: y])

    def selected(self, value: OneOf) -> Value:
        """The array that one of several is now."""
        found: Value = self.read(value.items[-1])
        for place in reversed(range(len(value.items) - 1)):
            is_it = self.is_place(value.index, place)
            found = self.selection(is_it, self.read(value.items[place]), found)
        return found

    def is_place(self, index: Lane, place: int) -> Lane:
        """Whether a lane's number is `place`."""
        from pcbatch.reading.operations import BINARY

        found = self.emit(BINARY[gast.Eq], [index, place])
        assert isinstance(found, Lane)
        return found

    def to_bool(self, value: Value) -> Value:
        """`bool(value)` as a value."""
        return self.truth(value)


ABS = builtin("abs")
