"""Computations that cannot fail behind a counted turn move before it.

    b1: x0 = ..; jump b2, turn          b1: x0 = ..; x1 = ..; x2 = ..; jump b2, turn
    b2: x1 = ..; jump b3, turn    -->   b2: jump b3, turn
    b3: x2 = ..; jump b4, turn          b3: jump b4, turn

A loop that is written out has a block for each turn, since turns are counted (`max_steps`). What such blocks hand on,
a list that grows, costs a compiler as much at each border as it has parts. Where nothing in a block can fail, nobody
sees whether it is computed before the turn is counted or after it; the blocks that are left only count. Where turns
are limited, calls of what nothing is known of stay behind them: in a graph such may raise for the whole batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pcbatch.ir.analysis.effects import read_at_end, written
from pcbatch.ir.analysis.speculatable import calls_opaque
from pcbatch.ir.machine import Block, Item, Jump, Piece, Program, PushJump, Statement, Store, fork_of, targets


def compute_early(program: Program, *, limited: bool = False) -> Program:
    """Hoist computations of blocks to the block before, where only a counted turn leads from that to them.

    Turns may be refused where they are `limited`.
    """
    arrivals = Counter(_arrivals(program))
    blocks = [*program.blocks]
    own = frozenset(
        number
        for number, block in enumerate(blocks)
        if _keeps_its_own(program, block) or (limited and _calls(program, block))
    )
    for number in reversed(range(len(blocks))):  # a block has taken what is behind it before another one takes its own
        place = number
        while (following := _following(blocks, place, arrivals, own)) is not None:
            blocks[following], taken = replace(blocks[following], body=()), blocks[following].body
            blocks[number] = replace(blocks[number], body=_one_behind_another(blocks[number].body, taken))
            place = following
    return _with_locals(replace(program, blocks=tuple(blocks)), frozenset(_taken_places(program, blocks)))


def _taken_places(program: Program, blocks: list[Block]) -> Iterator[int]:
    """The numbers of the blocks that have more to compute than before."""
    pairs = zip(program.blocks, blocks, strict=True)
    return (number for number, (before, now) in enumerate(pairs) if len(_statements(now)) > len(_statements(before)))


def _statements(block: Block) -> list[Statement]:
    return [each for item in block.body if isinstance(item, Piece) for each in item.statements]


def _with_locals(program: Program, grown: frozenset[int]) -> Program:
    """The program without the variables that are now written and read in one piece of a block in `grown` alone."""
    places: dict[str, set[tuple[int, int]]] = {}
    for number, block in enumerate(program.blocks):
        for place, item in enumerate(block.body):
            for name in (*item.reads, *item.writes) if isinstance(item, Piece) else ():
                places.setdefault(name, set()).add((number, place))
    elsewhere = {*program.parameters, *program.results, *_named_elsewhere(program)}
    local = {
        name
        for name, (place, *others) in places.items()
        if not others and place[0] in grown and name not in elsewhere and program.storage.get(name) == "register"
    }
    local -= {name for block in program.blocks for item in block.body if isinstance(item, Piece) for name in item.reads}

    def inside(item: Item) -> Item:
        if not isinstance(item, Piece) or local.isdisjoint(item.writes):
            return item
        return replace(item, writes=tuple(name for name in item.writes if name not in local))

    blocks = tuple(replace(block, body=tuple(map(inside, block.body))) for block in program.blocks)
    kept = {name: kind for name, kind in program.storage.items() if name not in local}
    types = {name: type_ for name, type_ in program.types.items() if name not in local}
    return replace(program, blocks=blocks, storage=kept, types=types)


def _named_elsewhere(program: Program) -> Iterator[str]:
    """The variables that something else than a piece names."""
    for block in program.blocks:
        yield from (*block.pops, *read_at_end(program, block))
        for push in block.pushes:
            yield from (push.variable, *([push.saved] if push.saved is not None else []))
        for item in block.body:
            yield from (item.array, *item.indices, item.value) if isinstance(item, Store) else ()
            yield from [item.predicate] if item.predicate is not None else []
        if (fork := fork_of(block.terminator)) is not None:
            for call in fork.calls:
                yield from (name for pair in (*call.given, *call.results) for name in pair)
    for fault in program.faults:
        yield from fault.arguments


def _arrivals(program: Program) -> Iterator[int]:
    """The numbers of the blocks that each way leads to; the entry has one from outside."""
    yield 0
    for block in program.blocks:
        yield from targets(block.terminator)
        if isinstance(block.terminator, PushJump):
            yield block.terminator.back
        if (fork := fork_of(block.terminator)) is not None:
            yield fork.join


def _following(blocks: list[Block], number: int, arrivals: Counter[int], own: frozenset[int]) -> int | None:
    """The block that is computed as well with block `number`, behind whose end it stands; None if there is none.

    Blocks of `own` keep what they compute.
    """
    block, end = blocks[number], blocks[number].terminator
    if not (isinstance(end, Jump) and end.turn and isinstance(end.target, int)) or block.pushes or block.dead:
        return None
    other = blocks[end.target]
    is_apart = arrivals[end.target] != 1 or end.target in (number, *own) or other.function != block.function
    if is_apart or other.pops or other.sync or any(each.chunks or each.cost is not None for each in (block, other)):
        return None
    return end.target if all(isinstance(item, Piece) and not item.sites for item in other.body) else None


def _one_behind_another(body: tuple[Item, ...], taken: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return both bodies, the pieces between as one: values passed from turn to turn never leave it."""
    match body, taken:
        case (*before, Piece() as one), (Piece() as other, *behind) if _plainly(one) == _plainly(other):
            return (*before, _joined(one, other), *behind)
    return (*body, *taken)


def _plainly(piece: Piece) -> tuple[object, ...] | None:
    """A key that pieces share that can be one; a new object for a piece that cannot."""
    is_plain = piece.function is None and piece.predicate is None and not piece.speculative and not piece.unnamed
    return (piece.tapes, piece.scope) if is_plain else (object(),)


def _joined(one: Piece, other: Piece) -> Piece:
    return replace(
        one,
        reads=tuple(dict.fromkeys((*one.reads, *(name for name in other.reads if name not in one.writes)))),
        writes=tuple(dict.fromkeys((*one.writes, *other.writes))),
        shared=tuple(dict.fromkeys((*one.shared, *other.shared))),
        statements=(*one.statements, *other.statements),
        kept={**one.kept, **other.kept},
    )


def _keeps_its_own(program: Program, block: Block) -> bool:
    """Return whether the end of `block` needs something that its body computes, perhaps for itself alone."""
    return bool(block.pushes) or not read_at_end(program, block).isdisjoint(written(block))


def _calls(program: Program, block: Block) -> bool:
    """Return whether `block` makes opaque calls."""
    pieces = (item for item in block.body if isinstance(item, Piece))
    return any(
        calls_opaque(each.op, program.externs.get(piece.scope, ())) for piece in pieces for each in piece.statements
    )
