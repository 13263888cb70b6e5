"""Stores that others may see, and nobody knows whether: they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import eq, is_

from pcbatch.ir.types import TensorType
from pcbatch.reading.core import RefusedError
from pcbatch.reading.state import GIVEN, Home
from pcbatch.reading.values import Lane, Ref, Value
from pcbatch.reading.views import Views


class Sharing(Views):
    """Values that may be one object, or share elements."""

    # of parts above
    is_callers: Callable[[Ref], bool]
    write_back: Callable[[Ref], None]

    def living(self) -> Iterator[Value]:
        """The values of variables that may be read later; see `names`."""
        return iter(self.state.names.values())

    def refuse_held(self, value: Value) -> None:
        """Refuse a change of what a list whose length differs by lane has by value, unless it can be put back there."""
        cell = self.cell(value)
        if cell is None or not cell.is_held or self._is_at_home(value):
            return
        name = self.users_name(partial(eq, value), "this")
        raise self.refusal(
            "PCB205",
            f"{name} is changed here, and is, or was, an element of a list whose length differs by lane",
            "change a copy, `x = copy.copy(xs[k])`, and store that: `xs[k] = x`; or put a copy into the list",
        )

    def _is_at_home(self, value: Value) -> bool:
        """Tell whether an element of rows is what these have in one place, and in nobody's hands but those."""
        cell = self.cell(value)
        home = None if cell is None else cell.home
        rows = None if home is None else self.state.heap.get(home.rows.cell)
        is_there = home is not None and rows is not None and rows.version == home.version
        return home is not None and is_there and not self.is_callers(home.rows) and self.is_alone(value, home)

    def is_alone(self, value: Value, home: Home) -> bool:
        """Tell whether nobody but some rows, and who has `value`, an element of these or a part of it, may have it."""
        rows = self.state.heap[home.rows.cell]
        own = {each.cell for each in self.state.reachable(iter([home.whole])) if isinstance(each, Ref)}
        if rows.is_spread or not isinstance(value, Ref) or value.cell not in own:
            return False
        living = {each.cell for each in self.state.reachable(self.living()) if isinstance(each, Ref)} - own
        if not living.isdisjoint(self.state.twins.get(home.rows.cell, ())):
            return False
        return not any(self.state.heap[each].is_held for each in living if each in self.state.heap)

    def refuse_twin(self, ref: Ref) -> None:
        """Refuse a change of an object that may be another one that is read later."""
        twins = self.state.twins.get(ref.cell, frozenset())
        living = twins and {each.cell for each in self.state.reachable(self.living()) if isinstance(each, Ref)}
        if not twins.isdisjoint(living):
            one = self.users_name(partial(eq, ref), "this object")
            other = self.users_name(lambda each: isinstance(each, Ref) and each.cell in twins, "another one")
            raise self.refusal(
                "PCB205",
                f"{one} is changed here, and {other} may be the same object: it is if the loop makes no turn",
                "copy what is to stay as it is, where the loop begins: `copy.copy(..)`",
            )

    def refuse_shared(self, array: Value) -> None:
        """Refuse a store into an array where another that is read later may share its elements, and nobody knows."""
        self.refuse_held(array)
        if isinstance(array, Ref):
            self.refuse_twin(array)
        mine = self.shares(array)
        held = self.state.cell(array).items if isinstance(array, Ref) else (array,)
        own = {each.name for each in held if isinstance(each, Lane)}
        older = frozenset().union(*(self.state.origins.get(name, ()) for name in own))
        for other in self.state.reachable(self.living()):
            if self.is_fresh(other) and not self.shares(other).isdisjoint(mine):
                raise self._may_be_one(array, mine, partial(is_, other))
            if isinstance(other, Ref) and f"#{other.cell}" in older and other != array and self._is_seen(other):
                raise self._may_be_one(array, mine, partial(eq, other))
            if not isinstance(other, Lane) or other.name in own:
                continue
            theirs = self.state.origins.get(other.name, frozenset())
            is_known = isinstance(other.type, TensorType) and bool(other.type.shape)
            if is_known and (not theirs.isdisjoint(mine) or other.name in older):
                raise self._may_be_one(array, mine, partial(self._is_array_of, other))

    def _is_seen(self, ref: Ref) -> bool:
        """Tell whether an object has a name of the user's, and not only the one by which a function hands it back."""
        names = self.state.names.items()
        return ref in self.state.reachable(value for (_, name), value in names if not name.startswith(GIVEN))

    def _may_be_one(self, array: Value, mine: set[str], is_other: Callable[[Value], bool]) -> RefusedError:
        """The refusal of a store into an array that may be another one, too."""
        some = self.users_name(lambda each: not mine.isdisjoint(self.shares(each)), "an array")
        one, two = self.users_name(partial(eq, array), some), self.users_name(is_other, "another one")
        return self.refusal(
            "PCB205",
            f"{one} is changed here, and {two} may be the same array: it is on some paths",
            "copy the one that is to stay as it is, where it is assigned: `b = a.copy()`",
        )

    def _is_array_of(self, held: Lane, value: Value) -> bool:
        """Tell whether a value is the array that a variable holds."""
        if isinstance(value, Ref) and self.kind(value) == "array":
            return self.state.cell(value).items == (held,)
        return value == held
