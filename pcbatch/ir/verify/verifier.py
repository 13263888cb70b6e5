"""The verifier: the rules of the IR, per dialect; tests run it after every pass.

First what a program is made of (`pcbatch.ir.verify.rules`), then, where that holds, what happens along its paths: calls
and assignment in "cfg"; temporaries, storage and balance of stacks in "stack". Every rule is a generator of violations,
one line of text each. The third dialect's verifier is `pcbatch.ir.verify.machine`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pcbatch.ir.analysis.callgraph import owners
from pcbatch.ir.analysis.dataflow import definitely_assigned
from pcbatch.ir.program import Call, Pop, Primitive, Program, Push, Return, Store, Update, reads, successors, writes
from pcbatch.ir.verify import rules
from pcbatch.ir.verify.rules import Violations, at, nodes, repeated, table


class IRError(ValueError):
    """A program breaks rules of the IR: a bug of a pass, never of the user. `violations` lists them all."""

    def __init__(self, violations: Sequence[str]):
        self.violations = tuple(violations)
        super().__init__("\n".join(self.violations))


Stage = tuple[Callable[[Program], rules.Violations], ...]


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
    (rules.functions,),
    (rules.labels, rules.dialect, rules.order, rules.contexts, rules.operands, rules.tables),
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
