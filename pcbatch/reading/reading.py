"""A function read for the types of its arguments: the typed program, and what of the world it depends on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.nodes import span_of
from pcbatch.ir import program as ir
from pcbatch.ir.rewrite import relabel
from pcbatch.ir.types import NONE, StructType, TensorType, Type
from pcbatch.lowering.captures.captured import names_read, ordered_variables
from pcbatch.lowering.captures.guards import Guards
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.core import LostError, NeedsConstantError, RefusedError
from pcbatch.reading.counters import comes_later
from pcbatch.reading.described import a
from pcbatch.reading.emitter import LoopNote
from pcbatch.reading.in_python import CLASSES
from pcbatch.reading.kinds import ROOM, Kind, Specialisation, WiderError, Widths, told
from pcbatch.reading.lengths import is_bounded_class, kind_of_bounded
from pcbatch.reading.lists_in_python import List
from pcbatch.reading.ragged_rows import is_ragged_class, kind_of_ragged
from pcbatch.reading.recovery import Recovery, all_told
from pcbatch.reading.rows import Elements, LengthenError, LoosenError
from pcbatch.reading.state import Operand
from pcbatch.reading.values import Host, is_none
from pcbatch.runtime.backends.protocol import Backend

RESTARTS = 40


@dataclass(frozen=True)
class Reading:
    """A function read for some types of arguments.

    `program` has a parameter for each array of the arguments, `parameters` says whose they are; its results are the
    arrays of a value of type `result`. `names` are the values of free names, `guards` what was read to get there,
    `operands` the captured arrays by name.
    """

    program: ir.Program
    result: Type
    parameters: Mapping[str, Sequence[str]]
    names: Mapping[str, Any]
    guards: Guards
    operands: Mapping[str, Operand]
    origin: Mapping[str, str]
    interpreted: Mapping[str, int]
    maps: Mapping[Span, Type]
    """The type of what the calls of a `pcbatch.map` give, by its place."""
    changes: bool
    """True if it changes something that it is given: to a batched function arguments are values."""
    loops: Mapping[Span | None, LoopNote]
    """Reports on loops whose turns make calls, where these are to be forked."""


def read(
    entry: BatchedFunction,
    types: Mapping[str, Type],
    hosts: Mapping[str, Any],
    backend: Backend,
    batched_of: Callable[[Any], BatchedFunction | None],
    *,
    defaults: Mapping[str, int] | None = None,
    tapes: bool = False,
    forking: bool = False,
    room: int = ROOM,
) -> Reading:
    """The reading of a batched function for arguments of `types`, `hosts` being those that are no lane's.

    `defaults` are those of `types` that have their default values, which are sizes, perhaps. With `forking`, calls are
    to be made at the same time. Lists whose length differs by lane have `room` for so many elements.

    Raises CompileError with what is refused.
    """
    known = defaults or {}
    types_of_others = {name: type_ for name, type_ in types.items() if name not in known}

    def reading(at_fault: Collection[Any]) -> Reading:
        options = {"tapes": tapes, "forking": forking, "batched_of": batched_of, "at_fault": at_fault}
        try:
            return _settled(entry, types, hosts, backend, options, room)
        except NeedsConstantError:
            if not known:
                raise
        return _settled(entry, types_of_others, {**hosts, **known}, backend, options, room)

    return all_told(reading)


def _settled(
    entry: BatchedFunction,
    types: Mapping[str, Type],
    hosts: Mapping[str, Any],
    backend: Backend,
    options: Mapping[str, Any],
    room: int,
) -> Reading:
    """The reading with parameters of functions as wide as their calls need them."""
    widths, first = Widths(room=room), None
    for _ in range(RESTARTS):
        try:
            return Assembly(Recovery(backend, widths=widths, **options), entry).typed(types, hosts)
        except (WiderError, LengthenError):
            continue
        except LoosenError as error:
            widths.loose.add(error.site)
            widths.forget([error.site])
            widths.containers[error.site] = Elements(None, room)
        except RefusedError as error:
            wanted = [site for site in error.wants if site not in widths.containers]
            if not wanted and widths.loose:
                widths.fix()
                first = None
                continue
            if not wanted:
                raise first if first is not None and not comes_later(error, first) else error from None
            widths.forget(wanted)
            widths.containers.update(dict.fromkeys(wanted, Elements(None, room)))
            first = first or error
        except RecursionError:
            span = span_of(entry.tree, entry.file)
            help = (
                "let what it recurses over differ by lane, with arrays of one shape; or raise Python's limit, "
                "`sys.setrecursionlimit(10_000)`"
            )
            message = f"calls in {entry.live.__name__} are nested deeper than Python's own stack can be"
            raise RefusedError(Diagnostic("PCB312", message, span, "", help)) from None
    raise RefusedError(Diagnostic("PCB304", "the types of the functions that call each other do not settle", None))


class Assembly:
    """Puts the program together that a reader has found for a batched function."""

    def __init__(self, reader: Recovery, entry: BatchedFunction):
        self.reader, self.entry = reader, entry
        reader.read_function = entry.itself

    def typed(self, types: Mapping[str, Type], hosts: Mapping[str, Any]) -> Reading:
        """The reading for arguments of `types`, and `hosts`."""
        reader = self.reader
        given = {name: _kind(type_) for name, type_ in types.items()}
        given |= {name: Kind("host", value=reader.host(value)) for name, value in hosts.items()}
        spec, result = self.specialisation(given)
        reached = self.reached(spec)
        if result.value is not None and is_none(result.value) and (spec.touched or spec.changed):
            raise RefusedError(
                Diagnostic(
                    "PCB121",
                    f"`{self.entry.live.__name__}` changes what it is given, and returns nothing: the changes are lost",
                    next(iter(spec.returns), None),
                    "after this it ends",
                    "arguments are values: return what is changed, `return a`",
                )
            )
        reader.refuse_changes()
        called = _names(reached)
        functions = tuple(self._function(each, called) for each in reached)
        program = relabel(ir.Program("cfg", functions))
        waiting = iter(spec.parameters)
        parameters = {name: [next(waiting) for _ in kind.leaves()] for name, kind in spec.kinds.items()}
        maps = {span: self.type_of(kind) for span, kind in reader.maps.items() if span is not None}
        counts = dict.fromkeys(called.values(), 1)
        origin = {called[each.name]: each.function.name for each in reached}
        operands = {name: each.kept() for name, each in reader.world.operands.items()}
        names = {name: value for name, value in reader.bindings.items() if name not in operands}
        result_type, guards = self.type_of(result, next(iter(spec.returns), None)), reader.world.guards
        loops = {note.span: note for each in reached for note in each.emitter.notes}  # type: ignore[union-attr]
        changes = bool(spec.touched or spec.changed)
        return Reading(program, result_type, parameters, names, guards, operands, origin, counts, maps, changes, loops)

    def specialisation(self, given: Mapping[str, Kind]) -> tuple[Specialisation, Kind]:
        """The entry for arguments of such kinds, and the kind of what it gives."""
        reader, entry = self.reader, self.entry
        function = reader.function_of(entry.live)
        if function is None:
            raise reader.refusal("PCB100", f"the source of {entry.live.__name__} cannot be read")
        order = [each.id for each in _parameters(function.tree)]
        if entry.receiver is not None:
            given = {**given, order[0]: Kind("host", value=Host(entry.receiver))}
        kinds = {name: given[name] for name in order if name in given}
        reader.file, reader.node = function.file, function.tree
        spec = reader._specialisation(function, kinds, entry.cost)
        result = reader._result(spec)
        if spec.is_incomplete:
            raise LostError
        if result is None:
            raise reader.refusal(
                "PCB303",
                f"{entry.live.__name__} never returns: every path through it fails or calls itself",
                "return a value on some path that does not",
                node=function.tree,
            )
        return spec, result

    def reached(self, spec: Specialisation) -> list[Specialisation]:
        """The functions of the program, in the order in which calls reach them."""
        known = {each.name: each for each in self.reader.specialisations.values()}
        found = [spec]
        for each in found:
            assert each.emitter is not None
            for block in each.emitter.layout:
                for op in block.ops:
                    if isinstance(op, ir.Call) and known[op.function] not in found:
                        found.append(known[op.function])
        return found

    def _function(self, spec: Specialisation, called: Mapping[str, str]) -> ir.Function:
        assert spec.emitter is not None
        blocks = tuple(_calling(each, called) for each in spec.emitter.finished())
        name = called[spec.name]
        function = ir.Function(name, spec.parameters, spec.results, blocks, cost=spec.cost, span=spec.span)
        names = ordered_variables(function)
        types = spec.emitter.types
        variables = tuple(ir.Variable(name, types.get(name)) for name in names)
        externs = names_read(function) & set(self.reader.bindings)
        return ir.Function(
            name,
            spec.parameters,
            spec.results,
            blocks,
            tuple(sorted(externs)),
            variables,
            spec.cost,
            tuple(name for name in names if name in spec.emitter.names.made),
            spec.span,
        )

    def type_of(self, kind: Kind, span: Span | None = None) -> Type:
        """The type of what the program gives, at `span`."""
        match kind.form:
            case "lane":
                found: Type = kind.type
                return found
            case "same" if kind.items:
                return self.type_of(kind.items[0])
            case "host" if isinstance(kind.value, Host) and kind.value.value is None:
                return NONE
            case "object" if kind.cls is List and self.reader.widths.loose:
                raise RefusedError(Diagnostic("PCB404", "a list is returned that may be of one length", span))
            case "object" if kind.cls is List:
                rows, length = kind.items
                elements = rows.cls.elements
                if elements.kind is None:
                    return self.type_of(Kind("list"))
                arrays = elements.kind.with_leaves(iter([*rows.leaves()]))
                parts = (self.type_of(arrays, span), self.type_of(length))
                return StructType("Bounded", parts, ("items", "length"), self.reader.ops.Bounded)
            case "lazy" if kind.cls == "ragged":
                array, _, length, *_ = kind.items
                parts = (self.type_of(array, span), self.type_of(length, span))
                return StructType("Ragged", parts, ("values", "length"), self.reader.ops.Ragged)
            case "object" if kind.cls in CLASSES:
                name = CLASSES[kind.cls].__name__
                message = f"{a(name)} is returned whose length differs by lane"
                help = "return lists: `list(d), list(d.values())`, `sorted(s)`"
                raise RefusedError(Diagnostic("PCB404", message, span, "returned here", help))
            case "tuple" | "list" | "dict" | "object":
                items = tuple(self.type_of(each, span) for each in kind.items)
                if kind.cls is not None:
                    keys = kind.cls._fields if kind.form == "tuple" else kind.keys
                    return StructType(kind.cls.__name__, items, tuple(keys), kind.cls)
                if kind.form != "dict":
                    return StructType(kind.form, items)
                strange = next((key for key in kind.keys if not _is_literal(key)), None)
                if strange is not None:
                    message = f"a dict with the key {strange!r} is returned"
                    help = "take numbers, texts or tuples of these for its keys"
                    raise RefusedError(Diagnostic("PCB404", message, span, "returned here", help))
                return StructType("dict", items, tuple(kind.keys))
        known = kind.value.value if isinstance(kind.value, Host) else None
        help = "return numbers, arrays, and tuples, lists, dicts and objects of such"
        if isinstance(known, str) or kind.form == "word":
            help = "give each text a number, `START, END = 0, 1`, and return that"
        if kind.form == "lazy":
            help = "store its elements into an array: `y = np.zeros(N)`, `y[:n] = x[:n]`"
        message = f"{told(kind)} is returned, which is no value that a lane can keep"
        raise RefusedError(Diagnostic("PCB404", message, span, "returned here", help))


def _is_literal(key: Any) -> bool:
    """Tell whether a key of a dict can be written down."""
    return all(map(_is_literal, key)) if type(key) is tuple else type(key) in (str, int, float, bool, type(None))


def _kind(type_: Type) -> Kind:
    """The kind of an argument."""
    match type_:
        case TensorType():
            return Kind("lane", type_)
        case StructType(kind, items, keys, constructor):
            parts = tuple(map(_kind, items))
            match kind:
                case "None":
                    return Kind("host", value=Host(None))
                case "tuple":
                    return Kind("tuple", items=parts)
                case "list":
                    return Kind("list", items=parts, keys=tuple(range(len(parts))))
                case "dict":
                    return Kind("dict", items=parts, keys=keys)
            if constructor is not None and issubclass(constructor, tuple):
                return Kind("tuple", items=parts, cls=constructor)
            if is_bounded_class(constructor):
                return kind_of_bounded(*parts)
            if is_ragged_class(constructor):
                return kind_of_ragged(*parts)
            return Kind("object", items=parts, keys=keys, cls=constructor)
    raise TypeError(f"not a type: {type_!r}")


def _parameters(tree: Any) -> list[Any]:
    given = tree.args
    stars = [given.vararg] if given.vararg is not None else []
    return [*given.posonlyargs, *given.args, *stars, *given.kwonlyargs, *([given.kwarg] if given.kwarg else [])]


def _names(reached: Sequence[Specialisation]) -> dict[str, str]:
    """The names of a program's functions, by those that they were read under: some have been dropped."""
    found: dict[str, str] = {}
    for each in reached:
        base = each.function.name if each.function.name.isidentifier() else "inner"
        numbered = (base if number == 0 else f"{base}_{number}" for number in itertools.count())
        found[each.name] = next(name for name in numbered if name not in found.values())
    return found


def _calling(block: ir.Block, called: Mapping[str, str]) -> ir.Block:
    """A block whose calls go by these names."""
    ops = (replace(op, function=called[op.function]) if isinstance(op, ir.Call) else op for op in block.ops)
    return replace(block, ops=tuple(ops))
