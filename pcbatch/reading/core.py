"""What every part of the reader stands on: where it is, what it has found out, and how values become operations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pcbatch.errors import CompileError, Diagnostic, Note, PieceRefusalError, Span, raise_all
from pcbatch.frontend.source.nodes import span_of
from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.joins import ConflictError, join
from pcbatch.ir.records import fields_of
from pcbatch.ir.types import StructType, TensorType, Type
from pcbatch.lowering.captures.fingerprints import shallow
from pcbatch.reading.emitter import Emitter, Mark
from pcbatch.reading.naming import Names
from pcbatch.reading.operations import Held, Named, Operation, filled, held_in, key_of, lanes_in, text_of
from pcbatch.reading.places import Place
from pcbatch.reading.state import Cell, CellKind, State, within
from pcbatch.reading.values import (
    NONE,
    Bound,
    Frame,
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
    View,
    is_number,
)
from pcbatch.runtime.backends.protocol import Backend


class RefusedError(Exception):
    """What is read cannot be expressed; `diagnostic` says where and why."""

    def __init__(self, diagnostic: Diagnostic):
        self.diagnostic = diagnostic
        super().__init__(diagnostic.render())


class NeedsConstantError(RefusedError):
    """A number must be known here: a loop around it that goes a known number of turns is written out."""


class NeedsBlocksError(Exception):
    """What was to be computed straight needs blocks, calls, or changes objects."""


@dataclass(frozen=True, eq=False)
class Template:
    """What an operation gives: the types of its arrays inside of tuples, lists and dicts, and what is known now."""

    kind: str
    type: Type | None = None
    items: tuple[Template, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: type | None = None
    value: Any = None

    def leaves(self) -> Iterator[Type]:
        """The types of the arrays in it, in order."""
        if self.type is not None:
            yield self.type
        for item in self.items:
            yield from item.leaves()


@dataclass(eq=False)
class World:
    """What has been read of the world around the function, in the order in which it was read."""

    guards: dict[Any, tuple[Place, Any]] = field(default_factory=dict)
    """Where the program has read what it depends on, with a key of what was there."""
    operands: dict[str, tuple[Place | None, Any]] = field(default_factory=dict)
    """Captured arrays by the name of the shared operand: where each is read, and its value now."""

    def note(self, place: Place, value: Any) -> None:
        """The program depends on what is at `place`."""
        if place.identity not in self.guards:
            self.guards[place.identity] = place, shallow(value)


@dataclass(frozen=True, eq=False)
class Here:
    """A place in a reading to which it can go back."""

    place: Mark
    state: State
    cells: int
    numbers: int
    emitter: Emitter
    ends: Sequence[tuple[list[Any], int]]
    context: tuple[Any, ...]


_known_results: dict[Any, tuple[Template, bool]] = {}
"""What operations of libraries give for operands of some types: the same in every program."""
MOST_KNOWN = 100_000


class Core:
    """The state of a reading. Parts of the reader are classes above this one."""

    def __init__(self, backend: Backend, *, tapes: bool = False):
        self.backend = backend
        self.ops = importlib.import_module(backend.ops_module)
        self.symbols = backend.symbols(tapes)
        self.bindings: dict[str, Any] = {}
        """Values of Python's, by the name that code knows them by."""
        self.world = World()
        self.state = State()
        self.emitter = Emitter("", self.bindings)
        self.frames: list[Frame] = []
        self.file = ""
        self.node: Any = None
        self.cells = 0
        self.numbers = 0
        self.straight = 0
        """How many expressions around this one may not need blocks."""
        self.guard: Lane | None = None
        """Where this holds, what is computed now counts."""
        self.connected: dict[str, Any] | None = None
        """The symbols of variables in a block with a `with` statement: what is inside it sees where each comes from."""
        self.connected_in: Any = None
        self.contexts = 0
        """How many `with` statements are around."""
        self.pending: list[list[Value]] = []
        """Values that have been evaluated and are in nobody's variable yet: operands, arguments."""

    @property
    def names(self) -> Names:
        """The names of the function that is written."""
        return self.emitter.names

    @property
    def types(self) -> dict[str, Type]:
        """The types of the variables of the function that is written."""
        return self.emitter.types

    # -- where it is -------------------------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether control gets here."""
        return self.emitter.current is not None

    @property
    def frame(self) -> Frame:
        """The call that is interpreted."""
        return self.frames[-1]

    def span(self, node: Any = None) -> Span | None:
        """The source of a node, or of what is interpreted now."""
        node = self.node if node is None else node
        if node is None or getattr(node, "lineno", None) is None:
            return None
        return span_of(node, self.file)

    def refuse(
        self,
        code: str,
        message: str,
        help: str = "",
        *,
        node: Any = None,
        label: str = "",
        notes: Sequence[tuple[Span, str]] = (),
    ) -> NoReturn:
        """Refuse what is read, at the node or at what is interpreted now."""
        places = tuple(Note(span, text) for span, text in notes)
        raise RefusedError(Diagnostic(code, message, self.span(node), label, help, places))

    def needs_constant(self, code: str, message: str, help: str = "", *, node: Any = None) -> NoReturn:
        """Refuse what is no constant, unless a loop around is written out."""
        raise NeedsConstantError(Diagnostic(code, message, self.span(node), "", help))

    def number(self) -> int:
        """A number for a frame or a place that nothing else has."""
        self.numbers += 1
        return self.numbers

    # -- going back ----------------------------------------------------------------------------------------------------

    def mark(self) -> Here:
        """Here."""
        ends = [(row, len(row)) for row in self.open_ends()]
        context = self.guard, self.straight, self.file, self.node, list(self.frames), list(self.pending)
        return Here(self.emitter.mark(), self.state.copy(), self.cells, self.numbers, self.emitter, ends, context)

    def open_ends(self) -> Iterator[list[Any]]:
        """The lists of blocks that wait for what comes behind them."""
        return iter(())

    def back_to(self, here: Here) -> None:
        """Drop all that was made since `here`."""
        self.cells, self.numbers, self.emitter = here.cells, here.numbers, here.emitter
        self.emitter.back_to(here.place)
        self.state = here.state.copy()
        for row, length in here.ends:
            del row[length:]
        self.guard, self.straight, self.file, self.node, frames, pending = here.context
        self.frames[:], self.pending[:] = frames, pending

    def replace(self, change: Callable[[Value], Value | None]) -> None:
        """Put `change(value)` in the place of every value for which that is not None, in the state and on the way."""

        def walk(value: Value) -> Value:
            found = change(value)
            return within(value, walk) if found is None else found

        self.state.mapped(change)
        for row in self.pending:
            row[:] = map(walk, row)

    # -- objects -------------------------------------------------------------------------------------------------------

    def new(self, kind: CellKind, items: Any, cls: type | None = None) -> Ref:
        """A new object."""
        self.cells += 1
        self.state.heap[self.cells] = Cell(kind, items, cls)
        return Ref(self.cells)

    def cell(self, value: Value) -> Cell | None:
        """The object that a value refers to, if it does."""
        return self.state.heap[value.cell] if isinstance(value, Ref) else None

    def kind(self, value: Value) -> str:
        """The kind of the object that a value refers to; nothing for other values."""
        return self.state.heap[value.cell].kind if isinstance(value, Ref) else ""

    def host(self, value: Any, place: Place | None = None) -> Value:
        """A value of Python's as an abstract one: tuples are taken apart."""
        if type(value) is tuple:
            return Tuple(tuple(self.host(each, _item(place, number)) for number, each in enumerate(value)))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = tuple(self.host(each, _item(place, number)) for number, each in enumerate(value))
            return Tuple(items, type(value))
        return Host(value, place)

    def captured(self, value: Any, place: Place) -> Value:
        """A value that was read from the world: what it is, is noted."""
        if not self.is_array(value):
            self.world.note(place, value)
        return self.host(value, place)

    def is_array(self, value: Any) -> bool:
        """Whether a value of Python's is an array, and so a shared operand."""
        return self.backend.is_array(value)

    # -- values as operands --------------------------------------------------------------------------------------------

    def known(self, value: Value) -> Value:
        """`value`, which must be there; refused where it is undefined."""
        if isinstance(value, Undefined):
            spans = [*value.spans]
            here = self.span()
            notes = tuple(Note(span, label) for span, label in spans)
            kind = NeedsConstantError if value.turns else RefusedError
            raise kind(Diagnostic(value.code, value.why, here, "", value.help, notes))
        return value

    def type_of(self, value: Value) -> TensorType | None:
        """The type of a number or an array; None for everything else."""
        match value:
            case Lane(_, type_):
                return type_ if isinstance(type_, TensorType) else None
            case View(value=lane):
                return lane.type
            case Ref() if self.kind(value) == "array":
                return self.type_of(self.state.cell(value).items[0])
            case Host(host) if is_number(host) or self.is_array(host):
                try:
                    found = self.backend.type_of(host)
                except TypeError:
                    return None
                return found if isinstance(found, TensorType) else None
        return None

    def read(self, value: Value) -> Value:
        """The value that an array or a view holds now; everything else is its own."""
        if isinstance(value, Ref) and self.kind(value) == "array":
            return self.read(self.state.cell(value).items[0])
        if isinstance(value, View):
            return self.read_view(value)
        if isinstance(value, OneOf) and all(self.kind(each) == "array" for each in value.items):
            return self.selected(value)
        return value

    def read_view(self, view: View) -> Value:
        """The elements of a view; see `arrays`."""
        raise NotImplementedError

    def selected(self, value: OneOf) -> Value:
        """The array that one of several is; see `branches`."""
        raise NotImplementedError

    def pattern(self, value: Value) -> Any:
        """`value` as an argument of an operation: lanes and constants inside of Python's structures."""
        value = self.read(self.known(value))
        match value:
            case Lane():
                return value
            case Host(host):
                return self.host_pattern(value, host)
            case Tuple(items, None):
                return tuple(map(self.pattern, items))
            case Tuple():
                return self.record(value)
            case Ref():
                cell = self.state.cell(value)
                if cell.kind == "list":
                    return [self.pattern(each) for each in cell.items]
                if cell.kind == "dict":
                    return {key: self.pattern(each) for key, each in cell.items.items()}
                return self.record(value)
            case Function() | Bound():
                return self.closure(value)
            case Range(start, stop, step):
                self.refuse("PCB129", "a range whose bounds differ by lane is no list", "write a loop over it")
            case Generator():
                self.refuse("PCB130", "a generator goes into an operation", "make a list of it: `[.. for .. in ..]`")
            case OneOf():
                return self.record(self.selected(value))
            case Super():
                self.refuse("PCB208", "`super()` has methods, and is no value")
        raise AssertionError(value)

    def host_pattern(self, value: Host, host: Any) -> Any:
        """A value of Python's as an argument."""
        if self.is_array(host):
            return self.operand(value)
        if host is None or host is Ellipsis or type(host) in (bool, int, float, str, complex):
            return host
        if type(host) in (list, dict) and value.place is not None:
            items = host.items() if isinstance(host, dict) else enumerate(host)
            parts = {key: self.pattern(self.item_of_host(value, key)) for key, _ in items}
            return parts if isinstance(host, dict) else [*parts.values()]
        return self.bound(value)

    def item_of_host(self, value: Host, key: Any) -> Value:
        """An item of a captured list or dict."""
        item = value.value[key]
        place = None if value.place is None else Place("item", value.value, key, f"{value.place.text}[{key!r}]")
        return self.host(item) if place is None else self.captured(item, place)

    def bound(self, value: Host) -> Named:
        """A name by which code knows a value of Python's."""
        if value.path and value.root is not None and "." in value.path:
            root, _, rest = value.path.partition(".")
            if self.names.bound.get(root, value.root) is value.root and root not in self.types:
                return Named(f"{self.names.bind(root, value.root)}.{rest}", value.value)
        if value.place is not None and value.place.kind == "held":
            return Held(value.place.text, value.value)
        host = value.value
        hint = value.path.rpartition(".")[2] or getattr(host, "__name__", "") or type(host).__name__.lower()
        hint = "".join(c if c.isalnum() or c == "_" else "_" for c in hint)
        return Named(self.names.bind(hint if hint.isidentifier() else "value", host), host)

    def operand(self, value: Host) -> Lane:
        """The shared operand that a captured array is."""
        for name, (_, known) in self.world.operands.items():
            if known is value.value:
                return Lane(name, self._operand_type(known))
        text = "constant" if value.place is None else value.place.text
        hint = "_".join("".join(c if c.isalnum() or c == "_" else " " for c in text).split()) or "operand"
        name = self.names.bind(hint if hint.isidentifier() else f"_{hint}", value.value)
        self.world.operands[name] = (value.place, value.value)
        return Lane(name, self._operand_type(value.value))

    def _operand_type(self, value: Any) -> Any:
        return self.backend.type_of(value)

    def record(self, value: Value) -> Any:
        """An object or a named tuple as one operand."""
        raise NotImplementedError

    def closure(self, value: Function | Bound) -> Any:
        """A function of the user's as an argument of an operation."""
        raise NotImplementedError

    # -- operations ----------------------------------------------------------------------------------------------------

    def emit(
        self,
        operation: Operation,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any] | None = None,
        *,
        hint: str = "",
    ) -> Value:
        """What an operation gives for patterns of arguments; its ops are written if it gives anything of a lane's."""
        named = keywords or {}
        template, is_checked = self.tried(operation, arguments, named)
        leaves = [*template.leaves()]
        held = [each.text for pattern in (*arguments, *named.values()) for each in held_in(pattern)]
        if not leaves:
            if template.kind == "host" and template.value is None and held:
                self._effect(operation, arguments, named, held)
            return self.built(template, iter(()))
        texts = [text_of(each, operation.key == "[]") for each in arguments]
        text = operation.written(texts, {name: text_of(each) for name, each in named.items()})
        lanes = [each for pattern in (*arguments, *named.values()) for each in lanes_in(pattern)]
        inputs = tuple(dict.fromkeys([*(each.name for each in lanes if each.name in self.types), *held]))
        if is_checked and self.guard is not None:
            text, inputs = self._guarded(text), tuple(dict.fromkeys((self.guard.name, *inputs)))
        outputs = tuple(self.emitter.fresh(type_, hint or "t") for type_ in leaves)
        lanes = [Lane(name, type_) for name, type_ in zip(outputs, leaves, strict=True)]  # type: ignore[arg-type]
        span = self.span()
        if self.connected is not None:
            self.connected |= dict(zip(outputs, self._results, strict=True))
        if template.type is not None:
            self.emitter.append(ir.Primitive(outputs, inputs, Code(f"{outputs[0]} = {text}"), span))
        elif (target := target_of(template, iter(outputs))) is not None:
            self.emitter.append(ir.Primitive(outputs, inputs, Code(f"{target} = {text}"), span))
        else:
            self._taken_apart(template, lanes, text, inputs, span)
        return self.built(template, iter(lanes))

    def _effect(
        self, operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any], held: Sequence[str]
    ) -> None:
        """Write an operation that is there for what it does to a context manager: `tape.watch(x)`."""
        text = operation.written([*map(text_of, arguments)], {name: text_of(each) for name, each in named.items()})
        lanes = [each for pattern in (*arguments, *named.values()) for each in lanes_in(pattern)]
        inputs = tuple(dict.fromkeys([*(each.name for each in lanes if each.name in self.types), *held]))
        self.emitter.append(ir.Primitive((), inputs, Code(text), self.span()))

    def _guarded(self, text: str) -> str:
        """An operation that may fail only where what is around it counts."""
        assert self.guard is not None
        return f"__guarded__({self.guard.name}, lambda: {text})"

    def tried(
        self, operation: Operation, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Template, bool]:
        """What an operation gives for operands of such types, and whether it may fail a lane."""
        key = None
        if self.connected is not None and self.connected_in is not self.emitter.current:
            self.connected = None
        if operation.key is not None and self.connected is None:
            key = operation.key, key_of(tuple(arguments)), key_of(dict(keywords))
            if key in _known_results:
                return _known_results[key]
        symbol = self._symbol
        window = self.ops.window

        def make() -> Any:
            given = [filled(each, symbol, window) for each in arguments]
            named = {name: filled(each, symbol, window) for name, each in keywords.items()}
            return operation.called(self.ops, given, named)

        try:
            result, is_checked = self.symbols.called(make)
            self._results: list[Any] = []
            template = self.template(result)
        except (RefusedError, NeedsBlocksError, CompileError):
            raise
        except PieceRefusalError as error:
            self.refuse(error.code, error.message, error.help)
        except Exception as error:
            self.failed(error)
        if key is not None and len(_known_results) < MOST_KNOWN:
            _known_results[key] = template, is_checked
        return template, is_checked

    def _symbol(self, lane: Lane) -> Any:
        """What stands for a variable while an operation is tried."""
        if self.connected is None:
            return self.symbols.symbol(lane.type)
        _, captured = self.world.operands.get(lane.name, (None, None))
        if captured is not None and self.backend.is_variable(captured):
            return captured
        if lane.name not in self.connected:
            self.connected[lane.name] = self.symbols.symbol(lane.type, own=True)
        return self.connected[lane.name]

    def failed(self, error: Exception) -> NoReturn:
        """Refuse an operation that raised `error` on symbols."""
        code, message, help = self.backend.failure(error)
        if self.backend.is_size(error):
            self.needs_constant(code, message, help)
        self.refuse(code, message, help)

    def template(self, result: Any) -> Template:
        """What an operation has given."""
        type_ = self.symbols.type_of(result)
        if type_ is not None:
            self._results.append(result)
            return Template("lane", type_)
        fields = None if isinstance(result, tuple) else fields_of(result)
        if fields is not None:
            return Template("object", items=tuple(map(self.template, fields.values())), keys=tuple(fields), cls=type(result))
        match result:
            case tuple():
                cls = type(result) if hasattr(result, "_fields") else None
                return Template("tuple", items=tuple(map(self.template, result)), cls=cls)
            case list():
                return Template("list", items=tuple(map(self.template, result)))
            case dict():
                return Template("dict", items=tuple(map(self.template, result.values())), keys=tuple(result))
        return Template("host", value=result)

    def built(self, template: Template, lanes: Iterator[Lane]) -> Value:
        """The value that a template stands for."""
        match template.kind:
            case "lane":
                return next(lanes)
            case "tuple":
                return Tuple(tuple(self.built(each, lanes) for each in template.items), template.cls)
            case "list":
                return self.new("list", tuple(self.built(each, lanes) for each in template.items))
            case "dict":
                values = [self.built(each, lanes) for each in template.items]
                return self.new("dict", dict(zip(template.keys, values, strict=True)))
            case "object":
                values = [self.built(each, lanes) for each in template.items]
                return self.new("object", dict(zip(template.keys, values, strict=True)), template.cls)
        return Host(template.value)

    def _taken_apart(
        self, template: Template, lanes: Sequence[Lane], text: str, inputs: tuple[str, ...], span: Span | None
    ) -> None:
        """Write an operation that gives a structure with more than arrays in it, and what is taken out of that."""
        whole = _struct(template)
        if whole is None:
            self.refuse("PCB404", "what this gives is no value that a lane can keep")
        name = self.emitter.fresh(whole, "t")
        self.emitter.append(ir.Primitive((name,), inputs, Code(f"{name} = {text}"), span))
        waiting = iter(lanes)

        def take(part: Template, source: str) -> None:
            if part.type is not None:
                return
            for number, (key, item) in enumerate(zip(part.keys or range(len(part.items)), part.items, strict=True)):
                assert part.kind != "host"
                target = next(waiting).name if item.type is not None else self.emitter.fresh(_struct(item), "t")  # type: ignore[arg-type]
                step = payload.Field(key) if part.kind == "object" else payload.Index(key if part.kind == "dict" else number)
                self.emitter.assign(target, (source,), step, span)
                take(item, target)

        take(template, name)

    # -- numbers of lanes ----------------------------------------------------------------------------------------------

    def lane(self, value: Value, type_: TensorType | None = None, hint: str = "") -> Lane:
        """`value` as a variable, of exactly `type_` if that is given; refused for what is no number or array."""
        value = self.read(self.known(value))
        own = self.type_of(value)
        if own is None:
            self.refuse("PCB404", f"{self.described(value)} stands where a lane has a number")
        wanted = own if type_ is None else type_
        if isinstance(value, Lane) and value.name in self.types and wanted == own:
            return value
        name = self.emitter.fresh(wanted, hint or (value.name if isinstance(value, Lane) else "t"))
        self.give(name, value, wanted)
        return Lane(name, wanted)

    def give(self, name: str, value: Value, type_: TensorType) -> None:
        """Write an assignment of a number or an array to a variable of `type_`."""
        span = self.span()
        value = self.read(self.known(value))
        own = self.type_of(value)
        if isinstance(value, Host) and is_number(value.value) and own == type_:
            is_written = isinstance(value.value, complex) or not np.isfinite(value.value)
            if is_written:
                self.emitter.append(ir.Primitive((name,), (), Code(f"{name} = {text_of(value.value)}"), span))
            else:
                self.emitter.assign(name, (), payload.Constant(value.value), span)
            return
        source = value if isinstance(value, Lane) else self.pattern(value)
        if not isinstance(source, Lane):
            middle = self.emitter.fresh(own or type_, "t")
            self.emitter.append(ir.Primitive((middle,), (), Code(f"{middle} = {text_of(source)}"), span))
            source = Lane(middle, own or type_)
        if source.name not in self.types:  # a shared operand, which is no variable
            if source.type == type_:
                self.emitter.append(ir.Primitive((name,), (), Code(f"{name} = {source.name}"), span))
                return
            middle = self.emitter.fresh(source.type, "t")
            self.emitter.append(ir.Primitive((middle,), (), Code(f"{middle} = {source.name}"), span))
            source = Lane(middle, source.type)
        self.emitter.assign(name, (source.name,), payload.Copy() if source.type == type_ else payload.Cast(type_), span)

    def joined(self, types: Sequence[TensorType]) -> TensorType:
        """The type that holds values of all `types`; ConflictError where there is none."""
        found: Type | None = None
        for each in types:
            found = join(found, each)
        assert isinstance(found, TensorType)
        return found

    def conflict(self, error: ConflictError) -> str:
        """Why types do not meet, in the words of the user's library."""
        return error.told(self.backend.spelling)

    # -- words ---------------------------------------------------------------------------------------------------------

    def described(self, value: Value) -> str:
        """What a value is, for messages."""
        match value:
            case Lane(_, type_):
                return f"a value of a lane ({type_})"
            case Host(host):
                return f"`{host!r}`" if is_number(host) or isinstance(host, str) or host is None else _a(type(host).__name__)
            case Ref():
                cell = self.state.cell(value)
                return _a(cell.cls.__name__ if cell.cls is not None else cell.kind)
            case Tuple(_, cls):
                return "a tuple" if cls is None else _a(cls.__name__)
            case Function(name):
                return f"the function {name}"
            case Range():
                return "a range"
            case Generator():
                return "a generator"
            case View():
                return "an array"
            case OneOf():
                return "one of several objects"
        return "a method"

    def fail_now(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Raise what was found."""
        raise_all(diagnostics)


def _item(place: Place | None, number: int) -> Place | None:
    """The place of an item of what was read at a place."""
    if place is None:
        return None
    return Place("item", _Held(place), number, f"{place.text}[{number}]")


class _Held:
    """What is at a place now, to be asked for an item."""

    def __init__(self, place: Place):
        self.place = place

    def __getitem__(self, key: Any) -> Any:
        return self.place.read()[key]


def target_of(template: Template, names: Iterator[str]) -> str | None:
    """The target of an assignment that takes a structure of arrays apart; None where it holds anything else."""
    if template.type is not None:
        return next(names)
    if template.kind not in ("tuple", "list") or not template.items:
        return None
    parts = [target_of(each, names) for each in template.items]
    if None in parts:
        return None
    return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"


def _struct(template: Template) -> Type | None:
    """The type of a structure; None where it holds anything but arrays."""
    if template.type is not None:
        return template.type
    if template.kind == "host":
        return None
    items = [_struct(each) for each in template.items]
    if None in items:
        return None
    kind = template.kind if template.cls is None else template.cls.__name__
    is_named = template.kind == "tuple" and template.cls is not None
    keys = template.cls._fields if is_named else template.keys  # type: ignore[union-attr]
    return StructType(kind, tuple(items), tuple(keys), template.cls)  # type: ignore[arg-type]


def _a(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


NOTHING: Callable[[], Value] = lambda: NONE  # noqa: E731
