"""The program of a batched function without types, from its source and what its names mean."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.rewrite import relabel
from pcbatch.lowering.captures.captured import names_read
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.kinds import Kind, Specialisation, Widths
from pcbatch.reading.reading import Assembly
from pcbatch.reading.recovery import all_told
from pcbatch.reading.sources import parameters_of
from pcbatch.reading.statements import imported
from pcbatch.reading.untyped.reader import Untyped
from pcbatch.reading.values import Function
from pcbatch.runtime.backends.untyped import UNKNOWN, UntypedBackend


@dataclass(frozen=True)
class UntypedProgram:
    """A program without types, and the functions of the user's that it is made of."""

    program: ir.Program
    sources: tuple[Function, ...]


def read_untyped(
    entry: BatchedFunction,
    batched_of: Callable[[Any], BatchedFunction | None],
    *,
    is_array: Callable[[Any], bool],
    takes_gradients: Callable[[Any], bool] = lambda value: False,
    is_opaque: Callable[[Any], bool] = lambda value: False,
    module_of: Callable[[str, Mapping[str, Any]], Any] = imported,
) -> UntypedProgram:
    """The "cfg" program of a batched function for arguments of any types.

    Of values of the world, `is_array` tells which are arrays, `takes_gradients` which are classes of tapes, and
    `is_opaque` of which nothing is known; `module_of` imports. Raises CompileError with what is refused whatever the
    types are.
    """
    backend: Any = UntypedBackend(lambda value: is_opaque(value) or is_array(value), takes_gradients)
    names = [each.id for each in parameters_of(entry.tree)]

    def reading(at_fault: Collection[Any]) -> UntypedProgram:
        options: Any = {"is_opaque": is_opaque, "at_fault": at_fault, "module_of": module_of}
        reader = Untyped(backend, widths=Widths(), batched_of=batched_of, **options)
        reader.statics[entry.tree] = entry.statics
        assembly = Assembly(reader, entry)
        spec, result = assembly.specialisation({name: Kind("lane", UNKNOWN) for name in names})
        assembly.type_of(result)  # which refuses what no lane can keep
        reached = assembly.reached(spec)
        functions = tuple(_function(reader, each) for each in reached)
        sources = tuple(dict.fromkeys(each.function for each in reached))
        return UntypedProgram(relabel(ir.Program("cfg", functions)), sources)

    return all_told(reading)


def _function(reader: Untyped, spec: Specialisation) -> ir.Function:
    assert spec.emitter is not None
    blocks = spec.emitter.finished()
    function = ir.Function(spec.name, spec.parameters, spec.results, blocks, cost=spec.cost, span=spec.span)
    known = {name for name, value in reader.bindings.items() if vars(builtins).get(name) is not value}
    externs = tuple(sorted(names_read(function) & known))
    return ir.Function(spec.name, spec.parameters, spec.results, blocks, externs, (), spec.cost, (), spec.span)
