"""Results of the program's functions: of one kind on all paths, and with changes of their caller's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.errors import Diagnostic, Note
from pcbatch.ir import program as ir
from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.core import RefusedError
from pcbatch.reading.crossing import in_order
from pcbatch.reading.emitter import OpenBlock
from pcbatch.reading.kinds import (
    Kind,
    Returning,
    Specialisation,
    StoredError,
    is_alike,
    merged,
    sites_that_differ,
    told,
)
from pcbatch.reading.lengths import Lengths
from pcbatch.reading.rows import is_rows_class
from pcbatch.reading.several import BOOL
from pcbatch.reading.state import array_name
from pcbatch.reading.values import NONE, Host, Lane, OneOf, Optional, Ref, Undefined, Value, View, is_none


class Results(Lengths):
    """Results."""

    # of parts above
    giving: Callable[[str, Sequence[TensorType]], Specialisation]
    tail: Callable[[Any], None]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.returning: list[list[Returning]] = []
        self._built: Specialisation | None = None

    def open_ends(self) -> Iterator[list[Any]]:
        yield from super().open_ends()
        yield from self.returning

    def changes(self, spec: Specialisation) -> Any:
        """Return what a function changes of its caller's, as far as it is known."""
        return list(spec.stored), set(spec.touched), list(spec.changed), list(spec.bound), dict(spec.shared)

    def returned(self, value: Value, *, is_end: bool = False) -> None:
        """`return value` where the interpretation is."""
        assert self.emitter.current is not None
        self.returning[-1].append(Returning(self.emitter.current, self.state, value, self.span(), is_end, self.node))
        self.emitter.enter(None)

    def hand_back(self, spec: Specialisation, found: Sequence[Returning]) -> None:
        """Write the ends of a function of the program: its results, and the jumps back."""
        rows: list[tuple[Returning, list[Value]]] = []
        spec.returns = [each.span for each in found]
        before = self.changes(spec)
        self._note_changes(spec, found)
        if before != self.changes(spec):
            if not spec.is_by_value:
                return  # it is read anew, for calls inside it have to hand back as much
            spec.result = None
        found = self.with_none(spec, found) if spec.number else [self._there(spec, each) for each in found]
        result = spec.result
        for each in found:
            leaves: list[Value] = []
            self.emitter.enter(each.block)
            self.state = each.state
            around, self.node = self.node, each.node
            self._is_result = True
            try:
                kind = self._kind_of_end(spec, each.value, leaves)
            finally:
                self.node, self._is_result, self._gives_numbers = around, False, False
            if result is None:
                result = kind
            elif not is_alike(result, kind) and spec.is_by_value and not spec.gives_new:
                spec.gives_new, spec.result = True, None
                self.hand_back(spec, found)
                return
            elif not is_alike(result, kind) and not spec.gives_numbers:
                spec.gives_numbers, spec.result = True, None
                self.hand_back(spec, found)
                return
            elif not is_alike(result, kind):
                self.refuse_kinds(result, kind)
                kinds = _given(spec, result), _given(spec, kind)
                error = RefusedError(two_kinds(spec.function.name, found, each, *kinds))
                error.wants = sites_that_differ(result, kind)
                raise error
            else:
                try:
                    result = merged(result, kind, self.joined)
                except ConflictError as error:
                    raise RefusedError(two_types(found, each, self.conflict(error))) from None
            rows.append((each, leaves))
        if result is not None and spec.gives:
            wider = [self.joined(pair) for pair in zip(result.leaves(), spec.gives, strict=True)]
            result = result.with_leaves(iter(wider))
        spec.result = result
        if result is None:
            return
        types = list(result.leaves())
        spec.results = tuple(self.emitter.fresh(type_, "result", is_made=True) for type_ in types)
        for each, leaves in rows:
            self.emitter.enter(each.block)
            self.state, self.node = each.state, each.node
            if not self._is_handed_on(each.block, leaves, spec.results, types):
                if spec.number or spec.asked:
                    self.refuse_taped(leaves)
                for name, value, type_ in zip(spec.results, leaves, types, strict=True):
                    self.give(name, value, type_)
            self.emitter.ret(each.span)

    def with_none(self, spec: Specialisation, found: Sequence[Returning]) -> Sequence[Returning]:
        """Make a result that is None on some paths only, or in some lanes, an optional value on each."""
        parts = [self.in_state(each.state, lambda each=each: self.parts_of(each.value)) for each in found]
        known = next((number for number, (_, content) in enumerate(parts) if content is not None), None)
        are_sure = all(isinstance(there, Host) for there, _ in parts)
        is_mixed = not are_sure or len({there.value for there, _ in parts}) > 1
        was_mixed = spec.result is not None and _given(spec, spec.result).form == "optional"
        if known is None or not (is_mixed or was_mixed) or self.are_words([each.value for each in found]):
            return found
        if not was_mixed:
            spec.result = None
        first, source = parts[known][1], found[known].state
        assert first is not None
        wrapped = []
        for each, (there, content) in zip(found, parts, strict=True):
            self.emitter.enter(each.block)
            self.state, self.node = each.state, each.node
            flag = self.lane(there, BOOL)
            value = self.or_none(flag, self.blank_of(first, source, each.state) if content is None else content)
            wrapped.append(replace(each, value=value))
        return wrapped

    def _there(self, spec: Specialisation, each: Returning) -> Returning:
        """Require a batch's result: nothing in it may be None; lanes where it is fail."""
        error = f"TypeError: {spec.function.name} gives None for this example"
        unsure = [value for value in each.state.reachable(iter([each.value])) if isinstance(value, Optional)]
        if not unsure:
            return each
        self.emitter.enter(each.block)
        self.state, self.node = each.state, each.node
        for value in unsure:
            self.there(value, error)
        return replace(each, block=self.emitter.current, state=self.state)

    def _is_handed_on(
        self, block: OpenBlock, leaves: Sequence[Value], results: tuple[str, ...], types: Sequence[TensorType]
    ) -> bool:
        """Return whether a block returns its last call's results unchanged, so that it becomes a tail call.

        What is called is made to give them in the types of the caller's results, for a conversion would stand behind
        the call.
        """
        call = block.ops[-1] if block.ops else None
        found = [each if isinstance(each, Lane) else self._held_by(each) for each in leaves]
        if not isinstance(call, ir.Call) or [each and each.name for each in found] != list(call.outputs):
            return False
        name = call.function
        if [self.types[each] for each in call.outputs] != list(types):
            name = self.giving(name, types).name
        block.ops[-1] = replace(call, outputs=results, function=name)
        return True

    def _held_by(self, value: Value) -> Lane | None:
        """The variable of an array that is an object; None for everything else."""
        cell = self.cell(value)
        held = cell.items[0] if cell is not None and cell.kind == "array" else None
        return held if isinstance(held, Lane) else None

    def _note_changes(self, spec: Specialisation, found: Sequence[Returning]) -> None:
        """Tell which objects, and which variables around it, a function changes on some way."""
        for each in found:
            for number, ref in enumerate(spec.given):
                is_changed = isinstance(ref, Ref) and each.state.heap[ref.cell] is not spec.before[ref.cell]
                if is_changed and number not in spec.changed:
                    spec.changed = sorted([*spec.changed, number])
            for name, value in spec.names.items():
                if each.state.names.get(name) is not value and name[1] not in spec.bound:
                    spec.bound = sorted([*spec.bound, name[1]])

    def _kind_of_end(self, spec: Specialisation, value: Value, leaves: list[Value]) -> Kind:
        """The kind of what a function gives; with what it hands back of its caller's objects."""
        self._is_apart, self._gives_numbers = spec.is_by_value, spec.gives_numbers or not spec.number
        if spec.gives_new or (spec.is_by_value and spec.number == 0 and not spec.asked):
            return self.kind_of(self.unshared(value), leaves, {})
        seen: dict[Any, Any] = {}
        for number, each in enumerate(spec.given):
            is_itself = isinstance(each, Ref) and not (spec.is_by_value and number in spec.changed)
            seen[each.cell if is_itself else ("other", number)] = number
        if spec.is_by_value:
            self._is_whole = spec.number == 0
            try:
                return self.kind_of(value, leaves, seen)
            finally:
                self._is_whole = False
        self._ending = spec
        try:
            kinds = [self.kind_of(value, leaves, seen)]
        finally:
            self._ending = None
        are_apart = [*_in_rows(kinds[0]), *[True] * len(spec.stored)]
        kinds += [self.kind_of(self.state.names[array_name(number)], leaves, seen) for number in spec.stored]
        for number in spec.changed:
            cell = self.state.cell(spec.given[number])
            parts = in_order(cell)
            items = self._kinds(list(parts.values()), leaves, seen)
            kinds.append(Kind("tuple", items=items, keys=tuple(parts), site=cell.site))
            are_apart += _in_rows(replace(kinds[-1], cls=cell.cls))
        assert spec.frame is not None or not spec.bound
        for name in spec.bound:
            kinds.append(self.kind_of(self.state.names[spec.frame.number, name], leaves, seen))  # type: ignore[union-attr]
            are_apart += _in_rows(kinds[-1])
        self._note_shared(spec, [NONE if apart else each for each, apart in zip(leaves, are_apart, strict=True)])
        return Kind("tuple", items=tuple(kinds))

    def _note_shared(self, spec: Specialisation, leaves: Sequence[Value]) -> None:
        """Note which of the arrays that a function gives its caller may be one, or are its caller's."""
        given = {name: number for number, name in enumerate(spec.lanes)}
        given |= {f"#{ref.cell}": number for number, ref in zip(spec.stored, spec.arrays, strict=False)}
        are_arrays = [bool((type_ := self.type_of(each)) is not None and type_.shape) for each in leaves]
        shares = [self.shares(v) if is_one else set() for v, is_one in zip(leaves, are_arrays, strict=True)]
        for number, theirs in enumerate(shares):
            found = {given[name] for name in theirs if name in given}
            found |= {-1 - k for k, other in enumerate(shares) if k != number and not theirs.isdisjoint(other)}
            if not found <= spec.shared.get(number, frozenset()):
                spec.shared[number] = spec.shared.get(number, frozenset()) | found

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


def _in_rows(kind: Kind) -> Iterator[bool]:
    """Tell of each number and array of a kind whether it is in the rows of a list, and so nobody else's."""
    if kind.form == "lane":
        yield False
    for item in kind.items:
        yield from ([True] * len([*item.leaves()]) if is_rows_class(kind.cls) else _in_rows(item))


def _given(spec: Specialisation, result: Kind) -> Kind:
    """The kind of what a function gives, without what it hands back of its caller's objects."""
    return result if spec.is_by_value else result.items[0]


def two_kinds(name: str, found: Sequence[Returning], one: Returning, result: Kind, kind: Kind) -> Diagnostic:
    """The fault that `one` gives another `kind` than the `result` that others give."""
    nothing = next((each for each in found if is_none(each.value)), None)
    if nothing is None:
        message, help = (
            f"this gives {told(kind)}, and another `return` gives {told(result)}",
            "give all the same structure",
        )
        if _has_given(kind) and _has_given(result):
            message = "this gives back one of its arguments, and another `return` gives another one, or something new"
            help = "give back the same argument on all ways; or a copy on each, `return a.copy()`"
        return Diagnostic("PCB301", message, one.span, "returned here", help, _others(found, one))
    notes = _others(found, nothing)
    if nothing.is_end:
        message, label = f"`{name}` can end without `return`", "after this statement the function ends"
        return Diagnostic("PCB203", message, nothing.span, label, "return a value on every path", notes)
    message, help = f"`{name}` returns nothing here, and a value elsewhere", "return a number, an array or a tuple"
    return Diagnostic("PCB121", message, nothing.span, "nothing is returned here", help, notes)


def _has_given(kind: Kind) -> bool:
    """Tell whether an argument is among what is given."""
    return kind.form in ("same", "given") or any(map(_has_given, kind.items))


def two_types(found: Sequence[Returning], one: Returning, conflict: str) -> Diagnostic:
    """The fault that `one` gives a value whose type does not meet that of others."""
    message, help = f"results of two types: {conflict}", "give all the same type"
    return Diagnostic("PCB301", message, one.span, "returned here", help, _others(found, one))


def _others(found: Sequence[Returning], one: Returning) -> tuple[Note, ...]:
    """Another place at which the function gives something back."""
    spans = [each.span for each in found if each is not one and each.span is not None and each.span != one.span]
    return tuple(Note(span, "another `return`") for span in spans[:1])


def _whole(array: Value) -> Value:
    """The array that a view is a part of."""
    while isinstance(array, View):
        array = array.base
    return array
