"""A function read for the types of its arguments: the typed program, and what of the world it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.errors import Diagnostic, raise_all
from pcbatch.ir import program as ir
from pcbatch.ir.code import names_read
from pcbatch.ir.rewrite.relabel import relabel
from pcbatch.ir.types import NONE, StructType, TensorType, Type
from pcbatch.lowering.captures.captured import code_of, ordered_variables
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.core import NeedsConstantError, RefusedError, World
from pcbatch.reading.functions import Specialisation, WiderError, Widths
from pcbatch.reading.kinds import Kind
from pcbatch.reading.statements import Statements
from pcbatch.reading.values import Host
from pcbatch.runtime.backends.protocol import Backend

RESTARTS = 8


@dataclass(frozen=True)
class Reading:
    """What a function is for some types of arguments.

    `program` has a parameter for each array of the arguments, `parameters` says whose they are; its results are the
    arrays of a value of type `result`. `names` are the values of free names, `world` what was read to get there.
    """

    program: ir.Program
    result: Type
    parameters: Mapping[str, Sequence[str]]
    names: Mapping[str, Any]
    world: World
    origin: Mapping[str, str]
    interpreted: Mapping[str, int]


def read(
    entry: BatchedFunction,
    types: Mapping[str, Type],
    hosts: Mapping[str, Any],
    backend: Backend,
    batched_of: Callable[[Any], BatchedFunction | None],
    *,
    defaults: Mapping[str, int] | None = None,
    tapes: bool = False,
) -> Reading:
    """The reading of a batched function for arguments of `types`, `hosts` being those that are no lane's.

    `defaults` are those of `types` that have their default values, which are sizes, perhaps. Raises CompileError with
    what is refused.
    """
    widths = Widths()
    for _ in range(RESTARTS):
        reader = Statements(backend, tapes=tapes, widths=widths, batched_of=batched_of)
        try:
            return _Program(reader, entry, types, hosts).read()
        except WiderError:
            continue
        except NeedsConstantError as error:
            if not defaults:
                raise_all([error.diagnostic])
            types = {name: type_ for name, type_ in types.items() if name not in defaults}
            hosts, defaults = {**hosts, **defaults}, None
        except RefusedError as error:
            raise_all([error.diagnostic])
    raise_all([Diagnostic("PCB304", "the types of the functions that call each other do not settle", None)])
    raise AssertionError


class _Program:
    def __init__(
        self, reader: Statements, entry: BatchedFunction, types: Mapping[str, Type], hosts: Mapping[str, Any]
    ):
        self.reader, self.entry, self.types, self.hosts = reader, entry, types, hosts

    def read(self) -> Reading:
        reader, entry = self.reader, self.entry
        function = reader.function_of(entry.live)
        if function is None:
            reader.refuse("PCB100", f"the source of {entry.live.__name__} cannot be read")
        given = {name: _kind(type_) for name, type_ in self.types.items()}
        given |= {name: Kind("host", value=reader.host(value)) for name, value in self.hosts.items()}
        order = [each.id for each in _parameters(function.tree)]
        if entry.receiver is not None:
            given[order[0]] = Kind("host", value=Host(entry.receiver))
        kinds = {name: given[name] for name in order if name in given}
        reader.file, reader.node = function.file, function.tree
        spec = reader._specialisation(function, kinds, entry.cost)
        result = reader._result(spec)
        if result is None:
            reader.refuse("PCB303", f"{entry.live.__name__} never returns: every path through it calls itself", node=function.tree)
        reached = self._reached(spec)
        functions = tuple(self._function(each) for each in reached)
        program = relabel(ir.Program("cfg", functions))
        waiting = iter(spec.parameters)
        parameters = {name: [next(waiting) for _ in kind.leaves()] for name, kind in spec.kinds.items()}
        counts = {each.name: 1 for each in reached}
        origin = {each.name: each.function.name for each in reached}
        return Reading(
            program, self._type(result), parameters, dict(reader.bindings), reader.world, origin, counts
        )

    def _reached(self, spec: Specialisation) -> list[Specialisation]:
        known = {each.name: each for each in self.reader.specialisations.values()}
        found = [spec]
        for each in found:
            assert each.emitter is not None
            for block in each.emitter.layout:
                for op in block.ops:
                    if isinstance(op, ir.Call) and known[op.function] not in found:
                        found.append(known[op.function])
        return found

    def _function(self, spec: Specialisation) -> ir.Function:
        assert spec.emitter is not None
        blocks = spec.emitter.finished()
        function = ir.Function(spec.name, spec.parameters, spec.results, blocks, cost=spec.cost, span=spec.span)
        names = ordered_variables(function)
        types = spec.emitter.types
        variables = tuple(ir.Variable(name, types.get(name)) for name in names)
        externs = names_read(code_of(function)) & set(self.reader.bindings)
        return ir.Function(
            spec.name,
            spec.parameters,
            spec.results,
            blocks,
            tuple(sorted(externs - set(self.reader.world.operands))),
            variables,
            spec.cost,
            (),
            spec.span,
        )

    def _type(self, kind: Kind) -> Type:
        match kind.form:
            case "lane":
                found: Type = kind.type
                return found
            case "host" if isinstance(kind.value, Host) and kind.value.value is None:
                return NONE
            case "tuple" | "list" | "dict" | "object":
                items = tuple(map(self._type, kind.items))
                if kind.cls is not None:
                    keys = kind.cls._fields if kind.form == "tuple" else kind.keys
                    return StructType(kind.cls.__name__, items, tuple(keys), kind.cls)
                return StructType(kind.form, items, tuple(kind.keys) if kind.form == "dict" else ())
        self.reader.refuse("PCB404", "this is returned, and is no value that a lane can keep")


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
            return Kind("object", items=parts, keys=keys, cls=constructor)
    raise TypeError(f"not a type: {type_!r}")


def _parameters(tree: Any) -> list[Any]:
    given = tree.args
    stars = [given.vararg] if given.vararg is not None else []
    return [*given.posonlyargs, *given.args, *stars, *given.kwonlyargs, *([given.kwarg] if given.kwarg else [])]


__all__ = ["NeedsConstantError", "Reading", "read"]
