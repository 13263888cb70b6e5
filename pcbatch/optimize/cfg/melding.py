"""Work that both arms of a branch do alike is done once, for the lanes of both.

    if c:                    branch c b1 b2                  branch c b1 b2
        y = f(a)             b1: y = f(a); jump b3     ->    b1: p = a; jump m        ->   p = a if c else b
    else:                    b2: y = f(b); jump b3           b2: p = b; jump m             y = f(p)
        y = f(b)                                             m:  y = f(p); jump b3

Two expensive blocks that each compute all rows for the lanes that chose them become one (control-flow melding: Saumya,
Sundararajah, Kulkarni, "DARM", CGO 2022). Statements match if they differ in variables of equal types only. One that
both arms begin with, on the same variables, moves before the branch; for any other one what follows in both arms must
be cheap, so that a choice of values is all that is left behind it. Nothing melds where both arms keep expensive work.

A constant that an arm makes anew and reads, `K = 4`, may be a size, which no variable can be that crosses to another
block: it is made anew there, too, or what reads it stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.speculatable import calls_opaque
from pcbatch.ir.expressions import Constant, Expression, Items
from pcbatch.ir.payload import Copy
from pcbatch.ir.rewrite import renamed
from pcbatch.optimize.cfg.control_flow import Graph, settled_at
from pcbatch.optimize.cfg.if_conversion import Diamond, choices, diamond, selectable

Constants = Mapping[str, ir.Op]


def meld_arms(program: ir.Program) -> ir.Program:
    """Merge equal primitives of both arms of a branch."""
    labels = {block.label for block in program.blocks()}
    return replace(program, functions=tuple(_melded(function, labels) for function in program.functions))


def _melded(function: ir.Function, labels: set[str]) -> ir.Function:
    while (changed := next(_changes(function, labels), None)) is not None:
        function = changed
    return function


def _changes(function: ir.Function, labels: set[str]) -> Iterator[ir.Function]:
    for block in function.blocks:
        yield from _hoisted_from(function, block.label)
        for changed in _shared_from(function, block.label, labels):
            whole = _as_far_as_it_goes(changed, block.label, labels)
            if not _both_arms_are_dear(whole, block.label):
                yield whole


def _hoisted_from(function: ir.Function, label: str) -> Iterator[ir.Function]:
    graph = Graph(function)
    found = _two_arms(graph, graph.blocks[label])
    if found is not None:
        yield from _hoisted(graph, graph.blocks[label], found)


def _shared_from(function: ir.Function, label: str, labels: set[str]) -> Iterator[ir.Function]:
    graph = Graph(function)
    found = _two_arms(graph, graph.blocks[label])
    if found is not None:
        yield from _shared(graph, graph.blocks[label], found, labels)


def _as_far_as_it_goes(function: ir.Function, label: str, labels: set[str]) -> ir.Function:
    """The function with all that the arms of one branch do alike done once."""
    while (changed := next(_shared_from(function, label, labels), None)) is not None:
        function = changed
    return function


def _both_arms_are_dear(function: ir.Function, label: str) -> bool:
    """Return whether each arm of a branch still has work of its own: then melding adds an expensive block."""
    graph = Graph(function)
    found = _two_arms(graph, graph.blocks[label])
    return found is not None and all(
        any(isinstance(op, ir.Primitive) and calls_opaque(op, function.externs) for op in arm)
        for arm in (found.true, found.false)
    )


def _two_arms(graph: Graph, block: ir.Block) -> Diamond | None:
    """A branch with two arms of its own; where these go on may differ."""
    found = diamond(graph, block)
    if found is not None:
        return found if len(found.labels) == 2 else None
    branch = block.terminator
    if not isinstance(branch, ir.Branch) or branch.true == branch.false:
        return None
    true, false = graph.blocks[branch.true], graph.blocks[branch.false]
    if block in (true, false) or graph.arrivals[true.label] != 1 or graph.arrivals[false.label] != 1:
        return None
    return Diamond(branch, true.ops, false.ops, None, frozenset((true.label, false.label)))


def _hoisted(graph: Graph, block: ir.Block, found: Diamond) -> Iterator[ir.Function]:
    """The primitive that both arms begin with moved in front of the branch; constants that they make stay in them."""
    constants = [dict(_constants(arm)) for arm in (found.true, found.false)]
    arms = [tuple(op for op in arm if op not in made.values()) for arm, made in _arms(found, constants)]
    if not arms[0] or not arms[1] or arms[0][0] != arms[1][0]:
        return
    op = arms[0][0]
    typed = all(graph.types.get(name) is not None for name in ir.writes(op))
    if not isinstance(op, ir.Primitive) or found.branch.condition in op.outputs or not (typed or not graph.is_typed):
        return
    read = [{name: made[name] for name in op.inputs if name in made} for made in constants]
    if (
        read[0] != read[1]
        or found.branch.condition in read[0]
        or any(set(op.outputs) & made.keys() for made in constants)
    ):
        return
    true, false = settled_at(arms[0], 1), settled_at(arms[1], 1)
    if true is None or false is None or true[0] != false[0]:
        return
    kept = [tuple(made.values()) for made in constants]
    rewritten = {
        block.label: replace(block, ops=(*block.ops, *read[0].values(), *true[0])),
        found.branch.true: replace(graph.blocks[found.branch.true], ops=(*kept[0], *true[1])),
        found.branch.false: replace(graph.blocks[found.branch.false], ops=(*kept[1], *false[1])),
    }
    yield graph.rebuilt(rewritten.get(each.label, each) for each in graph.function.blocks)


def _arms(found: Diamond, constants: Sequence[Constants]) -> Iterator[tuple[tuple[ir.Op, ...], Constants]]:
    return zip((found.true, found.false), constants, strict=True)


def _constants(arm: Sequence[ir.Op]) -> Constants:
    """The constants that an arm makes and reads, by their names: what might stand at its beginning."""
    found: dict[str, ir.Op] = {}
    for at, op in enumerate(arm):
        if not isinstance(op, ir.Primitive) or not _is_literal(ir.assigned_value(op)):
            continue
        (name,) = op.outputs
        others = [*arm[:at], *arm[at + 1 :]]
        is_first = not any(name in ir.reads(each) for each in arm[:at])
        if (
            is_first
            and not any(name in ir.writes(each) for each in others)
            and any(name in ir.reads(e) for e in others)
        ):
            found[name] = op
    return found


def _is_literal(value: Expression | None) -> bool:
    match value:
        case Constant():
            return True
        case Items("tuple", items):
            return all(map(_is_literal, items))
    return False


def _shared(graph: Graph, block: ir.Block, found: Diamond, labels: set[str]) -> Iterator[ir.Function]:
    """An expensive primitive of both arms moved into a block of its own, for which both arms choose the operands."""
    if found.join is None or graph.types.get(found.branch.condition) is None:  # the new block needs types
        return
    for i, op in enumerate(found.true):
        for j, other in enumerate(found.false):
            pairs = _pairs(graph, op, other)
            true, false = settled_at(found.true, i), settled_at(found.false, j)
            if pairs is None or true is None or false is None or _chooses_constant(found, pairs):
                continue
            settled = replace(found, true=(*true[0], *true[1]), false=(*false[0], *false[1]))
            rest = replace(found, true=true[1][1:], false=false[1][1:])
            if selectable(graph, rest) is None or not _may_be_cut(graph, block, settled, rest):
                continue
            yield from _with_shared_block(graph, block, settled, rest, pairs, labels)


def _pairs(graph: Graph, op: ir.Op, other: ir.Op) -> tuple[tuple[str, str], ...] | None:
    """The operands, `(of the one, of the other)`, of two expensive primitives that differ in nothing else; or None."""
    if not isinstance(op, ir.Primitive) or not isinstance(other, ir.Primitive):
        return None
    if not calls_opaque(op, graph.function.externs) or len(op.inputs) != len(other.inputs):
        return None
    types = graph.types
    pairs = tuple(zip(op.inputs, other.inputs, strict=True))
    if any(types.get(a) is None or types[a] != types.get(b) for a, b in pairs):
        return None
    return pairs if op.code == other.code and len(op.outputs) == len(other.outputs) else None


def _chooses_constant(found: Diamond, pairs: tuple[tuple[str, str], ...]) -> bool:
    """Return whether two arms have different constants for an operand, which may be a size, or a variable there."""
    true, false = _constants(found.true), _constants(found.false)
    return any(true.get(a) != false.get(b) and (a in true or b in false) for a, b in pairs)


def _may_be_cut(graph: Graph, block: ir.Block, found: Diamond, rest: Diamond) -> bool:
    """Return whether the rest of each arm needs nothing of the arm's beginning but variables that both arms have.

    For it is computed for the lanes of both. These variables cross to another block, and have types.
    """
    arms = ((found.true, rest.true), (found.false, rest.false))
    written = [{name for op in arm[: len(arm) - len(end) - 1] for name in ir.writes(op)} for arm, end in arms]
    known = written[0] & written[1] | graph.assigned[block.label].end
    for own, (_, end) in zip(written, arms, strict=True):
        needed = own.intersection(name for op in end for name in ir.reads(op))
        if not needed <= known or any(graph.types.get(name) is None for name in needed):
            return False
    return True


def _with_shared_block(
    graph: Graph, block: ir.Block, found: Diamond, rest: Diamond, pairs: tuple[tuple[str, str], ...], labels: set[str]
) -> Iterator[ir.Function]:
    """The function with arms that only choose operands, and a block behind them for all that is left of both."""
    fresh = graph.fresh_names()
    names = {pair: next(fresh) for pair in pairs if pair[0] != pair[1]}
    branch = found.branch
    is_overwritten = any(branch.condition in ir.writes(op) for op in (*found.true, *found.false))
    condition = next(fresh) if is_overwritten else branch.condition
    label = _new_label(f"{block.label}_melded", labels)

    def arm(of: str, ops: tuple[ir.Op, ...], end: tuple[ir.Op, ...], side: int) -> ir.Block:
        kept, melded = ops[: len(ops) - len(end) - 1], ops[len(ops) - len(end) - 1]
        chosen = (_copy(name, pair[side], melded.span) for pair, name in names.items())
        return ir.Block(of, (*kept, *chosen), ir.Jump(label, span=melded.span))

    keep = [_copy(condition, branch.condition, branch.span)] if is_overwritten else []
    rewritten = {
        block.label: replace(block, ops=(*block.ops, *keep)),
        branch.true: arm(branch.true, found.true, rest.true, 0),
        branch.false: arm(branch.false, found.false, rest.false, 1),
    }
    blocks = [rewritten.get(each.label, each) for each in graph.function.blocks]
    place = 1 + max(i for i, each in enumerate(blocks) if each.label in found.labels)
    ops = _melded_ops(graph, found, rest, names, condition, fresh)
    if ops is None or found.join is None:
        return
    shared = ir.Block(label, ops, found.join)
    types = {condition: graph.types[branch.condition], **{name: graph.types[pair[0]] for pair, name in names.items()}}
    yield graph.rebuilt([*blocks[:place], shared, *blocks[place:]], types)


def _melded_ops(
    graph: Graph,
    found: Diamond,
    rest: Diamond,
    names: Mapping[tuple[str, str], str],
    condition: str,
    fresh: Iterator[str],
) -> tuple[ir.Op, ...] | None:
    """Return the melded primitive on the chosen operands, and a choice between the rests of the two arms."""
    op = found.true[len(found.true) - len(rest.true) - 1]
    other = found.false[len(found.false) - len(rest.false) - 1]
    assert isinstance(op, ir.Primitive) and isinstance(other, ir.Primitive)
    results = op.outputs if op.outputs == other.outputs else tuple(next(fresh) for _ in op.outputs)
    reads = {pair[0]: name for pair, name in names.items()}
    melded = renamed(op, reads, dict(zip(op.outputs, results, strict=True)))
    ends = []
    for each, end in ((op, rest.true), (other, rest.false)):
        copies = zip(each.outputs, results, strict=True)
        ends.append((*(_copy(own, result, each.span) for own, result in copies if own != result), *end))
    last = replace(rest, branch=replace(found.branch, condition=condition), true=ends[0], false=ends[1])
    chosen = selectable(graph, last)
    if chosen is None:
        return None
    constants = _constants(found.true)
    again = (constants[name] for name in dict.fromkeys(op.inputs) if name in constants)
    return *again, melded, *choices(graph, last, chosen, fresh)


def _copy(name: str, value: str, span: Span | None) -> ir.Primitive:
    return ir.Primitive((name,), (value,), Copy(), span)


def _new_label(wanted: str, labels: set[str]) -> str:
    """`wanted`, or a name like it that no block has; from now on one has it."""
    name = wanted
    while name in labels:
        name += "_"
    labels.add(name)
    return name
