"""Functions of the program: one specialisation of a user's function for each kinds of arguments, and calls of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.joins import ConflictError
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.emitter import Emitter
from pcbatch.reading.kinds import Kind, is_alike, is_data, merged
from pcbatch.reading.objects import Objects
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    NONE,
    Bound,
    Frame,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Super,
    Tuple,
    Undefined,
    Value,
    View,
)

MOST = 64
"""How many specialisations of one function a program may have."""
ROUNDS = 12


@dataclass(eq=False)
class Specialisation:
    """A function of the program. `result` is None as long as nothing is known to come back from it."""

    number: int
    function: Function
    kinds: dict[str, Kind]
    span: Span | None
    result: Kind | None = None
    name: str = ""
    emitter: Emitter | None = None
    parameters: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    is_busy: bool = False
    is_done: bool = False
    asked: bool = False
    cost: float | None = None
    is_by_value: bool = True
    """Whether its arguments are values to it: what it changes of them its caller does not see."""
    given: list[Any] = field(default_factory=list)
    """Its parameters' objects, in the order in which they are met."""
    stored: list[int] = field(default_factory=list)
    """Of the arrays among its parameters, by number, those that it stores into."""
    changed: list[int] = field(default_factory=list)
    """Of its parameters' objects, by number, those that it changes."""
    bound: list[str] = field(default_factory=list)
    """The variables of functions around it that it assigns."""
    lanes: tuple[str, ...] = ()
    arrays: list[Ref] = field(default_factory=list)
    before: dict[int, Any] = field(default_factory=dict)
    frame: Frame | None = None
    names: dict[Any, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Returning:
    """A value that a call gives back, and where."""

    block: Any
    state: State
    value: Value
    span: Span | None


class WiderError(Exception):
    """A function is called with wider numbers than it was read for: the program is read anew."""


class StoredError(Exception):
    """A function stores into an array that its caller has handed over: it is read anew, to hand it back."""

    def __init__(self, spec: Specialisation):
        self.spec = spec


@dataclass(eq=False)
class Widths:
    """The types that parameters of functions turned out to need, by function and structure."""

    types: dict[Any, list[TensorType]] = field(default_factory=dict)


class Functions(Objects):
    """Specialisations."""

    def __init__(self, *given: Any, widths: Widths, **options: Any):
        super().__init__(*given, **options)
        self.widths = widths
        self.specialisations: dict[Any, Specialisation] = {}
        self._by_value: set[Any] = set()
        """Trees of functions that are called by the values of constants, not by their types alone."""
        self.returning: list[list[Returning]] = []
        self._built: Specialisation | None = None
        self._ending: Specialisation | None = None
        self._given_leaves: Sequence[Value] = ()

    def open_ends(self) -> Iterator[list[Any]]:
        yield from super().open_ends()
        yield from self.returning

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def kind_of(self, value: Value, leaves: list[Value], seen: dict[Any, int], *, is_static: bool = False) -> Kind:
        """The kind of a value that crosses a call; its numbers and arrays go to `leaves`."""
        value = self.known(value)
        type_ = self.type_of(value)
        if type_ is not None and type_.shape and self._ending is not None:
            number = self._given_number(self._ending, value)
            if number is not None:
                return Kind("given", number)
        if type_ is not None and not (is_static and isinstance(value, Host)):
            leaves.append(value)
            return Kind("lane", type_)
        match value:
            case Host():
                return Kind("host", value=value)
            case Tuple(items, cls):
                return Kind("tuple", items=self._kinds(items, leaves, seen, is_static), cls=cls)
            case Range(start, stop, step):
                return Kind("range", items=self._kinds((start, stop, step), leaves, seen, is_static))
            case Lazy(name, parts):
                return Kind("lazy", items=self._kinds(parts, leaves, seen, is_static), cls=name)
            case Ref(number):
                if number in seen:
                    return Kind("same", seen[number])
                seen[number] = len(seen)
                cell = self.state.cell(value)
                parts = dict(cell.parts())
                items = self._kinds(list(parts.values()), leaves, seen, is_static)
                return Kind(cell.kind, items=items, keys=tuple(parts), cls=cell.cls)
            case Bound(function, receiver) if isinstance(function, str):
                return Kind("method", items=self._kinds([receiver], leaves, seen, is_static), cls=function)
            case Bound(Function() as function, receiver):
                parts = self._kinds([function, receiver], leaves, seen, is_static)
                return Kind("bound", items=parts)
            case Function() if value.frame is None and not value.defaults and not value.keyword_defaults:
                return Kind("host", value=value)
            case Function():
                key = id(value.tree), value.frame.number  # type: ignore[union-attr]
                if key in seen:
                    return Kind("same", seen[key])
                seen[key] = len(seen)
                return self._kind_of_function(value, leaves, seen)
            case OneOf() if all(self.kind(each) == "array" for each in value.items):
                return self.kind_of(self.selected(value), leaves, seen)
        self.refuse("PCB206", f"{self.described(value)} is handed to a function that is a part of the program")

    def _given_number(self, spec: Specialisation, value: Value) -> int | None:
        """Which array of its caller's a plain function gives back; refused for a part of one."""
        if isinstance(value, Lane) and value.name in spec.lanes:
            return spec.lanes.index(value.name)
        if isinstance(value, Ref) and value in spec.arrays:
            return spec.stored[spec.arrays.index(value)]
        known = {*spec.lanes, *(f"#{ref.cell}" for ref in spec.arrays)}
        if not known.isdisjoint(self.shares(value)):
            self.refuse(
                "PCB420",
                f"{spec.function.name} gives back a part of an array of its caller's, or one of several",
                "give back a copy: `return a[:2].copy()`",
            )
        return None

    def _kinds(
        self, values: Sequence[Value], leaves: list[Value], seen: dict[Any, int], is_static: bool
    ) -> tuple[Kind, ...]:
        return tuple(self.kind_of(each, leaves, seen, is_static=is_static) for each in values)

    def _kind_of_function(self, value: Function, leaves: list[Value], seen: dict[Any, int]) -> Kind:
        """A function that stands in another: with what it reads of that."""
        names = self.free_names(value)
        found = [self.outer_value(value, name) for name in names]
        items = self._kinds([*found, *value.defaults, *value.keyword_defaults.values()], leaves, seen, False)
        return Kind("function", items=items, keys=tuple(names), cls=_Closure(value))

    def free_names(self, value: Function) -> list[str]:
        """The variables of functions around it that a function reads."""
        scope = scope_of(value.tree)
        return [n for n in sorted(scope.loads) if n not in scope.locals and self.outer_value(value, n) is not None]

    def outer_value(self, value: Function, name: str) -> Any:
        """What a name means in the functions around another one; None where they have no such variable."""
        frame = value.frame
        while frame is not None:
            found = self.state.names.get((frame.number, name))
            if found is not None:
                return found
            frame = frame.function.frame
        return None

    def made_of(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Value:
        """A value of a kind, of these numbers and arrays."""
        match kind.form:
            case "lane":
                return next(leaves)
            case "host":
                assert kind.value is not None
                return kind.value
            case "same":
                return made[kind.type]
            case "given":
                return self._given_leaves[kind.type]
            case "tuple":
                return Tuple(tuple(self.made_of(each, leaves, made) for each in kind.items), kind.cls)
            case "range":
                return Range(*(self.made_of(each, leaves, made) for each in kind.items))
            case "lazy":
                return Lazy(kind.cls, tuple(self.made_of(each, leaves, made) for each in kind.items))
            case "method":
                return Bound(kind.cls, self.made_of(kind.items[0], leaves, made))
            case "bound":
                function, receiver = (self.made_of(each, leaves, made) for each in kind.items)
                assert isinstance(function, Function)
                return Bound(function, receiver)
            case "function":
                return self._function_made(kind, leaves, made)
        ref = self.new(kind.form, (), kind.cls)  # type: ignore[arg-type]
        made.append(ref)
        items = [self.made_of(each, leaves, made) for each in kind.items]
        is_keyed = kind.form in ("dict", "object", "set")
        self.state.set_cell(ref, items=dict(zip(kind.keys, items, strict=True)) if is_keyed else tuple(items))
        return ref

    def _function_made(self, kind: Kind, leaves: Iterator[Value], made: list[Any]) -> Function:
        """A function that stands in another, in a frame that has what it reads of that."""
        function: Function = kind.cls.function
        around = Function("around", function.tree, function.file, None, self._live_of(function))
        frame = Frame(self.number(), around)
        frame.escapes.append(True)
        known = Function(function.name, function.tree, function.file, frame)
        made.append(known)
        items = [self.made_of(each, leaves, made) for each in kind.items]
        for name, value in zip(kind.keys, items, strict=False):
            self.state.names[frame.number, name] = value
        rest = items[len(kind.keys) :]
        count = len(function.defaults)
        keyword = dict(zip(function.keyword_defaults, rest[count:], strict=True))
        if not rest:
            return known
        found = replace(known, defaults=tuple(rest[:count]), keyword_defaults=keyword)
        self.replace(lambda value: found if value is known else None)
        return found

    def _live_of(self, function: Function) -> Any:
        while function.frame is not None:
            function = function.frame.function
        return function.live

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_of_program(
        self,
        function: Function,
        given: Mapping[str, Value],
        statics: frozenset[str],
        cost: float | None = None,
        *,
        is_by_value: bool = False,
    ) -> Value:
        """A call of a function that is a part of the program, with values for all its parameters.

        What it changes of its caller's objects, it hands back, unless its arguments are values to it.
        """
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a batched call")
        constants = frozenset(n for n, v in given.items() if isinstance(self.read(v), Host))
        if function.tree in self._by_value:
            statics |= constants
        mark = self.mark()
        try:
            return self._called(function, given, statics, cost, is_by_value)
        except NeedsConstantError:
            if constants <= statics:
                raise
            self.back_to(mark)
        self._by_value.add(function.tree)
        return self._called(function, given, statics | constants, cost, is_by_value)

    def _called(
        self,
        function: Function,
        given: Mapping[str, Value],
        statics: frozenset[str],
        cost: float | None,
        is_by_value: bool,
    ) -> Value:
        leaves: list[Value] = []
        seen: dict[Any, Any] = {}
        kinds = {n: self.kind_of(v, leaves, seen, is_static=n in statics) for n, v in given.items()}
        if function.frame is not None:
            kinds["@"] = self.kind_of(function, leaves, seen)
        spec = self._specialisation(function, kinds, cost, is_by_value)
        result = self._result(spec)
        if result is None:
            self.emitter.fault("this call does not come back", (), "raise", self.span())
            return NONE
        objects: list[Any] = [Ref(key) if isinstance(key, int) else None for key in seen]
        arrays = [self._own_array(leaves[number]) for number in spec.stored]
        types = [type_ for kind in spec.kinds.values() for type_ in kind.leaves()]
        arguments = tuple(self._argument(value, type_).name for value, type_ in zip(leaves, types, strict=True))
        hint = function.name if function.name.isidentifier() else "t"
        outputs = [Lane(self.emitter.fresh(type_, hint), type_) for type_ in result.leaves()]
        self.emitter.append(ir.Call(tuple(each.name for each in outputs), spec.name, arguments, self.span()))
        if is_by_value:
            return self.made_of(result, iter(outputs), [])
        for number, array in zip(spec.stored, arrays, strict=True):
            leaves[number] = array
        self._given_leaves = leaves
        return self._handed_back(spec, function, result, outputs, objects, arrays)

    def _own_array(self, value: Value) -> Value:
        """An array that a call changes, as an object."""
        return self.own(value) if isinstance(value, Lane) else value

    def _handed_back(
        self,
        spec: Specialisation,
        function: Function,
        result: Kind,
        outputs: Sequence[Lane],
        objects: list[Any],
        arrays: Sequence[Value],
    ) -> Value:
        """What a call gives, once its changes of its caller's objects have been made here."""
        whole = self.made_of(result, iter(outputs), objects)
        assert isinstance(whole, Tuple)
        value, *rest = whole.items
        for array, new in zip(arrays, rest, strict=False):
            self.write(array, new)
        rest = rest[len(arrays) :]
        for number, parts in zip(spec.changed, rest, strict=False):
            assert isinstance(parts, Tuple)
            target = objects[number]
            cell = self.state.cell(target)
            kind = result.items[1 + len(arrays) + spec.changed.index(number)]
            keys = kind.keys
            items = dict(zip(keys, parts.items, strict=True)) if isinstance(cell.items, dict) else parts.items
            self.state.set_cell(target, items=items)
        for name, new in zip(spec.bound, rest[len(spec.changed) :], strict=True):
            frame = function.frame
            while frame is not None and (frame.number, name) not in self.state.names:
                frame = frame.function.frame
            assert frame is not None
            self.state.names[frame.number, name] = new
        return value

    def _argument(self, value: Value, type_: TensorType) -> Lane:
        return self.lane(value, type_)

    def _specialisation(
        self, function: Function, kinds: dict[str, Kind], cost: float | None, is_by_value: bool = True
    ) -> Specialisation:
        identity = id(function.tree), id(function.live), function.owner, is_by_value
        loose = (identity, *((name, kind.key(exact=False)) for name, kind in kinds.items()))
        exact = (identity, *((name, kind.key(exact=True)) for name, kind in kinds.items()))
        for key in (loose, exact):
            spec = self.specialisations.get(key)
            types = [type_ for kind in kinds.values() for type_ in kind.leaves()]
            if spec is None:
                known = self.widths.types.get(key)
                if known is not None:
                    try:
                        types = [self.joined([a, b]) for a, b in zip(types, known, strict=True)]
                    except ConflictError:
                        continue
                    waiting = iter(types)
                    kinds = {name: kind.with_leaves(waiting) for name, kind in kinds.items()}
                return self._begun(key, function, kinds, cost, is_by_value)
            own = [type_ for kind in spec.kinds.values() for type_ in kind.leaves()]
            try:
                wider = [self.joined([a, b]) for a, b in zip(own, types, strict=True)]
            except ConflictError:
                continue
            if wider == own:
                return spec
            if spec.number == 0:
                continue
            self.widths.types[key] = wider
            raise WiderError
        return self.specialisations[exact]

    def _begun(
        self, key: Any, function: Function, kinds: dict[str, Kind], cost: float | None, is_by_value: bool
    ) -> Specialisation:
        same = [each for each in self.specialisations.values() if each.function.tree is function.tree]
        if len(same) >= MOST:
            self.refuse(
                "PCB312",
                f"{function.name} is called with ever other static arguments or shapes: more than {MOST} kinds",
            )
        span = self.span(function.tree) if self.file == function.file else None
        spec = Specialisation(len(self.specialisations), function, kinds, span, cost=cost, is_by_value=is_by_value)
        taken = {each.name for each in self.specialisations.values()}
        base = function.name if function.name.isidentifier() else "inner"
        numbered = (base if k == 0 else f"{base}_{k}" for k in itertools.count())
        spec.name = next(name for name in numbered if name not in taken)
        self.specialisations[key] = spec
        return spec

    def _result(self, spec: Specialisation) -> Kind | None:
        if spec.is_busy or spec.is_done:
            spec.asked = True
            return spec.result
        spec.is_busy = True
        try:
            others = set(self.specialisations)
            for _ in range(ROUNDS):
                before, spec.asked = spec.result, False
                changes = self._changes(spec)
                for key, each in self.specialisations.items():
                    if key not in others and not each.is_busy:
                        each.is_done = False  # it was read for what was known of this one then
                try:
                    self._build(spec)
                except StoredError as error:
                    if error.spec is not spec:
                        raise
                    spec.result = None
                    continue
                if changes != self._changes(spec):
                    spec.result = None
                    continue
                if not spec.asked or _same(before, spec.result):
                    break
            else:
                self.refuse("PCB304", f"what {spec.function.name} gives does not settle")
        except BaseException:
            self.specialisations = {key: each for key, each in self.specialisations.items() if each is not spec}
            raise
        finally:
            spec.is_busy = False
        spec.is_done = True
        return spec.result

    def _changes(self, spec: Specialisation) -> Any:
        return list(spec.stored), list(spec.changed), list(spec.bound)

    def celled(self, value: Lane) -> Ref:
        spec = self._built
        if spec is not None and not spec.is_by_value and value.name in spec.lanes:
            number = spec.lanes.index(value.name)
            if number not in spec.stored:
                spec.stored = sorted([*spec.stored, number])
                raise StoredError(spec)
        return super().celled(value)

    def _build(self, spec: Specialisation) -> None:
        """Interpret the body of a function of the program."""
        kept = (self.emitter, self.state, self.frames, self.loops, self.guard, self.straight, self.returning, self.pending, self.node, self.file, self._built)
        self._built = spec
        self.emitter = spec.emitter = Emitter(spec.name, self.bindings)
        self.state, self.frames, self.loops, self.returning, self.pending = State(), [], [], [], []
        self.guard, self.straight = None, 0
        try:
            self.file, self.node = spec.function.file, spec.function.tree
            self.emitter.enter(self.emitter.block())
            given = self.parameters_of(spec)
            self._returned(spec, self._body(spec, given))
        finally:
            (self.emitter, self.state, self.frames, self.loops, self.guard, self.straight, self.returning, self.pending, self.node, self.file, self._built) = kept

    def parameters_of(self, spec: Specialisation) -> dict[str, Value]:
        """The values of a specialisation's parameters."""
        lanes: list[Lane] = []
        for name, kind in spec.kinds.items():
            for type_ in kind.leaves():
                lanes.append(Lane(self.emitter.fresh(type_, name if name.isidentifier() else "t"), type_))
        spec.parameters = spec.lanes = tuple(each.name for each in lanes)
        values: list[Value] = list(lanes)
        spec.arrays = []
        for number in spec.stored:
            ref = self.new("array", (lanes[number],))
            spec.arrays.append(ref)
            values[number] = ref
        waiting, made = iter(values), []  # type: ignore[var-annotated]
        found = {name: self.made_of(kind, waiting, made) for name, kind in spec.kinds.items()}
        spec.given = made
        spec.before = {each.cell: self.state.cell(each) for each in made if isinstance(each, Ref)}
        around = found.get("@")
        spec.frame = around.frame if isinstance(around, Function) else None
        spec.names = {n: v for n, v in self.state.names.items() if spec.frame is not None and n[0] == spec.frame.number}
        return found

    def _body(self, spec: Specialisation, given: dict[str, Value]) -> list[Returning]:
        function = spec.function
        around = given.pop("@", None)
        if isinstance(around, Function):
            function = around
        return self.ran(function, given)

    def ran(self, function: Function, given: Mapping[str, Value]) -> list[Returning]:
        """Interpret a function's body in a frame of its own: all that it gives back."""
        frame = Frame(self.number(), function, self.span())
        file, self.file = self.file, function.file
        for name, value in given.items():
            self.state.names[frame.number, name] = value
        self.frames.append(frame)
        self.returning.append([])
        try:
            if isinstance(function.tree, gast.Lambda):
                value = self.expression(function.tree.body)
                if self.is_live:
                    self.returned(value)
            else:
                self.statements(function.tree.body)
                if self.is_live:
                    self.returned(NONE)
        finally:
            self.frames.pop()
            self.file = file
            found = self.returning.pop()
        self._left = frame
        return found

    def returned(self, value: Value) -> None:
        """`return value` where the interpretation is."""
        assert self.emitter.current is not None
        self.returning[-1].append(Returning(self.emitter.current, self.state, value, self.span()))
        self.emitter.enter(None)

    def _returned(self, spec: Specialisation, found: Sequence[Returning]) -> None:
        """Write the ends of a function of the program: its results, and the jumps back."""
        rows: list[tuple[Returning, list[Value]]] = []
        result = spec.result
        if not spec.is_by_value:
            self._note_changes(spec, found)
        for each in found:
            self.emitter.enter(each.block)
            self.state = each.state
            leaves: list[Value] = []
            kind = self._kind_of_end(spec, each.value, leaves)
            if result is None:
                result = kind
            elif not is_alike(result, kind):
                self.node = None
                raise RefusedError(self._two_kinds(each, result, kind))
            else:
                try:
                    result = merged(result, kind, self.joined)
                except ConflictError as error:
                    raise RefusedError(self._two_types(each, error)) from None
            rows.append((each, leaves))
        spec.result = result
        if result is None:
            return
        types = list(result.leaves())
        spec.results = tuple(self.emitter.fresh(type_, "result") for type_ in types)
        for each, leaves in rows:
            self.emitter.enter(each.block)
            self.state = each.state
            for name, value, type_ in zip(spec.results, leaves, types, strict=True):
                self.give(name, value, type_)
            self.emitter.ret(each.span)

    def _note_changes(self, spec: Specialisation, found: Sequence[Returning]) -> None:
        """Which objects, and which variables around it, a function changes on some way."""
        for each in found:
            for number, ref in enumerate(spec.given):
                if isinstance(ref, Ref) and each.state.heap[ref.cell] is not spec.before[ref.cell]:
                    if number not in spec.changed:
                        spec.changed = sorted([*spec.changed, number])
            for name, value in spec.names.items():
                if each.state.names.get(name) is not value and name[1] not in spec.bound:
                    spec.bound = sorted([*spec.bound, name[1]])

    def _kind_of_end(self, spec: Specialisation, value: Value, leaves: list[Value]) -> Kind:
        """The kind of what a function gives; with what it hands back of its caller's objects."""
        if spec.is_by_value:
            return self.kind_of(value, leaves, {})
        seen: dict[Any, Any] = {}
        for number, each in enumerate(spec.given):
            if isinstance(each, Ref):
                seen[each.cell] = number
            else:
                seen["function", number] = number
        self._ending = spec
        try:
            kinds = [self.kind_of(value, leaves, seen)]
        finally:
            self._ending = None
        kinds += [self.kind_of(ref, leaves, seen) for ref in spec.arrays]
        for number in spec.changed:
            parts = dict(self.state.cell(spec.given[number]).parts())
            items = self._kinds(list(parts.values()), leaves, seen, False)
            kinds.append(Kind("tuple", items=items, keys=tuple(parts)))
        assert spec.frame is not None or not spec.bound
        for name in spec.bound:
            kinds.append(self.kind_of(self.state.names[spec.frame.number, name], leaves, seen))  # type: ignore[union-attr]
        return Kind("tuple", items=tuple(kinds))

    def _two_kinds(self, each: Returning, result: Kind, kind: Kind) -> Any:
        from pcbatch.errors import Diagnostic

        return Diagnostic(
            "PCB301",
            f"this gives {_told(kind)}, and another `return` gives {_told(result)}",
            each.span,
            help="give all of them the same structure",
        )

    def _two_types(self, each: Returning, error: ConflictError) -> Any:
        from pcbatch.errors import Diagnostic

        return Diagnostic("PCB301", f"results of two types: {self.conflict(error)}", each.span)


@dataclass(frozen=True)
class _Closure:
    """A function that stands in another, told from others by its tree."""

    function: Function = field(compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closure) and other.function.tree is self.function.tree

    def __hash__(self) -> int:
        return id(self.function.tree)


def _same(a: Kind | None, b: Kind | None) -> bool:
    if a is None or b is None:
        return a is b
    return is_alike(a, b) and list(a.leaves()) == list(b.leaves())


def _told(kind: Kind) -> str:
    return {"lane": f"{kind.type}", "host": f"{getattr(kind.value, 'value', 'a function')!r}"}.get(kind.form, f"a {kind.form}")


__all__ = ["Functions", "Generator", "Super", "Undefined", "View", "is_data"]
