"""Changes of what a call is given: a plain function's are seen by its caller, a batched one changes what is its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcbatch.reading.bounded import BoundedLists
from pcbatch.reading.specialisations import Specialisation, StoredError
from pcbatch.reading.values import Lane, OneOf, Ref, Undefined, Value, View


class Effects(BoundedLists):
    """Changes of objects that have crossed a call."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._built: Specialisation | None = None

    def _comes_by_value(self) -> bool:
        return self._built is not None and self._built.is_by_value

    def argument(self, value: Value) -> str:
        spec = self._built
        if spec is None or spec.number or not isinstance(value, Lane) or value.name not in spec.lanes:
            return ""
        names = [name for name, kind in spec.kinds.items() for _ in kind.leaves()]
        return names[spec.lanes.index(value.name)]

    def celled(self, value: Lane) -> Ref:
        spec = self._built
        if spec is not None and value.name in spec.lanes:
            number = spec.lanes.index(value.name)
            if spec.is_by_value:
                spec.touched.add(number)
            elif number not in spec.stored:
                spec.stored = sorted([*spec.stored, number])
                raise StoredError(spec)
        return super().celled(value)

    def outdate(self, spec: Specialisation, name: str, objects: Sequence[Any], leaves: Sequence[Value]) -> None:
        """Make unreadable what a batched function has changed of its caller's: Python would show the change."""
        is_own = [kind.form == "lane" for kind in spec.kinds.values() for _ in kind.leaves()]
        changed: list[Any] = []
        for number in spec.changed:
            changed += self._several.get(objects[number].cell, [objects[number]])
        changed += [_whole(leaves[number]) for number in spec.touched if not is_own[number]]
        if not changed:
            return
        place = self.span()
        gone = Undefined(
            "PCB211",
            f"{name} has changed this, and as a batched function it changes what is its own: Python would show it here",
            () if place is None else ((place, "changed in this call"),),
            f"return the object from {name} and take what comes back, or hand over a copy",
        )

        def outdated(value: Value) -> Value | None:
            parts = (value, *value.items) if isinstance(value, OneOf) else (value,)
            return gone if any(each is one or each == one for each in parts for one in changed) else None

        given = {slot: value for slot, value in self.state.names.items() if slot[0] == 0}
        self.state.mapped(outdated)
        self.state.names |= given
        for each in changed:
            if isinstance(each, Ref):
                self.state.set_cell(each)  # who has been given it, too, has changed it


def _whole(array: Value) -> Value:
    """The array that a view is a part of."""
    while isinstance(array, View):
        array = array.base
    return array
