"""Casts: where a value is of a weaker type than its variable, and leaves the ops that saw it so, it is cast.

A variable's type is the join of all that is assigned to it: a weak 7 may end in a float32. The ops up to the next
store, call or end of the block compute with the 7, as Python would; who comes behind them reads a float32. Since that
is an op, the ends of blocks mean nothing, and passes may take them away. What is stored is cast to the dtype of its
array.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.payload import Cast, Copy, Pack
from pcbatch.ir.types import StructType, TensorType, Type
from pcbatch.lowering.captures.captured import code_of, function_variables
from pcbatch.lowering.inference.constants import candidates, remade
from pcbatch.lowering.inference.instances import Instance


class Casting:
    """Puts the casts of one instance where they belong; `types` takes those of the variables made for that."""

    def __init__(self, instance: Instance, types: dict[str, Type | None]):
        function = instance.function
        words = (word for code in code_of(function) for word in code.words)
        taken = {*function_variables(function), *function.externs, *words, *instance.users.values(), *instance.statics}
        self.fresh = (name for name in map("t{}".format, itertools.count()) if name not in taken)
        self.instance = instance
        self.types = types
        self.paths = candidates(function).paths if any(instance.bound.values()) else {}

    def block(self, block: ir.Block, callees: Mapping[int, Instance]) -> Iterator[ir.Op]:
        """The ops of `block` with casts; `callees` are the instances that its calls call, by place."""
        run: list[ir.Op] = []
        for place, op in enumerate(block.ops):
            if isinstance(op, ir.Call):
                yield from run
                yield from self._call(op, callees[place])
                run = []
                continue
            run.append(op)
            if isinstance(op, ir.Store):
                run[-1:] = self._store(op)
            given = self.instance.assigned.get((block.label, place))
            if given is not None or isinstance(op, ir.Store):
                run[:0] = self._constants(block.label, place, run[0].span)
                for name, found in (given or {}).items():
                    self._cast(run, name, found, self.instance.type(name))
                yield from run
                run = []
        yield from run

    def _constants(self, label: str, place: int, span: Span | None) -> list[ir.Op]:
        """The ops that make the constants which a run of statements reads."""
        names = sorted(self.instance.bound.get((label, place), ()))
        found = [(name, self.instance.bindings[name]) for name in names]
        return [remade(name, each.known, self.paths.get(name, {}).get(each.span), span) for name, each in found]

    def _store(self, store: ir.Store) -> Iterator[ir.Op]:
        """A store of a value that has the dtype of the array, as NumPy casts what is stored."""
        array, value = self.instance.type(store.array), self.instance.type(store.value)
        if isinstance(array, TensorType) and isinstance(value, TensorType) and not value.weak:
            wanted = TensorType(array.dtype, value.shape)
            if wanted != value:
                name = self._name(wanted)
                yield _cast(name, store.value, wanted, store.span)
                store = replace(store, value=name)
        yield store

    def _call(self, call: ir.Call, callee: Instance) -> Iterator[ir.Op]:
        """A call of which arguments and results have the types that the callee says."""
        arguments: list[str] = []
        for argument, parameter in zip(call.arguments, callee.function.parameters, strict=True):
            wanted = None if parameter in callee.fixed else callee.type(parameter)
            name = argument
            if _differ(self.instance.type(argument), wanted):
                name = self._name(wanted)
                yield _cast(name, argument, wanted, call.span)
            arguments.append(name)
        outputs: list[str] = []
        behind: list[ir.Op] = []
        for output, found in zip(call.outputs, callee.results, strict=True):
            name, wanted = output, self.instance.type(output)
            if _differ(found, wanted):
                name = self._name(found)
                behind.append(_cast(output, name, wanted, call.span))
            outputs.append(name)
        yield replace(call, outputs=tuple(outputs), arguments=tuple(arguments))
        yield from behind

    def _cast(self, run: list[ir.Op], name: str, found: Type | None, wanted: Type | None) -> None:
        """Have `run` leave `name`, to which it gives a value of type `found`, with its type."""
        if not _differ(found, wanted):
            return
        place = max(at for at, op in enumerate(run) if name in ir.writes(op))
        is_read = any(name in ir.reads(op) for op in run[place + 1 :])
        match run[place]:
            case ir.Primitive(inputs=(source,), code=Copy()) as op if not is_read:
                run[place] = _cast(name, source, wanted, op.span)
            case ir.Primitive(code=Pack()) as op if not is_read:
                run[place : place + 1] = self._pack(op, found, wanted)
            case op:
                run.append(_cast(name, name, wanted, op.span))

    def _pack(self, op: ir.Primitive, found: Type | None, wanted: Type | None) -> list[ir.Op]:
        """`op`, which packs parts of these types, with casts of the parts in front of it."""
        assert isinstance(found, StructType) and isinstance(wanted, StructType)
        casts: dict[tuple[str, str], ir.Op] = {}
        inputs: list[str] = []
        for name, old, new in zip(op.inputs, found.items, wanted.items, strict=True):
            if old != new and (name, str(new)) not in casts:
                casts[name, str(new)] = _cast(self._name(new), name, new, op.span)
            inputs.append(ir.writes(casts[name, str(new)])[0] if old != new else name)
        return [*casts.values(), replace(op, inputs=tuple(inputs))]

    def _name(self, type_: Type | None) -> str:
        name = next(self.fresh)
        self.types[name] = type_
        return name


def _differ(found: Type | None, wanted: Type | None) -> bool:
    """Whether a value of type `found` is none of type `wanted`, both being known."""
    return found is not None and wanted is not None and found != wanted


def _cast(target: str, source: str, type_: Type | None, span: Span | None) -> ir.Primitive:
    assert type_ is not None
    return ir.Primitive((target,), (source,), Cast(type_), span)
