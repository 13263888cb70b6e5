"""Variables that do not live across a call that may change them have no stack.

The naive lowering saves all of a caller's variables around every call. A save is needed only for a variable that is
read after the call and that the call may change: one that some block which can run before it comes back writes. So a
call that cannot re-enter its caller saves nothing, and a parameter that the whole recursion passes on unchanged is
never saved.
"""

from __future__ import annotations

from dataclasses import replace

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Analysis, call_graph, components, owners, solve
from pcbatch.ir.rewrite import map_blocks, map_variables, popped, pushed, restore_storage, without_pops


def save_only_live(program: ir.Program) -> ir.Program:
    """Drop the saves of variables that are not read after the call, or that nothing in the call changes."""
    live = _live_behind_pops(program)
    changed = _changed_by_function(program)
    owner = owners(program)
    kept_by_call: dict[str, frozenset[str]] = {}
    kept_coming_back: dict[str, frozenset[str]] = {}
    reasons: dict[str, str] = {}
    for block in program.blocks():
        call = block.terminator
        if isinstance(call, ir.PushJump):
            changing = [op for op in block.ops if isinstance(op, ir.Push) and not ir.is_identity(op)]
            arguments = {name for op in changing for name in op.outputs}
            may_change = changed[owner[call.target]] | arguments
            kept = frozenset(pushed(block)) & live[call.back] & may_change
            kept_by_call[block.label] = kept_coming_back[call.back] = kept
            where = f"the call on line {call.span.line}" if call.span is not None else f"the call in {block.label}"
            for name in pushed(block):
                if name in kept:
                    reasons.setdefault(name, f"read after {where}, which may change it")

    def rewrite(function: ir.Function, block: ir.Block) -> ir.Block:
        dropped = frozenset(popped(block)) - kept_coming_back.get(block.label, frozenset())
        ops = list(without_pops(block.ops, dropped))
        kept = kept_by_call.get(block.label, frozenset())
        unsaved = [op for op in ops if isinstance(op, ir.Push) and not kept & set(op.outputs)]
        updates = [ir.Update(op.outputs, op.inputs, op.code, op.span) for op in unsaved if not ir.is_identity(op)]
        pushes = [op for op in ops if isinstance(op, ir.Push) and op not in unsaved]
        others = [op for op in ops if not isinstance(op, ir.Push)]
        return replace(block, ops=(*others, *updates, *pushes))

    result = restore_storage(map_blocks(program, rewrite), "not read after a call that may change it")
    return map_variables(result, lambda v: replace(v, reason=reasons[v.name]) if v.storage == "stack" else v)


def _live_behind_pops(program: ir.Program) -> dict[str, frozenset[str]]:
    """The variables, for each block, that may be read in its function before they are written, its pops apart.

    A call is looked at from its caller: pushing neither reads nor ends the life of what it saves, and popping brings
    it back, so a variable is live across the call just where it is live behind it.
    """

    def transfer(block: ir.Block, live: frozenset[str]) -> frozenset[str]:
        live = live | set(ir.reads(block.terminator))
        for op in reversed(block.ops):
            match op:
                case ir.Pop():
                    continue
                case ir.Push(outputs=outputs, inputs=inputs):
                    live = live | (set(inputs) if not ir.is_identity(op) else parameters[block.label] & set(outputs))
                case _:
                    live = live.difference(ir.writes(op)) | set(ir.reads(op))
        return live

    owner = owners(program)
    callee = {
        block.label: owner[block.terminator.target]
        for block in program.blocks()
        if isinstance(block.terminator, ir.PushJump)
    }
    parameters = {label: frozenset(program.function(name).parameters) for label, name in callee.items()}
    blocks = list(program.blocks())
    results = {function.name: frozenset(function.results) for function in program.functions}
    exits = {block.label: results[owner[block.label]] for block in blocks if isinstance(block.terminator, ir.Return)}
    # a tail call hands its arguments to the callee's parameters, which are live there
    solved = solve(blocks, Analysis("backward", exits, frozenset(), frozenset.union, transfer))
    return {label: facts.start for label, facts in solved.items()}


def _changed_by_function(program: ir.Program) -> dict[str, frozenset[str]]:
    """Return the variables that a call of each function may change: its writes, and those of all its callees."""
    written = {
        function.name: frozenset(
            name
            for block in function.blocks
            for op in block.ops
            if not isinstance(op, ir.Pop) and not ir.is_identity(op)
            for name in ir.writes(op)
        )
        for function in program.functions
    }
    graph = call_graph(program)
    changed: dict[str, frozenset[str]] = {}
    for members in components(graph):  # callees first
        every = frozenset().union(
            *(written[name] for name in members),
            *(changed[callee] for name in members for callee in graph[name] if callee in changed),
        )
        changed.update(dict.fromkeys(members, every))
    return changed
