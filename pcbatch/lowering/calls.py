"""Calls to stacks: from the "cfg" dialect to the "stack" dialect, the caller saving (Radul et al. 2020, section 3).

The lowering is naive on purpose: every assignment updates a stored top, and a call saves every variable that its
caller has assigned. The passes of `pcbatch.optimize` take away what is not needed, each visibly. Only tail calls are
treated here, since `max_depth` must not count them under any set of passes: arguments become updates and the call a
jump.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import definitely_assigned
from pcbatch.ir.payload import Copy
from pcbatch.ir.rewrite import relabel, renamed
from pcbatch.ir.types import Type
from pcbatch.lowering.captures.captured import free_roots, function_variables, ordered_variables


def lower_calls(program: ir.Program, reserved: frozenset[str] = frozenset()) -> ir.Program:
    """The stack program of a cfg program; no variable gets a name in `reserved` or that some code reads as free."""
    tails = {(f.name, block.label) for f in program.functions for block in f.blocks if is_tail_call(program, f, block)}
    names = unique_names(program, reserved, _shared_results(program, tails))
    functions = tuple(_Lowering(program, function, names, tails).function() for function in program.functions)
    return relabel(ir.Program("stack", functions))


def is_tail_call(program: ir.Program, function: ir.Function, block: ir.Block) -> bool:
    """Return whether the block ends by returning what another function returns, in a variable of equal type."""
    if not isinstance(block.terminator, ir.Return) or not block.ops:
        return False
    call = block.ops[-1]
    if not isinstance(call, ir.Call) or call.outputs != function.results:
        return False
    callee = program.function(call.function)
    mine, theirs = types_of(function), types_of(callee)
    return [mine.get(r) for r in function.results] == [theirs.get(r) for r in callee.results]


def types_of(function: ir.Function) -> Mapping[str, Type | None]:
    """Variable name to type."""
    return {variable.name: variable.type for variable in function.variables}


def _shared_results(program: ir.Program, tails: set[tuple[str, str]]) -> Mapping[str, str]:
    """Function name to the representative of its class: functions linked by tail calls share their result variables."""
    leader = {function.name: function.name for function in program.functions}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for function in program.functions:
        for block in function.blocks:
            if (function.name, block.label) in tails:
                call = block.ops[-1]
                assert isinstance(call, ir.Call)
                leader[find(call.function)] = find(function.name)
    return {name: find(name) for name in leader}


@dataclass
class _Lowering:
    """Lowers one function."""

    program: ir.Program
    source: ir.Function
    names: Mapping[tuple[str, str], str]
    tails: set[tuple[str, str]]

    def __post_init__(self) -> None:
        mine = self.source.name
        self.mapping = {local: name for (function, local), name in self.names.items() if function == mine}
        self.types = {self.mapping[name]: type_ for name, type_ in types_of(self.source).items()}
        self.pushed: dict[str, None] = {}
        self.copies = 0

    def function(self) -> ir.Function:
        assigned = definitely_assigned(self.source)
        blocks = [b for block in self.source.blocks for b in self._blocks(block, set(assigned[block.label].start))]
        variables = tuple(
            ir.Variable(name, self.types.get(name), "stack" if name in self.pushed else "register")
            for name in (*dict.fromkeys(self.mapping.values()), *self._fresh(blocks))
        )
        return replace(
            self.source,
            parameters=tuple(self.mapping[name] for name in self.source.parameters),
            results=tuple(self.mapping[name] for name in self.source.results),
            blocks=tuple(blocks),
            variables=variables,
            made=(*(self.mapping[name] for name in self.source.made), *self._fresh(blocks)),
        )

    def _fresh(self, blocks: list[ir.Block]) -> list[str]:
        known = set(self.names.values())
        written = dict.fromkeys(name for block in blocks for op in block.ops for name in ir.writes(op))
        return [name for name in written if name not in known]

    def _blocks(self, block: ir.Block, assigned: set[str]) -> Iterator[ir.Block]:
        """The block, split after each of its calls."""
        ops: list[ir.Op] = []
        label, part, sync = block.label, 0, block.sync
        for op in block.ops:
            if isinstance(op, ir.Call):
                if op is block.ops[-1] and (self.source.name, block.label) in self.tails:
                    arguments = self._arguments(op)
                    entry = self.program.function(op.function).entry
                    yield ir.Block(label, (*ops, *arguments), ir.Jump(entry, turn=True, span=op.span), sync)
                    return
                part += 1
                back = f"{block.label}.{part}"
                saved = self._saved(assigned)
                yield ir.Block(label, (*ops, *self._enter(op, saved)), self._push_jump(op, back), sync)
                label, sync, ops = back, False, [*self._pops(saved, op), *self._outputs(op)]
            else:
                ops.append(self._plain(op))
            assigned |= set(ir.writes(op))
        yield ir.Block(label, tuple(ops), renamed(block.terminator, self.mapping, {}), sync)

    def _plain(self, op: ir.Op) -> ir.Op:
        op = renamed(op, self.mapping, self.mapping)
        if isinstance(op, ir.Primitive) and op.outputs:  # what is there for its effect gives no variable a value
            return ir.Update(op.outputs, op.inputs, op.code, op.span)
        return op

    # -- one call ------------------------------------------------------------------------------------------------------

    def _saved(self, assigned: set[str]) -> list[str]:
        """The variables to save: all that are assigned when the call is made, but results (set on the way out)."""
        own = function_variables(self.source) - set(self.source.results)
        return [self.mapping[name] for name in self._order(own) if name in assigned]

    def _order(self, own: frozenset[str]) -> list[str]:
        return [name for name in self.mapping if name in own]

    def _bindings(self, call: ir.Call) -> list[tuple[str, str]]:
        """`(parameter of the callee, argument variable)`, both by their unique names."""
        callee = self.program.function(call.function)
        parameters = [self.names[callee.name, parameter] for parameter in callee.parameters]
        return list(zip(parameters, self._map(call.arguments), strict=True))

    def _copied(self, call: ir.Call) -> tuple[list[ir.Op], list[tuple[str, str]]]:
        """Copies of arguments that binding parameters one by one would overwrite, and bindings that read them."""
        bindings = self._bindings(call)
        parameters = {parameter for parameter, _ in bindings}
        copies: list[ir.Op] = []
        safe: list[tuple[str, str]] = []
        for parameter, argument in bindings:
            if argument in parameters and argument != parameter:
                copy = self._copy_name()
                self.types[copy] = self.types.get(argument)
                copies.append(_copy(ir.Update, copy, argument, call))
                argument = copy
            safe.append((parameter, argument))
        return copies, safe

    def _copy_name(self) -> str:
        taken = set(self.names.values())
        while (name := f"{self.source.name}_argument{self.copies}") in taken:
            self.copies += 1
        self.copies += 1
        return name

    def _arguments(self, call: ir.Call) -> list[ir.Op]:
        """A tail call: every parameter gets its argument, nothing is saved."""
        copies, bindings = self._copied(call)
        return [*copies, *(_copy(ir.Update, parameter, argument, call) for parameter, argument in bindings)]

    def _enter(self, call: ir.Call, saved: list[str]) -> list[ir.Op]:
        copies, bindings = self._copied(call)
        given = dict(bindings)
        self.pushed.update(dict.fromkeys(saved))
        updates = [_copy(ir.Update, p, a, call) for p, a in bindings if p not in saved]
        pushes = [_copy(ir.Push, name, given.get(name, name), call) for name in saved]
        return [*copies, *updates, *pushes]

    def _push_jump(self, call: ir.Call, back: str) -> ir.PushJump:
        return ir.PushJump(self.program.function(call.function).entry, back, call.span)

    def _pops(self, saved: list[str], call: ir.Call) -> list[ir.Op]:
        return [ir.Pop(tuple(saved), call.span)] if saved else []

    def _outputs(self, call: ir.Call) -> list[ir.Op]:
        callee = self.program.function(call.function)
        results = [self.names[callee.name, result] for result in callee.results]
        pairs = zip(self._map(call.outputs), results, strict=True)
        return [_copy(ir.Update, output, result, call) for output, result in pairs]

    def _map(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.mapping[name] for name in names)


def _copy(kind: type[ir.Update] | type[ir.Push], target: str, source: str, call: ir.Call) -> ir.Update | ir.Push:
    return kind((target,), (source,), Copy(), call.span)


def unique_names(
    program: ir.Program, reserved: frozenset[str], result_class: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    """`(function, variable) -> unique name`.

    A variable keeps its name unless two functions have it, or some code reads that name as free (or it is `reserved`);
    then it is headed by its function's name. Functions of one `result_class` share the names of their results.
    """
    ordered = {function.name: ordered_variables(function) for function in program.functions}
    count = Counter(name for variables in ordered.values() for name in variables)
    clashing = free_roots(program) | reserved
    clashing |= {name for name, times in count.items() if times > 1}
    taken = set(clashing)
    names: dict[tuple[str, str], str] = {}
    for function in program.functions:
        leader = program.function(result_class[function.name])
        for variable in ordered[function.name]:
            if variable in function.results and leader is not function:
                continue
            name, number = variable, 0
            while name in taken or (name in clashing):
                name = f"{function.name}_{variable}" + (f"_{number}" if number else "")
                number += 1
            taken.add(name)
            names[function.name, variable] = name
    for function in program.functions:
        leader = program.function(result_class[function.name])
        for result, shared in zip(function.results, leader.results, strict=True):
            names[function.name, result] = names[leader.name, shared]
    return names
