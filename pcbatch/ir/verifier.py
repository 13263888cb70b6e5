"""The verifier: the rules of the IR, per dialect; tests run it after every pass.

First what a program is made of, then, where that holds, what happens along its paths: calls and assignment in "cfg";
temporaries, storage and balance of stacks in "stack". Every rule is a generator of violations, one line of text each.
The third dialect's verifier is `pcbatch.ir.machine_verifier`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from string import Formatter

from pcbatch.ir.analysis.dataflow import definitely_assigned, owners, scope, variables_of
from pcbatch.ir.expressions import free_names, inputs_read
from pcbatch.ir.payload import Cast, Choose, Compute, Constant, Pack, Replace, Unpack, targets
from pcbatch.ir.printer import print_op, print_terminator
from pcbatch.ir.program import (
    Block,
    Call,
    Coded,
    Enter,
    Exit,
    Fault,
    Function,
    Jump,
    Op,
    Pop,
    Primitive,
    Program,
    Push,
    PushJump,
    Return,
    Store,
    Terminator,
    Update,
    Variable,
    reads,
    successors,
    writes,
)
from pcbatch.ir.types import Type

# -- rules -------------------------------------------------------------------------------------------------------------
# Rules for the parts of a program: names, labels, ops, their order inside a block, code and tables.
#
# First part of `pcbatch.ir.verifier`.

Violations = Iterator[str]


def nodes(function: Function) -> Iterator[tuple[Block, Op | Terminator]]:
    """Every op and terminator with its block."""
    for block in function.blocks:
        for node in (*block.ops, block.terminator):
            yield block, node


def at(function: Function, block: Block, node: Op | Terminator | None = None) -> str:
    """Return the place of a violation: `gcd, b1: t0 = a // b`."""
    match node:
        case None:
            return f"{function.name}, {block.label}"
        case Primitive() | Enter() | Exit() | Store() | Call() | Push() | Pop() | Update():
            return f"{function.name}, {block.label}: {print_op(node)}"
        case _:
            return f"{function.name}, {block.label}: {print_terminator(node)}"


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def is_name(name: str) -> bool:
    """Return whether Python accepts `name` as a variable."""
    return name.isidentifier() and not iskeyword(name)


def table(program: Program) -> list[Variable]:
    """Return the variables of all functions of `program`, in one list."""
    return [variable for function in program.functions for variable in function.variables]


# -- what a program is made of -----------------------------------------------------------------------------------------


def functions(program: Program) -> Violations:
    """Functions have blocks; names are identifiers; functions, parameters and results differ."""
    if not program.functions:
        yield "a program has at least one function"
    for name in repeated(function.name for function in program.functions):
        yield f"two functions are called {name}"
    for function in program.functions:
        if not all(map(is_name, function.name.split("."))):
            yield f"{function.name!r} is no name for a function"
        if not function.blocks:
            yield f"{function.name} has no blocks"
        if function.cost is not None and not 0 < function.cost < math.inf:
            yield f"{function.name}: a row cannot cost {function.cost}"
        for name in (*repeated(function.parameters), *repeated(function.results)):
            yield f"{function.name} has two parameters or two results called {name}"
        for name in (*variables_of(function), *function.externs, *(block.label for block in function.blocks)):
            if not is_name(name):
                yield f"{function.name}: {name!r} is no name for a variable, an extern or a label"


def labels(program: Program) -> Violations:
    """Labels are unique; targets exist and lie where control may go."""
    for label in repeated(block.label for block in program.blocks()):
        yield f"two blocks are labelled {label}"
    owner = owners(program)
    entries = {function.entry for function in program.functions if function.blocks}
    for function in program.functions:
        for block in function.blocks:
            end, where = block.terminator, at(function, block, block.terminator)
            if isinstance(end, PushJump) and end.target not in entries:
                yield f"{where}: {end.target} is not the entry of a function"
            tail_call = program.dialect == "stack" and isinstance(end, Jump) and end.target in entries
            for target in successors(end):
                if target not in owner:
                    yield f"{where}: there is no block {target}"
                elif owner[target] != function.name and not tail_call:
                    yield f"{where}: {target} lies in another function"


_FORBIDDEN: dict[str, tuple[type, ...]] = {"cfg": (Push, Pop, Update, PushJump), "stack": (Call,)}


def dialect(program: Program) -> Violations:
    """Check that no op or terminator belongs to the other dialect."""
    for function in program.functions:
        for block, node in nodes(function):
            if isinstance(node, _FORBIDDEN[program.dialect]):
                yield f"{at(function, block, node)}: {type(node).__name__} does not belong to {program.dialect!r}"


def order(program: Program) -> Violations:
    """Pops, then other ops, then pushes."""
    rank = {Pop: 0, Push: 2}
    for function in program.functions:
        for block in function.blocks:
            ranks = [rank.get(type(op), 1) for op in block.ops]
            if ranks != sorted(ranks):
                yield f"{at(function, block)}: pops come first in a block and pushes last"


def contexts(program: Program) -> Violations:
    """Every `with` block ends in the block of the program that it began in, and has nothing but statements inside."""
    for function in program.functions:
        for block in function.blocks:
            depth = 0
            for op in block.ops:
                depth += isinstance(op, Enter) - isinstance(op, Exit)
                if depth < 0:
                    yield f"{at(function, block, op)}: no `with` block has begun"
                    break
                if depth and not isinstance(op, Primitive | Enter | Exit | Update):
                    yield f"{at(function, block, op)}: {type(op).__name__} cannot be inside a `with` block"
            if depth > 0:
                yield f"{at(function, block)}: a `with` block does not end"


def operands(program: Program) -> Violations:
    """Inputs and outputs agree with the code, messages with their arguments; outputs differ."""
    for function in program.functions:
        variables = scope(program, function)
        listed = {each.name: each.type for each in (function.variables if program.dialect == "cfg" else table(program))}
        for block, node in nodes(function):
            for name in repeated(writes(node)):
                yield f"{at(function, block, node)}: {name} is given two values"
            match node:
                case Primitive() | Enter() | Push() | Update():
                    complaints = about_payload(node, variables, listed if isinstance(node.code, Cast) else {})
                case Fault(message, arguments):
                    complaints = about_message(message, len(arguments))
                case _:
                    continue
            for complaint in complaints:
                yield f"{at(function, block, node)}: {complaint}"


def about_payload(op: Coded, variables: frozenset[str], types: Mapping[str, Type | None]) -> Violations:
    """Yield the violations of one op's payload, where `variables` are in scope; a Cast has the variable's type."""
    match op.code:
        case Compute():
            yield from _about_expression(op, op.code, variables)
            return
        case Constant():
            expected = (1, 0)
        case Choose():
            expected = (1, 3)
        case Pack():
            expected = (1, max(1, len(op.inputs)))
        case Unpack(pattern):
            expected = (targets(pattern), 1)
        case Replace():
            expected = (1, 2)
        case _:
            expected = (1, 1)
    if (len(op.outputs), len(op.inputs)) != expected:
        yield f"{len(op.outputs)} outputs and {len(op.inputs)} inputs, not {expected[0]} and {expected[1]}"
    if isinstance(op, Enter):
        yield "a `with` block begins with an expression"
    if isinstance(op.code, Cast) and types.get(op.outputs[0]) not in (None, op.code.type):
        yield f"{op.outputs[0]} is {types[op.outputs[0]]}"


def _about_expression(op: Coded, code: Compute, variables: frozenset[str]) -> Violations:
    """Check that an expression reads each input, in their order, no variable by its name, and has targets."""
    if inputs_read(code.expression) != tuple(range(len(op.inputs))):
        yield f"the expression reads inputs {inputs_read(code.expression)}, the op has {len(op.inputs)}"
    for name in repeated(op.inputs):
        yield f"{name} is two inputs"
    for name in sorted(variables.intersection(free_names(code.expression))):
        yield f"{name} is a variable, and no input of the op"
    if code.pattern is not None and targets(code.pattern) != len(op.outputs):
        yield f"{len(op.outputs)} outputs, not {targets(code.pattern)}"
    elif code.pattern is None and len(op.outputs) > 1:
        yield f"{len(op.outputs)} outputs of one value"
    if not op.outputs and isinstance(op, Push):
        yield "nothing is pushed"


def about_message(message: str, arguments: int) -> Violations:
    """Yield the violations in the message of a fault with so many arguments."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(message) if name is not None]
    except ValueError as error:
        yield f"the message is no template: {error}"
        return
    if len(fields) != arguments:
        yield f"the message has {len(fields)} fields for {arguments} arguments"


def tables(program: Program) -> Violations:
    """Lists of variables are complete, externs sorted and apart from variables, made names are variables."""
    for function in program.functions:
        for name in repeated(variable.name for variable in function.variables):
            yield f"{function.name}: {name} is listed twice"
        for variable in function.variables:
            if variable.reason != " ".join(variable.reason.split()):
                yield f"{function.name}: the reason of {variable.name} is not one line of words"
        if len({*function.made}) < len(function.made) or not scope(program, function) >= {*function.made}:
            yield f"{function.name}: what is made is no list of its variables"
        if function.externs != tuple(sorted(set(function.externs))):
            yield f"{function.name}: externs are not sorted"
        for name in sorted(scope(program, function).intersection(function.externs)):
            yield f"{function.name}: {name} is an extern and a variable"
        listed = {variable.name for variable in (function.variables if program.dialect == "cfg" else table(program))}
        for name in variables_of(function):
            if listed and name not in listed:
                yield f"{function.name}: {name} is missing from the list of variables"


# -- verifier ----------------------------------------------------------------------------------------------------------


class IRError(ValueError):
    """A program breaks rules of the IR: a bug of a pass, never of the user. `violations` lists them all."""

    def __init__(self, violations: Sequence[str]):
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


Stage = tuple[Callable[[Program], Violations], ...]


# -- along the paths of "cfg" ------------------------------------------------------------------------------------------


def calls(program: Program) -> Violations:
    """Callees exist and agree with their calls on the number of arguments and results, and on their types."""
    types = {function.name: {v.name: v.type for v in function.variables} for function in program.functions}
    signatures = {f.name: (len(f.parameters), len(f.results)) for f in program.functions}
    for function in program.functions:
        for block, node in nodes(function):
            if not isinstance(node, Call):
                continue
            if node.function not in signatures:
                yield f"{at(function, block, node)}: there is no function {node.function}"
            elif signatures[node.function] != (len(node.arguments), len(node.outputs)):
                takes, gives = signatures[node.function]
                yield f"{at(function, block, node)}: {node.function} takes {takes} arguments and gives {gives} results"
            else:
                callee = program.function(node.function)
                mine, theirs = (*node.arguments, *node.outputs), (*callee.parameters, *callee.results)
                for name, other in zip(mine, theirs, strict=True):
                    one, two = types[function.name].get(name), types[callee.name].get(other)
                    if one != two and None not in (one, two):
                        yield f"{at(function, block, node)}: {name} is {one}, {other} of {callee.name} is {two}"


def assignment(program: Program) -> Violations:
    """A variable is assigned on every path to where it is read, results on every path to a return."""
    for function in program.functions:
        facts = definitely_assigned(function)
        for block in function.blocks:
            assigned = facts[block.label].start
            for node in (*block.ops, block.terminator):
                needed = function.results if isinstance(node, Return) else reads(node)
                for name in dict.fromkeys(needed):
                    if name not in assigned:
                        yield f"{at(function, block, node)}: {name} is not assigned on every path"
                assigned |= set(writes(node))


# -- along the paths of "stack" ----------------------------------------------------------------------------------------


def temporaries(program: Program) -> Violations:
    """Temporaries are assigned in their block before they are read; whatever is read is assigned somewhere."""
    listed = {variable.name for variable in table(program) if variable.storage == "temporary"}
    assigned = {name for function in program.functions for name in function.parameters}
    kept = assigned.union(*(function.results for function in program.functions))
    local = set(listed)
    for function in program.functions:
        for _, node in nodes(function):
            if not isinstance(node, Store | Pop):  # these need a value to be there
                assigned |= set(writes(node))
            if isinstance(node, Primitive):
                local |= set(node.outputs)
            elif isinstance(node, Push | Pop | Update):
                kept |= set(writes(node))
    for name in sorted((kept & local) - listed):
        yield f"{name} is assigned both by a primitive, as a temporary, and as a variable that outlives its block"
    for name in sorted(listed.intersection(program.entry.results)):
        yield f"{program.entry.name}: the result {name} is a temporary"
    for function in program.functions:
        for block in function.blocks:
            defined: set[str] = set()
            for node in (*block.ops, block.terminator):
                needed = function.results if isinstance(node, Return) else reads(node)
                for name in dict.fromkeys(needed):
                    if name not in assigned:
                        yield f"{at(function, block, node)}: {name} is never assigned"
                    elif name in local and name not in defined and not isinstance(node, Return):
                        yield f"{at(function, block, node)}: the temporary {name} is not assigned before in this block"
                defined |= set(writes(node))


def storage(program: Program) -> Violations:
    """Check that only variables on stacks are pushed and popped, and that shared ones are never assigned."""
    for name in repeated(variable.name for variable in dict.fromkeys(table(program))):
        yield f"{name} is listed with two types, storage classes or reasons"
    kinds = {variable.name: variable.storage for variable in table(program)}
    for function in program.functions:
        for block, node in nodes(function):
            for name in writes(node):
                kind = kinds.get(name)
                if isinstance(node, Push | Pop) and kind not in (None, "stack", "cached stack"):
                    yield f"{at(function, block, node)}: {name} is stored as {kind!r}, which has no stack"
                elif kind == "shared":
                    yield f"{at(function, block, node)}: {name} is shared by all lanes and cannot be assigned"


def balance(program: Program) -> Violations:
    """Pushes and pops of each variable cancel out along every path from a function's entry to where it is left."""
    owner = owners(program)
    for function in program.functions:
        blocks = {block.label: block for block in function.blocks}
        heights: dict[str, Counter[str]] = {function.entry: Counter()}
        work = [function.entry]
        while work:
            block = blocks[work.pop()]
            height = heights[block.label].copy()
            for op in block.ops:
                if isinstance(op, Push | Pop):
                    height.update(dict.fromkeys(writes(op), 1 if isinstance(op, Push) else -1))
                    for name in writes(op):
                        if height[name] < 0:
                            yield f"{at(function, block, op)}: {name} was not pushed before in {function.name}"
            targets = successors(block.terminator)
            inside = [target for target in targets if owner[target] == function.name]
            if isinstance(block.terminator, Return) or len(inside) < len(targets):
                for name in sorted(name for name, count in height.items() if count > 0):
                    yield f"{at(function, block, block.terminator)}: {name} is left on its stack"
            for target in inside:
                if target not in heights:
                    heights[target] = height
                    work.append(target)
                elif heights[target] != height:
                    names = sorted(n for n in height.keys() | heights[target] if height[n] != heights[target][n])
                    yield f"{function.name}, {target}: paths meet with unequal stacks of {', '.join(names)}"


# A stage may rely on the rules of those before it.
_COMMON: tuple[Stage, ...] = (
    (functions,),
    (labels, dialect, order, contexts, operands, tables),
)
_STAGES: dict[str, tuple[Stage, ...]] = {
    "cfg": (*_COMMON, (calls, assignment)),
    "stack": (*_COMMON, (temporaries, storage, balance)),
}


def verify(program: Program) -> None:
    """Raise IRError, with every violation, where `program` breaks the rules of its dialect."""
    for stage in _STAGES[program.dialect]:
        if violations := [violation for rule in stage for violation in rule(program)]:
            raise IRError(violations)
