"""Programs that are read without types: what Python's operations do to values of which nothing is known.

Such a value is a variable of type `UNKNOWN`, or an opaque value of the world. An operation on it is an operation of the
program that gives another one; a loop over it goes by its length; a condition on it is a branch. What is refused
otherwise because a lane's value stands where a known one is needed is an operation here, written as in the source: with
types it may be known.

Joins and heads of loops where types are not known: values of kinds that do not meet are a value that is unknown.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pcbatch.ir import payload
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.expressions import resolved
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import FilteredError, NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.counters import Counted, Turn, Turns
from pcbatch.reading.emitter import Template
from pcbatch.reading.heads import Head
from pcbatch.reading.loops import MOST_TURNS
from pcbatch.reading.meeting import End, ValueJoin
from pcbatch.reading.opaque_calls import Handed
from pcbatch.reading.operations import CHOICE, GETITEM, Named, Operation, Spelled, builtin, expression_of, library
from pcbatch.reading.phis import Path, Phi, value_at
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import Cell, State
from pcbatch.reading.untyped.as_written import AsWritten
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
    Undefined,
    Value,
    is_number,
)
from pcbatch.runtime.backends.untyped import COUNTED, DOUBT, TRUTH, UNKNOWN, VARYING

# -- joins -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forgotten:
    """An object of the head of which nothing is known but that it is one."""


class UntypedMeeting(ValueJoin):
    """The joins of paths."""

    def missing(self, values: Sequence[Value | None], name: str) -> Value:
        given = [NONE if each is None else each for each in values]
        are_data = all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(given))
        if not are_data or not self.reader.is_doubtful:  # type: ignore[attr-defined]
            return super().missing(values, name)
        return self.value(given, name)

    def is_array(self, value: Value) -> bool:
        return isinstance(value, Lane) and value.name in self.reader.types

    def value(self, values: Sequence[Value], what: str) -> Value:
        types = [self.reader.in_state(s, lambda v=v: self.reader.type_of(v)) for s, v in self._each(values)]
        is_mixed = any(types) and None in types and not any(isinstance(each, Undefined) for each in values)
        return self.unmet(values, what) if is_mixed else super().value(values, what)

    def is_optional(self, values: Sequence[Value]) -> bool:
        return False  # None is a value like others

    def _each(self, values: Sequence[Value]) -> Any:
        return zip(self.states, values, strict=True)

    def unmet(self, values: Sequence[Value], what: str) -> Value:
        are_data = all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(values))
        is_code = any(map(self.reader.is_code, values))  # type: ignore[attr-defined]
        if not are_data or (is_code and not self.reader.is_doubtful):  # type: ignore[attr-defined]
            return super().unmet(values, what)
        return self.number(values, [UNKNOWN] * len(values), what)

    def _word(self, values: Sequence[Value], what: str) -> Value:
        return self.number(values, [UNKNOWN] * len(values), what)

    def unlike(self, numbers: tuple[int, ...], cells: Sequence[Cell], what: str) -> Value:
        refs = [Ref(number) for number in numbers]
        if not all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(refs)):
            return super().unlike(numbers, cells, what)
        content = self.number(refs, [UNKNOWN] * len(refs), what)
        if len(set(numbers)) == 1:
            ref = refs[0]
        else:
            self.reader.cells += 1
            ref = Ref(self.reader.cells)
        self.cells[numbers] = ref
        self.out.heap[ref.cell] = Cell("array", (content,))
        return ref


class UntypedHead(Head):
    """The head of a loop; where it `is_counted`, its turns can be written out."""

    def __init__(self, reader: Any, node: Any, phis: dict[Path, Phi], is_counted: bool):
        super().__init__(reader, phis)
        self.node, self.is_counted = node, is_counted

    def enter(self) -> None:
        for path, phi in self.phis.items():
            if isinstance(phi, Forgotten):
                self.reader.forget(Ref(path[1]))  # type: ignore[attr-defined]
            elif path[0] == "n":
                self.reader.state.names.setdefault((path[1], path[2]), NONE)
        super().enter()

    def compared(self, state: State) -> dict[Path, Phi]:
        found = super().compared(state)
        if self.reader.is_doubtful:  # type: ignore[attr-defined]
            frames = {frame.number: frame for frame in self.reader.frames}
            for number, name in state.names:
                is_new = (number, name) not in self.state.names and number in frames
                if is_new and self._is_read_behind(frames[number], name):
                    found["n", number, name] = UNKNOWN
        return found

    def _is_read_behind(self, frame: Frame, name: str) -> bool:
        """Tell whether a variable of a call is read behind the loop."""
        end = getattr(self.node, "end_lineno", None)
        places = scope_of(frame.function.tree).loads.get(name, ())
        return end is not None and any(place > (end, self.node.end_col_offset) for place in places)

    def moving(self, path: Path, why: str) -> Phi:
        if self.is_counted or not is_data(self.reader, value_at(self.state, path)):
            return super().moving(path, why)
        return UNKNOWN

    def number(self, path: Path, head: Lane, now: Value) -> None:
        if path not in self.lanes:
            return
        type_ = self._type(self.behind, now) or UNKNOWN
        joined = self.reader.joined([head.type, type_])
        if joined != head.type:
            self.new[path] = joined
            return
        self.moves.append((head, now))

    def is_optional(self, head: Value, now: Value) -> bool:
        return False

    def _word(self, path: Path, head: Value, now: Value) -> None:
        self.new[path] = UNKNOWN

    def changed_kind(self, path: Path, head: Ref, wants: tuple[Any, ...]) -> None:
        self.new["v", head.cell] = Forgotten()  # type: ignore[assignment]

    def restructured(self, path: Path, head: Ref, cells: tuple[Cell, Cell]) -> None:
        if self.is_counted or not is_data(self.reader, head):
            super().restructured(path, head, cells)
        self.changed_kind(path, head, ())


def is_data(reader: Any, value: Value) -> bool:
    """Tell whether a value can be a lane's: numbers, arrays, and structures of them."""
    return not any(
        isinstance(each, Function | Bound | Generator | Super | Lazy | Range | OneOf | Undefined)
        for each in reader.state.reachable(iter([value]))
    )


# -- operations --------------------------------------------------------------------------------------------------------


T = TypeVar("T")
ELEMENT = builtin("__element__")


def python(function: Any) -> Operation:
    """A built-in function of Python's as an operation."""
    return library(function, function.__name__, "python.function", is_steady=True)


class Unknowns(AsWritten):
    """Values of which nothing is known, and what is made of them."""

    # of parts above
    part_of: Callable[[Value, Operation, Any], Value]

    def __init__(self, *given: Any, is_opaque: Callable[[Any], bool] = lambda value: False, **options: Any):
        super().__init__(*given, **options)
        self._is_opaque = is_opaque
        self.final: list[RefusedError] = []
        """Refusals of what has nothing to do with types."""
        self._are_guarded = False
        self._counting = 0
        """Number of loops around that a counter drives, and whose turns could be written out."""
        self._doubtful: set[Any] = set()
        """Functions of the program in which a branch may be known when it is compiled."""

    # -- what is unknown -----------------------------------------------------------------------------------------------

    def is_unknown(self, value: Value) -> bool:
        """Tell whether nothing is known of a value, or that it is an array."""
        if isinstance(value, Ref):
            return value.cell in self.state.heap and self.kind(value) == "array"
        return isinstance(value, Lane) or (isinstance(value, Host) and self.is_array(value.value))

    def is_opaque(self, value: Value) -> bool:
        """Tell whether a value is one of the world's of which nothing is known."""
        return isinstance(value, Host) and self._is_opaque(value.value)

    def has_unknown(self, value: Value) -> bool:
        return any(map(self.is_unknown, self.state.reachable(iter([value]))))

    def is_counted(self, value: Value) -> bool:
        found = self.state.reachable(iter([value])) if self._counting else iter(())
        return any(isinstance(each, Lane) and each.type == COUNTED for each in found)

    @property
    def is_doubtful(self) -> bool:
        """True if a branch of the function may be known when it is compiled: its paths are not known then."""
        return self.emitter in self._doubtful

    def expression(self, node: Any, hint: str = "") -> Value:
        if not self.is_live:
            return super().expression(node, hint)
        here = self.mark()
        try:
            return super().expression(node, hint)
        except RefusedError as error:
            if error in self.final:
                raise
            refused = error
        self.back_to(here)
        before, self.node = self.node, node
        try:
            return self.as_written(node, refused)
        except RefusedError as error:
            if not isinstance(error, NeedsConstantError):
                self.final.append(error)
            raise
        finally:
            self.node = before

    def statements(self, nodes: Sequence[Any]) -> None:
        try:
            super().statements(nodes)
        except RefusedError as error:
            self.final.append(error)
            raise

    def is_scalar(self, value: Value) -> bool:
        return False

    def described(self, value: Value) -> str:
        return "a value of a lane" if self.is_unknown(value) else super().described(value)

    # -- types ---------------------------------------------------------------------------------------------------------

    def joined(self, types: Sequence[TensorType]) -> TensorType:
        if len(set(types)) == 1:
            return types[0]
        return DOUBT if {*types} <= {TRUTH, DOUBT} else UNKNOWN

    def lane(self, value: Value, type_: TensorType | None = None, hint: str = "") -> Lane:
        value = self.read(self.known(value))
        if isinstance(value, Lane) and value.name in self.types:
            return value
        own = self.type_of(value) or UNKNOWN
        name = self.emitter.fresh(own, hint or (value.name if isinstance(value, Lane) else "t"))
        self.give(name, value, own)
        return Lane(name, own)

    def give(self, name: str, value: Value, type_: TensorType) -> None:
        value = self.read(self.known(value))
        if isinstance(value, Host) and (value.value is None or is_number(value.value)):
            number = value.value
            if not isinstance(number, complex) and math.isfinite(number or 0):  # no infinity, and not NaN
                self.emitter.assign(name, (), payload.Constant(number), self.span())
                return
        pattern = self.pattern(value)
        if isinstance(pattern, Lane) and pattern.name in self.types:
            self.emitter.assign(name, (pattern.name,), payload.Copy(), self.span())
            return
        code, inputs = resolved(expression_of(pattern), self.types)
        self.emitter.assign(name, inputs, payload.Compute(code), self.span())

    def tried(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        handed: Handed | None = None,
        values: Sequence[Value] = (),
        *,
        is_manager: bool = False,
    ) -> tuple[Template, bool]:
        template, may_fail = super().tried(operation, arguments, keywords, handed, values, is_manager=is_manager)
        if may_fail and self.guard is not None and not self._are_guarded and not self.contexts:
            raise NeedsBlocksError
        return template, may_fail

    def guarded(self, condition: Lane, what: Callable[[], T]) -> T:
        """Run `what` where it counts only if `condition` holds: operations are written so that they do not fail."""
        before = self.guard, self._are_guarded
        self.guard = condition if self.guard is None else self._both_hold(self.guard, condition)
        self._are_guarded = True
        try:
            return what()
        finally:
            self.guard, self._are_guarded = before

    def bound(self, value: Host) -> Named:
        if isinstance(value.value, enum.Enum):
            cls = type(value.value)
            return Named(f"{self.names.bind(cls.__name__, cls)}.{value.value.name}", value.value)
        if not self.is_opaque(value):
            return super().bound(value)
        name = value.value.opaque_name
        root, dot, rest = name.text.partition(".")
        return Named(f"{self.names.bind(root, name.root)}{dot}{rest}", value.value)

    def host_pattern(self, value: Host, host: Any) -> Any:
        if isinstance(host, range):
            return Spelled(parse_expression(repr(host)), ())
        return self.bound(value) if self.is_opaque(value) else super().host_pattern(value, host)

    def pattern(self, value: Value) -> Any:
        match value:
            case Range(start, stop, step):
                return self.emit(python(range), [self.pattern(each) for each in (start, stop, step)])
            case Lazy(kind, parts):
                functions: dict[str, Any] = {"zip": zip, "enumerate": enumerate, "reversed": reversed}
                return self.emit(python(functions[kind]), [self.pattern(each) for each in parts])
        return super().pattern(value)

    def record(self, value: Value) -> Any:
        cell = self.cell(value)
        return set(cell.items) if cell is not None and cell.kind == "set" else super().record(value)

    def word_if(self, condition: Lane, x: Value, y: Value) -> Value:
        return self.emit(CHOICE, [condition, self.pattern(x), self.pattern(y)])

    def words_at(self, items: Sequence[Value], index: Lane) -> Value:
        return self.emit(GETITEM, [[self.pattern(each) for each in items], index])

    def _beside(self, constant: Value, other: Value) -> Value:
        return constant

    def blank_of(self, value: Value, source: State, state: State) -> Value:
        return Host(0) if isinstance(value, Lane) else super().blank_of(value, source, state)

    def forget(self, ref: Ref) -> None:
        """Let nothing be known of an object but that it is one."""
        if self.kind(ref) != "array":
            lane = self.lane(ref)
            self.state.heap[ref.cell] = Cell("array", (lane,))

    # -- truth, joins and loops ----------------------------------------------------------------------------------------

    def truth(self, value: Value) -> Host | Lane:
        if isinstance(value, Lane) and value.type == DOUBT:
            self._doubtful.add(self.emitter)
            return value
        found = super().truth(value)
        if isinstance(found, Lane) and self.type_of(value) not in (VARYING, TRUTH):
            self._doubtful.add(self.emitter)
        return found

    def meeting(self, ends: Sequence[End]) -> ValueJoin:
        return UntypedMeeting(self, ends)

    def head(self, node: Any, phis: dict[Path, Phi], is_counted: bool) -> Head:
        return UntypedHead(self, node, phis, is_counted)

    def refuse_shared(self, array: Value) -> None:
        """Refuse nothing: two names of one value are known by types only."""

    def differs_in_length(self, value: Value) -> bool:
        return self.is_unknown(value) or super().differs_in_length(value)

    def counted(self, whole: Value) -> Counted | None:
        if self.is_unknown(self.known(whole)):
            slot = (self.frame.number, f"over_{self.number()}")
            self.state.names[slot] = whole
            length = self.length(whole)
            return Counted(Host(0), length, Host(1), lambda index: self.lazy_item(self.state.names[slot], index), None)
        found = super().counted(whole)
        if found is None or found.turns is None or not 1 < found.turns <= MOST_TURNS:
            return found
        item = found.item

        def noted(index: Value) -> Value:
            return item(Lane(index.name, COUNTED) if isinstance(index, Lane) else index)

        return replace(found, item=noted)

    def by_counter(self, counted: Counted, loop: Turns) -> Turn | None:
        is_counted = counted.turns is not None and counted.turns <= MOST_TURNS
        self._counting += is_counted
        try:
            return super().by_counter(counted, loop)
        finally:
            self._counting -= is_counted

    def lazy_item(self, whole: Value, index: Value) -> Value:
        if self.is_unknown(whole):
            return self.part_of(whole, ELEMENT, index)
        return super().lazy_item(whole, index)

    def sequence(self, value: Value) -> list[Value]:
        value = self.known(value)
        if self.is_unknown(value):
            raise self.no_constant("PCB130", "how many items there are is not known")
        return super().sequence(value)

    def filtered(self, node: Any, error: FilteredError) -> Value:
        raise error  # of what type its elements are is not known

    def length(self, value: Value) -> Value:
        if self.is_unknown(value):
            return self.emit(builtin("__length__"), [self.pattern(value)])
        return super().length(value)
