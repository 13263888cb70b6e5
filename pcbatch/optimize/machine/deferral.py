"""Deferral: work of a loop's turns that only results need is done after the loop, for all turns.

    b1: t = i < n; branch t b2 b3           b1: t = i < n and k < 64; branch t b2 b4
    b2: h = cell(h, x[i])                   b2: h = cell(h, x[i])
        s = W @ h                               kept[k] = h; k = k + 1
        loss = loss + s                         i = i + 1; jump b1, turn
        i = i + 1; jump b1, turn     -->    b4: j = 0; branch k > 0 b5 b3
                                            b5: turns j of k: s = W @ kept[j]; values[j] = s
                                                j = j + 1; branch j < k b5 b6
                                            b6: loss = loss + values[i_2]; i_2 = i_2 + 1; branch i_2 < k b6 b7
                                            b7: k = 0; t = i < n; branch t b2 b3

Loop distribution with scalar expansion (Allen and Kennedy, "Automatic translation of FORTRAN programs to vector form",
ACM TOPLAS 1987). The statements of block b2 fall into three parts:

- what the next turn, the loop's condition or a fault needs stays in the loop;
- what needs nothing of itself from the turn before is `deferred`: its turns may be run in any order, and at once;
- what is left is cheap and adds up or stores what was deferred: it is done turn by turn, in the order of the source.

What `deferred_turns.py` knows of a loop may leave blocks out: b4 and b7 where each turn goes through b2 and there is
room for all turns, and b6 where what is left are stores at places that differ by turn, which b5 then makes itself.

Between the parts values are kept by turn, in arrays with room for so many turns; when they are full, the lane does what
it has put off and goes on in the loop. Every part does for every turn what it did, on the same values, and checks stay
in the loop: so results, faults and steps are the same, whoever runs the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.analysis.effects import Loop, blocks_of, read
from pcbatch.ir.expressions import Constant as Literal
from pcbatch.ir.expressions import Input, call, operation
from pcbatch.ir.machine import (
    Block,
    Branch,
    Deferred,
    Item,
    Jump,
    Piece,
    Program,
    Statement,
    Store,
    Terminator,
    checked_sites,
    fork_of,
    targets,
)
from pcbatch.ir.payload import BLANK, NEGATION, Compute, Constant, Copy
from pcbatch.ir.program import Primitive, reads, writes
from pcbatch.ir.types import TensorType, Type, elements, leaves
from pcbatch.optimize.machine.deferred_turns import Exit, Turns, loops
from pcbatch.optimize.machine.turn_parts import Parts, parts_of
from pcbatch.runtime.costs.device import CPU

MOST, LEAST, BYTES = 64, 8, 160 * 1024
"""Maximal and minimal number of deferred turns of a lane, and the bytes that a lane may keep of them; of each array
that is computed of them four times as many."""
NUMBER, BOOL = TensorType("int32", weak=True), TensorType("bool")


def defer_turns(program: Program, only: Collection[int] | None = None) -> Program:
    """Put off what turns of loops compute, where it can be said; of blocks in `only`, if that is given."""
    if only == () or not _is_plain(program):
        return program
    for loop in loops(program):
        for number in (node for node in loop.nodes if isinstance(node, int)):
            if only is None or number in only:
                found = _Deferring.of(program, loop, number)
                if found is not None:
                    program = found.program()
                    break
    return program


def pays(program: Program, costs: Sequence[float], block: Block) -> bool:
    """Tell whether it pays that `block` is deferred, by what a row of each block `costs`.

    A row must cost more than it costs to keep what it needs. And rows of the loop must be expensive: others are better
    run natively.
    """
    assert block.deferred is not None
    cost = costs[program.blocks.index(block)]
    kept = {name for name in read(block) if name in program.storage and _is_long(program.types[name])}
    kept |= {item.array for item in block.body if isinstance(item, Store)}
    moved = (elements(program.types[name]) / block.deferred.most for name in kept)
    least = sum(CPU.moved_array + CPU.moved_element * each for each in moved)
    return cost + costs[block.deferred.of] > CPU.native_work and cost > least


def _is_long(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.shape != ()


def _is_plain(program: Program) -> bool:
    """Tell whether no calls are forked, and lanes come to the first block once."""
    arrivals = {place for block in program.blocks for place in targets(block.terminator)}
    return 0 not in arrivals and all(fork_of(block.terminator) is None for block in program.blocks)


class _Deferring:
    """One block of a loop, whose turns are put off in part."""

    def __init__(self, program: Program, members: frozenset[int], head: int, number: int, way: Exit, parts: Parts):
        self.source, self.members, self.head, self.number = program, members, head, number
        self.way, self.parts = way, parts
        self.block = program.blocks[number]
        self.types: dict[str, Type] = dict(program.types)
        self.storage = dict(program.storage)
        self.starts: list[Statement] = []
        self.first, self.most = len(program.blocks), _room(program, parts)
        self.turns = Turns(program, members, head, number, way, parts, self.most)
        self.beside = {*program.shared, *(name for names in program.externs.values() for name in names)}
        self.scope = next(item.scope for item in self.block.body if isinstance(item, Piece))

    @classmethod
    def of(cls, program: Program, loop: Loop, number: int) -> _Deferring | None:
        """The block, if something of it can be put off."""
        members, head = frozenset(blocks_of([loop])), next(blocks_of([loop]))
        way = Exit.of(program, members, head)
        if way is None or program.blocks[number].sync:
            return None
        places = {place for each in members for place in targets(program.blocks[each].terminator)}
        others = [program.blocks[each] for each in (members | places) - {number, way.outside}]
        parts = parts_of(program, number, others)
        return (
            None if parts is None or _room(program, parts) < LEAST else cls(program, members, head, number, way, parts)
        )

    def program(self) -> Program:
        """The program in which it is put off."""
        parts, places = self.parts, iter(range(self.first, self.first + 4))
        ask = None if self.turns.has_begun else next(places)
        all_turns = next(places)
        each = next(places) if parts.each and not self.turns.are_apart else None
        behind = None if self.turns.is_bounded else next(places)
        begin, end = all_turns if ask is None else ask, self.way.outside if behind is None else behind
        count, turn = (self.number_named(name) for name in ("kept", "turn"))
        place = None if each is None else self.number_named("place")
        zeros = [_number(name, 0) for name in (turn, place) if name is not None]
        kept = {name: self.room_for(name) for name in parts.kept}
        values = {} if each is None else {name: self.room_for(name) for name in parts.values}
        blocks = [*self.source.blocks]
        stores = [Store(kept[name], (count,), name, None) for name in parts.kept]
        more = self.piece([_plus_one(count)])
        blocks[self.number] = replace(self.block, body=(*parts.stays, *stores, more))
        left = self.flag_named("left") if self.way.leaving and behind is not None else None
        asked = "" if self.turns.is_asked_again or behind is None else self.flag_named("asked")
        self.leave(blocks, count, asked, begin)

        if ask is not None:
            some = self.flag("some")
            asks = self.piece([*zeros, _compare(some, ">", count, 0)])
            blocks.append(self.made(ask, [asks], Branch(some, all_turns, self.way.outside)))
        goes, wanted = self.flag("goes"), parts.for_deferred | (parts.for_each if each is None else frozenset())
        found = [_element(name, kept[name], turn) for name in parts.kept if name in wanted]
        loads = [self.piece(found)] if found else []
        stores = [Store(array, (turn,), name, None) for name, array in values.items()]
        rest = parts.each if each is None else stores
        on = self.piece([_plus_one(turn), _compare(goes, "<", turn, count)])
        last = self.made(all_turns, [*loads, *parts.deferred, *rest, on], Branch(goes, all_turns, each or end))
        blocks.append(replace(last, deferred=Deferred(turn, count, self.most, self.number), cost=self.block.cost))
        if each is not None and place is not None:
            again = self.flag("again")
            found = [_element(name, array, place) for name, array in values.items()]
            found += [_element(name, kept[name], place) for name in parts.kept if name in parts.for_each]
            on = self.piece([_plus_one(place), _compare(again, "<", place, count)])
            blocks.append(self.made(each, [self.piece(found), *parts.each, on], Branch(again, each, end)))
        if behind is not None:
            blocks.append(self.back(behind, [*([] if ask is not None else zeros), _number(count, 0)], asked, left))
        for number in self.way.leaving:
            if left is not None:
                blocks.append(self.left(len(blocks), left, begin))
            blocks[number] = _leading(blocks[number], self.way.outside, begin if left is None else len(blocks) - 1)
        if ask is None:
            self.enter(blocks)
        blocks[0] = replace(blocks[0], body=(self.piece(self.starts, blocks[0]), *blocks[0].body))
        return replace(
            self.source,
            blocks=tuple(blocks),
            types=self.types | parts.types,
            storage=self.storage,
        )

    # -- the loop ------------------------------------------------------------------------------------------------------

    def leave(self, blocks: list[Block], count: str, asked: str, ask: int) -> None:
        """Let lanes leave the loop as well when as many turns are put off as there is room for."""
        head, way = blocks[self.head], self.way
        if self.turns.is_bounded:
            blocks[self.head] = _leading(head, way.outside, ask)
            return
        condition, room, on = way.branch.condition, self.flag("room"), self.flag("on")
        statements = [] if self.turns.is_asked_again else [Statement(Primitive((asked,), (condition,), Copy()))]
        if way.stays:
            statements += [_compare(room, "<", count, self.most), _both(on, "&", condition, room)]
            end = replace(way.branch, condition=on, false=ask)
        else:
            statements += [_compare(room, ">=", count, self.most), _both(on, "|", condition, room)]
            end = replace(way.branch, condition=on, true=ask)
        blocks[self.head] = replace(head, body=self.behind(head, statements, {on}), terminator=end)

    def enter(self, blocks: list[Block]) -> None:
        """Let lanes that enter the loop ask its condition in a block of its own: of those no turn is kept."""
        head = self.source.blocks[self.head]
        blocks.append(self.made(len(blocks), head.body, self.way.branch))
        for number, block in enumerate(self.source.blocks):
            if number not in self.members and self.head in targets(block.terminator):
                blocks[number] = _leading(blocks[number], self.head, len(blocks) - 1)

    def back(self, number: int, starts: Sequence[Statement], asked: str, left: str | None) -> Block:
        """The block behind what was put off: there the loop's condition is asked again."""
        way, head = self.way, self.source.blocks[self.head]
        body = head.body if self.turns.is_asked_again else ()
        condition = way.branch.condition if self.turns.is_asked_again else asked
        statements = []
        if left is not None:
            on, other = self.flag("on"), self.flag("other")
            if way.stays:
                statements = [Statement(Primitive((other,), (left,), NEGATION)), _both(on, "&", condition, other)]
            else:
                statements = [_both(on, "|", condition, left)]
            condition = on
            statements.append(Statement(Primitive((left,), (), Constant(False))))
        statements += starts
        body = self.behind(replace(head, body=body), statements, {condition})
        return self.made(number, body, replace(way.branch, condition=condition))

    def left(self, number: int, left: str, ask: int) -> Block:
        """A block on the way out of the middle of the loop."""
        return self.made(number, [self.piece([Statement(Primitive((left,), (), Constant(True)))])], Jump(ask))

    # -- parts of blocks -----------------------------------------------------------------------------------------------

    def made(self, number: int, body: Sequence[Item], end: Terminator) -> Block:
        """A new block."""
        label = f"b{max(int(block.label.removeprefix('b')) for block in self.source.blocks) + 1 + number - self.first}"
        return Block(label, tuple(body), end, function=self.block.function, span=self.block.span)

    def piece(self, statements: Sequence[Statement], block: Block | None = None) -> Piece:
        """A piece of statements of ours; of the scope of `block`, if that is given."""
        return self.joined(Piece(None, scope=self.scope if block is None else _scope(block)), statements, set())

    def behind(self, block: Block, statements: Sequence[Statement], wanted: Collection[str]) -> tuple[Item, ...]:
        """The body of a block, and statements behind its last one, which give what is `wanted`."""
        match block.body:
            case (*before, Piece(function=None, predicate=None, speculative=False) as last):
                return (*before, self.joined(last, statements, wanted))
        return (*block.body, self.joined(self.piece([]), statements, wanted))

    def joined(self, piece: Piece, statements: Sequence[Statement], wanted: Collection[str]) -> Piece:
        """A piece with more statements; without names to be wanted it gives all that these assign."""
        read, assigned = dict.fromkeys(piece.reads), {name for each in piece.statements for name in writes(each.op)}
        given = dict.fromkeys(piece.writes)
        for each in statements:
            read |= dict.fromkeys(name for name in reads(each.op) if name not in assigned)
            assigned |= {*writes(each.op)}
            given |= dict.fromkeys(n for n in writes(each.op) if not wanted or n in wanted or n in self.storage)
        every = (*piece.statements, *statements)
        return replace(piece, reads=tuple(read), writes=tuple(given), statements=every, sites=checked_sites(every))

    # -- names ---------------------------------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        while name in self.types or name in self.parts.types or name in self.beside:
            name += "_"
        return name

    def number_named(self, name: str) -> str:
        """A new variable, 0 at first."""
        return self.variable(name, NUMBER, _number, 0)

    def flag_named(self, name: str) -> str:
        """A new variable, False at first."""
        return self.variable(name, BOOL, _number, False)

    def variable(self, name: str, type_: Type, first: Callable[[str, Any], Statement], value: Any) -> str:
        """A new variable with its first value."""
        name = self.fresh(name)
        self.types[name], self.storage[name] = type_, "register"
        self.starts.append(first(name, value))
        return name

    def flag(self, name: str) -> str:
        """A new temporary."""
        name = self.fresh(name)
        self.types[name] = BOOL
        return name

    def room_for(self, name: str) -> str:
        """A new array of values of `name` by turn."""
        one = self.parts.types.get(name, self.types.get(name))
        assert isinstance(one, TensorType)
        shape = (self.most, *one.shape)
        array = self.fresh(f"{name}_by_turn")
        self.types[array], self.storage[array] = TensorType(one.dtype, shape), "register"
        code = Compute(call(BLANK, *map(Literal, (one.dtype, *shape))))
        self.starts.append(Statement(Primitive((array,), (), code)))
        return array


def _room(program: Program, parts: Parts) -> int:
    """Return the number of turns of a lane for which there may be room."""
    types = {**program.types, **parts.types}
    kept = sum(_bytes(types[name]) for name in (*parts.kept, *parts.values))
    within = [name for piece in parts.deferred for each in piece.statements for name in writes(each.op)]
    widest = max((_bytes(types[name]) for name in within if name in types), default=0)
    return min(MOST, BYTES // max(1, kept), 4 * BYTES // max(1, widest))


def _bytes(type_: Type) -> int:
    return sum(leaf.bytes for leaf in leaves(type_))


def _scope(block: Block) -> str:
    return next((item.scope for item in block.body if isinstance(item, Piece)), block.function)


def _leading(block: Block, old: int, new: int) -> Block:
    """The block, where it leads to `old` leading to `new`."""

    def target(place: int) -> int:
        return new if place == old else place

    match block.terminator:
        case Branch() as end:
            return replace(block, terminator=replace(end, true=target(end.true), false=target(end.false)))
        case Jump(target=int(place)) as end:
            return replace(block, terminator=replace(end, target=target(place)))
    raise TypeError(f"not a terminator that leaves a loop: {block.terminator!r}")


def _number(name: str, value: Any) -> Statement:
    return Statement(Primitive((name,), (), Constant(value)))


def _plus_one(name: str) -> Statement:
    return Statement(Primitive((name,), (name,), Compute(operation("+", Input(0), Literal(1)))))


def _compare(name: str, symbol: str, one: str, other: str | int) -> Statement:
    if isinstance(other, int):
        return Statement(Primitive((name,), (one,), Compute(operation(symbol, Input(0), Literal(other)))))
    return _both(name, symbol, one, other)


def _both(name: str, symbol: str, one: str, other: str) -> Statement:
    return Statement(Primitive((name,), (one, other), Compute(operation(symbol, Input(0), Input(1)))))


def _element(name: str, array: str, place: str) -> Statement:
    return Statement(Primitive((name,), (array, place), Compute(operation("[]", Input(0), Input(1)))), (None,))
