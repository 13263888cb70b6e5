"""The common base of the reader's parts: its place, its findings, and the conversion of values to operations."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.nodes import span_of
from pcbatch.installed import IN_PYTHON
from pcbatch.ir.types import TensorType, Type
from pcbatch.lowering.captures.guarded_paths import Place
from pcbatch.reading.described import described
from pcbatch.reading.emitter import Emitter, Mark, Names, hint_of_text
from pcbatch.reading.operations import Named, ObjectOperation
from pcbatch.reading.state import Cell, CellKind, Operand, Row, State, World
from pcbatch.reading.values import (
    LOST,
    NONE,
    Bound,
    Choice,
    Frame,
    Function,
    Generator,
    Host,
    Lane,
    OneOf,
    Optional,
    Part,
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

A_LIST = "make a list of it: `[.. for .. in ..]`"
"""The help for a generator that goes where none can be."""
PYTHONS = re.compile(r"(\w+Error|StopIteration): ")
"""Beginning of a message of Python's own."""


class RefusedError(Exception):
    """Raised for code that cannot be expressed; `diagnostic` has the place and the reason."""

    def __init__(self, diagnostic: Diagnostic):
        self.diagnostic = diagnostic
        self.is_final = False
        """True if it stays so where numbers are known: there is no need to try again."""
        self.wants: tuple[Any, ...] = ()  # see `values.Undefined`
        self.statement: Any = None
        """The innermost statement of a function of the program in which it stands; see `recovery`."""
        super().__init__(diagnostic.render())


class NeedsConstantError(RefusedError):
    """A number must be known here: a loop around it that goes a known number of turns is written out."""


class LostError(Exception):
    """Raised for code that depends on a statement that is refused, and is left out; see `recovery`."""


class FilteredError(NeedsConstantError):
    """Raised where lanes differ in whether a comprehension keeps an element."""


class NeedsBlocksError(Exception):
    """Raised for a straight computation that needs blocks, calls, or changes objects."""


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


class Core:
    """The state of a reading. Parts of the reader are classes above this one."""

    # of parts above
    there: Callable[..., Value]
    read_view: Callable[[View], Value]
    selected: Callable[[OneOf], Value]
    record: Callable[[Value], Any]
    closure: Callable[[Function | Bound], Any]
    argument: Callable[[Value], str]

    def __init__(self, backend: Backend, *, tapes: bool = False):
        self.backend = backend
        self.ops = importlib.import_module(backend.ops_module)
        self.symbols, self.tapes = backend.symbols(tapes), tapes
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
        """Number of expressions around this one that must not need blocks."""
        self.hint = ""
        """The name that what is computed now goes by."""
        self.guard: Lane | None = None
        """The condition under which present computations count."""
        self.connected: dict[str, Any] | None = None
        """The symbols of variables in a block with a `with` statement: what is inside it sees where each comes from."""
        self.connected_in: Any = None
        self.contexts: list[Any] = []
        self.beside: list[Any] = []
        """The arrays that batched functions capture which are operations."""
        """The context managers of the `with` statements that are around."""
        self._rows = itertools.count()

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
        """True if control gets here."""
        return self.emitter.current is not None

    @property
    def frame(self) -> Frame:
        """The call that is interpreted."""
        return self.frames[-1]

    def span(self, node: Any = None) -> Span | None:
        """The source of a node, or of what is interpreted now."""
        if self.file in IN_PYTHON:  # where the user calls what is read there
            return next((frame.span for frame in self.frames if frame.function.file in IN_PYTHON), None)
        node = self.node if node is None else node
        if node is None or getattr(node, "lineno", None) is None:
            return None
        return span_of(node, self.file)

    def refusal(
        self,
        code: str,
        message: str,
        help: str = "",
        *,
        node: Any = None,
        label: str = "",
        notes: Sequence[tuple[Span, str]] = (),
    ) -> RefusedError:
        """The refusal of what is read, at the node or at what is interpreted now."""
        places = [Note(span, text) for span, text in notes]
        if not help and code == "PCB401" and PYTHONS.match(message):
            help = "Python raises this, too"
        return RefusedError(Diagnostic(code, message, self.span(node), label, help, (*places, *self._calls())))

    def _calls(self) -> list[Note]:
        """Return the places of the call for which the present function is interpreted in place."""
        users = (each for each in self.frames[1:] if each.function.file not in IN_PYTHON)
        calls = [each for each in users if each.span is not None]
        names = [(each.span, each.function.name) for each in calls[-1:]]
        told = [(span, "the lambda" if name == "<lambda>" else f"`{name}`") for span, name in names]
        return [Note(span, f"{text} is called here") for span, text in told if span is not None]

    def no_constant(self, code: str, message: str, help: str = "", *, node: Any = None) -> NeedsConstantError:
        """The refusal of what is no constant, unless a loop around is written out."""
        return NeedsConstantError(Diagnostic(code, message, self.span(node), "", help, tuple(self._calls())))

    @contextmanager
    def raising(self, *errors: type[Exception], code: str = "PCB401", help: str = "") -> Iterator[None]:
        """Refuse what Python raises of a value that is known."""
        try:
            yield
        except errors as error:
            raise self.refusal(code, f"{type(error).__name__}: {error}", help) from None

    def captured_change(self, value: Host, node: Any = None) -> RefusedError:
        """The refusal of a change of what stands outside of the function."""
        name = value.place.text if value.place is not None and value.place.kind in ("global", "cell") else ""
        if name:
            message = f"`{name}` is captured, and this changes it for everybody"
            help = f"copy it first, `own = copy.deepcopy({name})`; or pass it as an argument, and return it"
        else:
            message = f"this changes {self.described(value)} that stands outside of the function, for everybody"
            help = "pass what changes as an argument of its own, and return it: `def step(self, state): ..`"
        return self.refusal("PCB204", message, help, label="changed here", node=node)

    def number(self) -> int:
        """A number for a frame or a place that nothing else has."""
        self.numbers += 1
        return self.numbers

    # -- going back ----------------------------------------------------------------------------------------------------

    def mark(self) -> Here:
        """Here."""
        ends = [(row, len(row)) for row in self.open_ends()]
        context = self.guard, self.straight, self.file, self.node, list(self.frames)
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
        self.guard, self.straight, self.file, self.node, self.frames[:] = here.context

    def kept(self, values: Iterable[Value] = ()) -> Row:
        """Values that have been evaluated and are in nobody's variable yet, while more is evaluated."""
        slot = (0, f" row {next(self._rows)}")
        self.state.names[slot] = Tuple(tuple(values))
        return Row(self, slot)

    def each(self, values: Iterable[Value]) -> Iterator[Value]:
        """Values one after the other, each as it is when its turn comes."""
        with self.kept(values) as row:
            for place in range(len(row)):
                yield row[place]

    # -- objects -------------------------------------------------------------------------------------------------------

    def new(self, kind: CellKind, items: Any, cls: type | None = None) -> Ref:
        """A new object."""
        self.cells += 1
        self.state.heap[self.cells] = Cell(kind, items, cls)
        return Ref(self.cells)

    def cell(self, value: Value) -> Cell | None:
        """The object that a value refers to, if it does."""
        return self.state.cell(value) if isinstance(value, Ref) else None

    def kind(self, value: Value) -> str:
        """The kind of the object that a value refers to; nothing for other values."""
        return self.state.cell(value).kind if isinstance(value, Ref) else ""

    def host(self, value: Any, place: Place | None = None) -> Value:
        """A value of Python's as an abstract one: tuples are taken apart."""
        is_named = isinstance(value, tuple) and hasattr(value, "_fields")
        if type(value) is not tuple and not is_named:
            return Host(value, place)
        items = tuple(self.host(each, place and place.item(number)) for number, each in enumerate(value))
        return Tuple(items, type(value) if is_named else None)

    def captured(self, value: Any, place: Place) -> Value:
        """A value that was read from the world: what it is, is noted."""
        if not self.is_array(value):
            self.world.guards.note(place, value)
        return self.host(value, place)

    def is_array(self, value: Any) -> bool:
        """Return whether a value of Python's is an array, and so a shared operand."""
        return self.backend.is_array(value)

    # -- values as operands --------------------------------------------------------------------------------------------

    def known(self, value: Value) -> Value:
        """`value`, which must be there; refused where it is undefined."""
        if type(value) is Lane or type(value) is Host:
            return value
        if value is LOST:
            raise LostError
        if isinstance(value, Undefined):
            spans = [*value.spans]
            here = self.span()
            notes = tuple(Note(span, label) for span, label in spans)
            kind = NeedsConstantError if value.turns else RefusedError
            error = kind(Diagnostic(value.code, value.why, here, "", value.help, notes))
            error.wants = value.wants
            raise error
        if isinstance(value, Ref) and value.cell < 0:
            found: Value = self.state.heap[value.cell].items[0]
            return found
        if isinstance(value, Optional) and (is_there := self.state.facts.get(value.there.name)) is not None:
            return self.known(value.content) if is_there else NONE
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

    def is_scalar(self, value: Value) -> bool:
        """Tell whether a value is a number for certain, and no array."""
        type_ = self.type_of(value)
        return type_ is not None and not type_.shape

    def read(self, value: Value) -> Value:
        """The value that an array or a view holds now; everything else is its own."""
        if type(value) is Lane or type(value) is Host:
            return value
        if isinstance(value, Ref) and self.kind(value) == "array":
            return self.read(self.state.cell(value).items[0])
        if isinstance(value, View):
            return self.read_view(value)
        if isinstance(value, OneOf) and all(self.kind(each) == "array" for each in value.items):
            return self.selected(value)
        return value

    def pattern(self, value: Value) -> Any:
        """`value` as an argument of an operation: lanes and constants inside of Python's structures."""
        value = self.read(self.there(value))
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
            case Part():
                return value.pattern
            case Function() | Bound():
                return self.closure(value)
            case Range():
                raise self.refusal("PCB129", "a range whose bounds differ by lane is no list", "write a loop over it")
            case Generator():
                raise self.refusal("PCB130", "a generator goes into an operation", A_LIST)
            case OneOf():
                return self.pattern(self.selected(value))
            case Choice():
                raise self.refusal("PCB114", f"{self.described(value)} goes into an operation, which takes numbers")
            case Super():
                raise self.refusal("PCB208", "`super()` has methods, and is no value")
        raise AssertionError(value)

    def patterns(self, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call as those of an operation."""
        return [*map(self.pattern, arguments)], {name: self.pattern(each) for name, each in keywords.items()}

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
        self.world.guards.follow(host)  # a function may be called by what gets it
        return self.bound(value)

    def item_of_host(self, value: Host, key: Any) -> Value:
        """An item of a captured list or dict."""
        item = value.value[key]
        place = None if value.place is None else value.place.item(key)
        return self.host(item) if place is None else self.captured(item, place)

    def bound(self, value: Host) -> Named:
        """A name by which code knows a value of Python's."""
        if value.path and value.root is not None and "." in value.path:
            root, _, rest = value.path.partition(".")
            if self.names.bound.get(root, value.root) is value.root and root not in self.types:
                return Named(f"{self.names.bind(root, value.root)}.{rest}", value.value)
        if value.place is not None and value.place.kind == "held":
            return ObjectOperation(value.place.text, value.value)
        host = value.value
        hint = value.path.rpartition(".")[2] or getattr(host, "__name__", "") or type(host).__name__.lower()
        hint = re.sub(r"\W", "_", hint)
        return Named(self.names.bind(hint if hint.isidentifier() else "value", host), host)

    def operand(self, value: Host) -> Lane:
        """The shared operand that a captured array is."""
        held = self.backend.held_by(value.value)
        if held is not value.value:
            place = value.place
            if place is not None:  # which object holds it is a fact of the program
                self.world.guards.note(place, value.value)
                place = Place("attribute", value.value, "value", place.text)
            value = Host(held, place)
        places = [] if value.place is None else [value.place]
        type_: Any = self.backend.type_of(value.value)
        for name, known in self.world.operands.items():
            if known.value is value.value:
                if value.place is not None and value.place.identity not in {each.identity for each in known.places}:
                    known.places.append(value.place)
                return Lane(name, type_)
        hint = hint_of_text("constant" if value.place is None else value.place.text)
        name = self.names.bind(hint, value.value)
        self.world.operands[name] = Operand(value.value, places)
        return Lane(name, type_)

    # -- words ---------------------------------------------------------------------------------------------------------

    def if_static(self, values: Iterable[Value], help: str = "") -> str:
        """Advice on values that ought to be known: what is an argument may be a static one."""
        name = next(filter(None, map(self.argument, values)), "")
        return "; ".join(filter(None, (f"make it a static argument, `static_argnames={name!r}`" * bool(name), help)))

    def described(self, value: Value) -> str:
        """Describe a value for messages."""
        return described(value, self.cell(value))
