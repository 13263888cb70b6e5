"""The typed program, put together from instances: functions named and blocks labelled afresh, variables typed.

What is decided now is gone from it: branches with one arm, static parameters (the code reads their values as it reads
captured ones), and what only served to find static values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pcbatch.errors import Diagnostic, Span, raise_all
from pcbatch.ir import program as ir
from pcbatch.ir.code import copy_of, names_read
from pcbatch.ir.rewrite.relabel import relabel, retarget
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.types import Type, records
from pcbatch.lowering.captures.captured import code_of, function_variables, ordered_variables
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.inference import complaints
from pcbatch.lowering.inference.casts import Casting
from pcbatch.lowering.inference.instances import Instance, reachable
from pcbatch.lowering.inference.static import Static
from pcbatch.lowering.inference.webs import join_webs


@dataclass(frozen=True)
class Typed:
    """The typed program, with which function of the untyped one each of its functions is an instance of.

    `environment` has the meaning of the names in their code.
    """

    program: ir.Program
    origin: Mapping[str, str]
    environment: Environment
    result: Type | None = None
    """The type of the value of which the program's results are the leaves, if they are no values of their own."""


def assemble(root: Instance, environment: Environment, lenient: frozenset[Span]) -> Typed:
    """The program of all instances that `root` reaches; `lenient` are statements as in `Environment`."""
    order = reachable(root)
    fresh: dict[int, str] = {}
    for instance in order:
        base, count = instance.function.name, 0
        name = base
        while name in fresh.values():
            count += 1
            name = f"{base}_{count}"
        fresh[id(instance)] = name
    functions = tuple(_function(instance, fresh) for instance in order)
    raise_all(_ambiguous(functions))
    origin = {fresh[id(instance)]: instance.function.name for instance in order}
    values = {fresh[id(i)]: {name: known.value for name, known in i.fixed.items()} for i in order}
    return Typed(relabel(ir.Program("cfg", functions)), origin, environment.specialised(origin, values, lenient))


def _ambiguous(functions: Sequence[ir.Function]) -> Iterator[Diagnostic]:
    """That two classes of a program have one name: a record is made anew by the name of its class."""
    known: dict[str, type] = {}
    for function in functions:
        for variable in function.variables:
            for record in records(variable.type) if variable.type is not None else ():
                if known.setdefault(record.__name__, record) is not record:
                    yield complaints.two_classes(record, known[record.__name__], variable.name, function)
                    return


def _function(instance: Instance, fresh: Mapping[int, str]) -> ir.Function:
    name = fresh[id(instance)]
    types: dict[str, Type | None] = {}
    casting = Casting(instance, types)
    blocks = tuple(
        replace(
            block,
            label=f"{name}.{block.label}",  # apart from the labels of other instances of this function
            ops=tuple(_ops(instance, block, casting, fresh)),
            terminator=retarget(_terminator(instance, block), lambda label: f"{name}.{label}"),
        )
        for block in instance.function.blocks
        if block.label in instance.reached
    )
    parameters = tuple(each for each in instance.function.parameters if each not in instance.fixed)
    function = replace(instance.function, name=name, parameters=parameters, blocks=blocks)
    function = _without_unread(function, instance)
    if instance.fixed:
        function = _with_values(function, instance, types)
    externs = tuple(sorted(names_read(code_of(function)) & {*function.externs, *instance.fixed}))
    function = replace(function, externs=externs)
    types.update({each: instance.type(each) for each in ordered_variables(function) if each not in types})
    if instance.users:
        joined = join_webs(function, instance.users, types.__getitem__)
        function, types = joined.function, joined.types
    listed = tuple(ir.Variable(each, types[each]) for each in ordered_variables(function))
    before = {*function_variables(instance.function), *instance.users.values()}
    made = tuple(v.name for v in listed if v.name in function.made or v.name not in before)
    return replace(function, variables=listed, made=made)


def _ops(instance: Instance, block: ir.Block, casting: Casting, fresh: Mapping[int, str]) -> Iterator[ir.Op]:
    """The ops of a block, with casts; calls name instances and hand over what is no static parameter's."""
    calls = (place for place, op in enumerate(block.ops) if isinstance(op, ir.Call))
    callees = {place: instance.calls[block.label, place] for place in calls}
    waiting = iter(callees.values())
    stores = {place: instance.part_stores.get((block.label, place)) for place in range(len(block.ops))}
    block = replace(block, ops=tuple(stores[place] or op for place, op in enumerate(block.ops)))
    for op in casting.block(block, callees):
        if isinstance(op, ir.Call):
            callee = next(waiting)
            pairs = zip(callee.function.parameters, op.arguments, strict=True)
            given = tuple(argument for parameter, argument in pairs if parameter not in callee.fixed)
            yield replace(op, function=fresh[id(callee)], arguments=given)
        else:
            yield op


def _terminator(instance: Instance, block: ir.Block) -> ir.Terminator:
    if block.label in instance.decided:
        return ir.Jump(instance.decided[block.label], span=block.terminator.span)
    return block.terminator


def _with_values(function: ir.Function, instance: Instance, types: dict[str, Type | None]) -> ir.Function:
    """`function` with its static parameters as free names; what is no code reads copies, whose `types` are noted."""
    static = instance.fixed
    taken = {*function_variables(function), *function.externs, *static}

    def copies(node: ir.Op | ir.Terminator) -> dict[str, str]:
        """The static parameters that `node` reads, each with the name of a copy."""
        made: dict[str, str] = {}
        for name in dict.fromkeys(each for each in ir.reads(node) if each in static):
            numbered = (f"{name}_{number}" for number in itertools.count(1))
            made[name] = next(each for each in numbered if each not in taken)
            taken.add(made[name])
            types[made[name]] = instance.type(name)
        return made

    blocks = []
    for block in function.blocks:
        ops: list[ir.Op] = []
        for op in block.ops:
            if isinstance(op, ir.Primitive | ir.Enter):
                left = tuple(dict.fromkeys(each for each in op.inputs if each not in static))
                ops.append(op if len(left) == len(op.inputs) else replace(op, inputs=left, code=ir.statement(op)))
            else:
                made = copies(op)
                ops += [*_copying(made, op.span), renamed(op, made, {})]
        made = copies(block.terminator)
        ops += _copying(made, block.terminator.span)
        blocks.append(replace(block, ops=tuple(ops), terminator=renamed(block.terminator, made, {})))
    return replace(function, blocks=tuple(blocks))


def _copying(made: Mapping[str, str], span: Span | None) -> list[ir.Op]:
    return [ir.Primitive((copy,), (), copy_of(copy, name), span) for name, copy in made.items()]


def _without_unread(function: ir.Function, instance: Instance) -> ir.Function:
    """`function` without assignments of known values that nothing reads any more."""
    blocks = function.blocks
    while True:
        nodes = [node for block in blocks for node in (*block.ops, block.terminator)]
        read = {name for node in nodes for name in ir.reads(node)} | set(function.results)

        left = tuple(
            replace(block, ops=tuple(op for op in block.ops if not _is_unread(op, read, instance))) for block in blocks
        )
        if left == blocks:
            return replace(function, blocks=blocks)
        blocks = left


def _is_unread(op: ir.Op, read: set[str], instance: Instance) -> bool:
    is_known = all(isinstance(instance.known(name), Static) and name not in read for name in ir.writes(op))
    return isinstance(op, ir.Primitive) and bool(op.outputs) and is_known
