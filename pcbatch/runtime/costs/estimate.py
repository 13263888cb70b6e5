"""The cost of a row of each block, and the choice of a form that follows from it.

By it schedules choose blocks, and expensive ones run on gathered lanes.
It is a static estimate from each piece's traced graph, in multiply-adds for matrix products, convolutions, solves and
factorisations, in elements for everything else: two units for one number, for both stand for the work of an
instruction or less, and only ratios of some size decide anything.

A program is native where it can be, and where that is better for it than XLA.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pcbatch.errors import Span
from pcbatch.ir import machine
from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.effects import Loop, Node, blocks_of, is_framed, nest, nest_with_calls
from pcbatch.ir.machine import Block, Piece, Program, PushJump, Step, Store, store_span
from pcbatch.ir.types import elements, is_number, leaves
from pcbatch.optimize.machine.compaction import Row
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU, Device

# -- choice of a form --------------------------------------------------------------------------------------------------


class Obstacle(NamedTuple):
    """The reason for which a program cannot have the native form."""

    why: str
    span: Span | None = None
    """The user's statement that it is about, if it is about one."""


def obstacle(program: Program, backend: Backend) -> Obstacle | None:
    """The first obstacle in `program` to its native form that has a line of the user's; None if there is none."""
    if not is_framed(program):
        return Obstacle("a call keeps more than one value of a variable on its stack")
    return _of_pieces(program, backend)


def _of_block(program: Program, block: Block) -> Obstacle | None:
    if any(count > 1 for count in Counter(block.pops).values()):
        return Obstacle(f"{block.label} takes more than one entry from a stack", block.span)
    for item in block.body:
        match item:
            case Store(indices=indices) if any(next(leaves(program.types[name])).shape for name in indices):
                return Obstacle("several elements of an array are stored at once", store_span(program, item))
    return None


def _of_pieces(program: Program, backend: Backend) -> Obstacle | None:
    pieces = [(block, item) for block in program.blocks for item in block.body if isinstance(item, Piece)]
    given = [(piece, signature_of(program, piece), block.label) for block, piece in pieces]
    for found in backend.native_obstacles(given):
        for what, span in found:
            return Obstacle(f"no native code is made of {what}", span)
    return None


def signature_of(program: Program, piece: Piece) -> Signature:
    """Return the types of a program piece's reads and writes."""
    return Signature(
        reads=[program.types[name] for name in piece.reads],
        shared=[program.shared_types[name] for name in piece.shared],
        writes=[program.types[name] for name in piece.writes],
    )


def signature_of_step(program: Program, step: Step) -> Signature:
    """The same of a step of a program piece."""
    return Signature(
        reads=step.read_types,
        shared=[program.shared_types[name] for name in step.piece.shared],
        writes=step.write_types,
    )


def parts_of(program: Program, piece: Piece) -> list[tuple[Piece, Signature]]:
    """The functions of which a piece is made: those of its steps; itself, where it has none."""
    steps = [(step.piece, signature_of_step(program, step)) for step in piece.steps]
    return steps or [(piece, signature_of(program, piece))]


def left_to_lockstep(program: Program, backend: Backend, row_costs: Sequence[float]) -> frozenset[int] | None:
    """The numbers of the blocks that lanes are to run together, the others natively; None where all are to be.

    These are blocks with expensive rows, unless they run seldom, and those of which no native code is made.
    """
    if not is_framed(program):
        return None
    expensive = {number for number, cost in enumerate(row_costs) if cost > CPU.native_work}
    found = frozenset(expensive | _never_native(program, backend))
    found -= _run_seldom(program, backend, row_costs, found)
    return found if effects.reachable(program) - found else None


def _never_native(program: Program, backend: Backend) -> set[int]:
    """The blocks that lanes are to run together whatever their rows cost: to wait there, or for want of native code."""
    blocks = [*enumerate(program.blocks)]
    found = {n for n, block in blocks if block.sync or block.deferred is not None or _of_block(program, block)}
    pieces = [(number, item) for number, block in blocks for item in block.body if isinstance(item, Piece)]
    given = [(piece, signature_of(program, piece), program.blocks[number].label) for number, piece in pieces]
    obstacles = backend.native_obstacles(given)
    return found | {number for (number, _), each in zip(pieces, obstacles, strict=True) if each}


def _run_seldom(
    program: Program, backend: Backend, row_costs: Sequence[float], lockstep: frozenset[int]
) -> frozenset[int]:
    """The blocks of `lockstep` at which few lanes are at a time, and which do much to few numbers: better natively.

    A lane runs them once and others of `lockstep` over and over, in a loop or in what is called, before it is back. So
    lanes that do not go in step come there one by one; and those that do gain nothing by company.
    """
    middling = {number for number in lockstep if CPU.native_work < row_costs[number] <= CPU.native_seldom}
    if not middling:
        return frozenset()
    found = set[int]()
    for number in middling & _around(nest_with_calls(program), lockstep) - _never_native(program, backend):
        block = program.blocks[number]
        if block.cost is None and _is_done_alone(program, backend, block):
            found.add(number)
    return frozenset(found)


def _is_done_alone(program: Program, backend: Backend, block: Block) -> bool:
    """Return whether a block handles few numbers, and multiplies its rows by nothing that all lanes share."""
    names = {*block.pops, *effects.read(block), *effects.written(block)}
    if any(elements(program.types[name]) > CPU.native_few for name in names):
        return False
    signatures = [(item, signature_of(program, item)) for item in block.body if isinstance(item, Piece)]
    found = [backend.facts(piece, each.reads, each.shared).together for piece, each in signatures]
    return not any(each.shares or each.most > CPU.native_few for each in found)


def _around(nodes: Sequence[Node], some: frozenset[int]) -> set[int]:
    """The blocks that lie in a loop which has a loop inside with one of `some`."""
    found: set[int] = set()
    for loop in (node for node in nodes if isinstance(node, Loop)):
        inner = [node for node in loop.nodes if isinstance(node, Loop)]
        if not some.isdisjoint(blocks_of(inner)):
            found |= {node for node in loop.nodes if isinstance(node, int)}
        found |= _around(inner, some)
    return found


def mixture(
    program: Program, backend: Backend, row_costs: Sequence[float], besides: Collection[int] = ()
) -> frozenset[int] | None:
    """The blocks to leave to lockstep, some `besides`, where native code among them pays; None where it does not."""
    lockstep = left_to_lockstep(program, backend, row_costs)
    if lockstep is None:
        return None
    lockstep = lockstep.union(besides)
    return lockstep if _pays(program, row_costs, lockstep) else None


def _pays(program: Program, row_costs: Sequence[float], lockstep: frozenset[int]) -> bool:
    """Return whether native code pays among the blocks of `lockstep`.

    It does where lanes come from such a block to others and back, over and over: what lies before all of them or
    behind runs once. And where rows are so expensive that nothing else counts, it only takes longer to compile.
    """
    places = enumerate(effects.successors(program))
    onward = {number: [to for to in found if to < len(program.blocks)] for number, found in places}
    onward |= {number: [] for number in onward if program.blocks[number].deferred is not None}  # lanes seldom go back
    for members in map(frozenset, components(onward)):
        shared = members & lockstep
        if shared and members - shared and max(row_costs[number] for number in shared) <= CPU.native_among:
            return True
    return False


def is_of_numbers(program: Program) -> bool:
    """Return whether a program is made of operations on numbers alone.

    Native code is the better form of these even if no lane waits for another. A straight line takes a half to a tenth
    of XLA's CPU time so, from one lane to a million.
    """
    items = [item for block in program.blocks for item in block.body]
    if not all(isinstance(item, Piece) and item.steps for item in items):
        return False
    steps = [step for item in items if isinstance(item, Piece) for step in item.steps]
    types = [type_ for step in steps for type_ in step.read_types]
    types += [program.shared_types[name] for step in steps for name in step.piece.shared]
    return all(map(is_number, types))


def _is_call(block: Block) -> bool:
    return isinstance(block.terminator, PushJump)


def loss(program: Program, row_costs: Sequence[float], among: Collection[int] | None = None) -> str | None:
    """Return the reason why lanes of `program`, with these costs of rows, gain by running together, if they do.

    Of rows it is those of the blocks `among` which others are native; of all, where none are named.
    """
    if any(block.sync for block in program.blocks):
        return "lanes are to wait for each other"
    goes_on = all(isinstance(node, int) for node in nest(program)) and not any(map(_is_call, program.blocks))
    if goes_on and not is_of_numbers(program):
        return "no lane waits for another: there is no loop and no call to come back from"
    most = max(range(len(row_costs)) if among is None else sorted(among), key=row_costs.__getitem__)
    if row_costs[most] > CPU.native_work:
        return f"a row of {program.blocks[most].label} is expensive"
    return None


# The rule of jit="auto": whether a program of one block is better compiled or run by the library's own kernels.
#
# A static rule, by the operations of a trace: the same program is treated alike in every process, on every machine.


@dataclass(frozen=True)
class Choice:
    """The decision whether the program is to be compiled, and its reason."""

    jit: bool
    why: str


def choice(program: Program, backend: Backend) -> Choice:
    """Return the better form of `program`, of one block."""
    (block,) = program.blocks
    cost = compiled = 0.0
    for item in block.body:
        if isinstance(item, Piece):
            types = [program.types[name] for name in item.reads]
            found = backend.facts(item, types, [program.shared_types[name] for name in item.shared]).kernels
            cost, compiled = cost + found.cost, compiled + found.compiled
            if found.obstacle is not None:
                return Choice(True, found.obstacle)
    if compiled > cost + CPU.uncompiled:
        return Choice(False, f"compiled, it is estimated to take {compiled / cost:.2g} times as long")
    return Choice(True, "nothing in it is estimated to be faster otherwise")


# -- prices ------------------------------------------------------------------------------------------------------------
# The prices of trips and blocks, for choosing between blocks: the one place where fixed costs stand beside rows.
#
# The unit is that of `estimate`, a multiply-add or an element; the fixed costs are measured (`device`). A price is an
# estimate: what it decides is right when it is right to a factor of two.

USUAL_LANES = CPU.usual_lanes
"""Number of lanes to assume while it is not known."""


@dataclass(frozen=True)
class Prices:
    """Prices of a program's blocks. `row_costs` are those of one row (one lane) of each; a block runs `lanes` rows."""

    row_costs: Sequence[float]
    lanes: int
    device: Device = CPU

    @property
    def trip(self) -> float:
        """A trip in which no block runs."""
        return self.device.trip + self.device.guard * len(self.row_costs)

    @property
    def rows(self) -> list[float]:
        """The rows of one execution of each block, without fixed costs."""
        return [self.lanes * cost for cost in self.row_costs]

    @property
    def executions(self) -> list[float]:
        """The cost of one execution of each block."""
        return [self.device.execution + rows for rows in self.rows]

    def is_dear(self, cost: float) -> bool:
        """Return whether to compute a row of such a cost for all lanes costs more than to look whether one waits.

        As if in every other trip none did: a guard costs a look in every trip, and saves the rows in those.
        """
        return self.lanes * cost > 2 * self.device.guard

    def whole_run(self, trips: int, executions: Sequence[int]) -> float:
        """A whole run of so many trips in which the blocks ran so often."""
        return trips * self.trip + sum(n * price for n, price in zip(executions, self.executions, strict=True))


# -- estimate ----------------------------------------------------------------------------------------------------------

LEAST = 1.0
"""A row of the cheapest block: jumping somewhere is work as well."""


def block_costs(program: Program, backend: Backend) -> tuple[float, ...]:
    """The estimated work of one row (one lane) of each block, at least 1.0; a block's own `cost` goes before it."""
    return tuple(block_cost(program, block, backend) for block in program.blocks)


def block_cost(program: Program, block: Block, backend: Backend) -> float:
    """The same of one block."""
    return max(LEAST, _row_cost(program, block, backend))


def _row_cost(program: Program, block: Block, backend: Backend) -> float:
    return sum(item_costs(program, block, backend)) if block.cost is None else block.cost


def item_costs(program: Program, block: Block, backend: Backend) -> list[float]:
    """The estimated work of one row of each item of a block's body, whatever the block's own `cost` says."""
    found: list[float] = []
    with backend.scope(block.label):  # what is traced here may be what runs
        for item in block.body:
            match item:
                case Piece():
                    found.append(_piece_cost(program, item, backend))
                case Store():
                    found.append(stored(program, item))
    return found


def _piece_cost(program: Program, piece: Piece, backend: Backend) -> float:
    """The sum of what the parts of a piece cost, of which many may be the same."""
    known: dict[Any, float] = {}
    total = 0.0
    for part, types in parts_of(program, piece):
        key = part, *types.reads, *types.shared
        if key not in known:
            known[key] = backend.facts(part, types.reads, types.shared).cost
        total += known[key]
    return total


def dear_pieces(program: Program, number: int, prices: Prices, backend: Backend) -> frozenset[int]:
    """The pieces of a block, by their places in its body, that are better computed only if a lane takes part."""
    block, cost = program.blocks[number], prices.row_costs[number]
    if not prices.is_dear(cost):
        return frozenset()
    costs = item_costs(program, block, backend)
    share = cost / max(sum(costs), LEAST)  # of what the user says that the block costs
    pieces = (place for place, item in enumerate(block.body) if isinstance(item, Piece))
    return frozenset(place for place in pieces if prices.is_dear(share * costs[place]))


def block_row(program: Program, block: Block, backend: Backend) -> Row:
    """Return the properties of a row of one block."""
    return _row(program, block, block_cost(program, block, backend), backend)


def block_rows(program: Program, costs: Sequence[float], backend: Backend) -> tuple[Row, ...]:
    """Return the properties of a row of each block, given the `costs`."""
    return tuple(_row(program, *each, backend) for each in zip(program.blocks, costs, strict=True))


def _row(program: Program, block: Block, cost: float, backend: Backend) -> Row:
    found = []
    with backend.scope(block.label):
        for item in block.body:
            if isinstance(item, Piece):
                types = [program.types[name] for name in item.reads]
                found.append(backend.facts(item, types, [program.shared_types[name] for name in item.shared]).together)
    return Row(cost, shares=any(each.shares for each in found), rounds=any(each.rounds for each in found))


def line_costs(program: Program, backend: Backend) -> tuple[dict[Span, float], ...]:
    """`block_costs`, shared out among the statements and conditions of each block; by span."""
    shares = (_span_costs(program, block, backend) for block in program.blocks)
    return tuple(
        {span: cost * share for span, share in by_span.items()}
        for by_span, cost in zip(shares, block_costs(program, backend), strict=True)
    )


def _span_costs(program: Program, block: Block, backend: Backend) -> dict[Span, float]:
    """The part of a row's cost that is each span's; they add up to 1."""
    found: dict[Span | None, float] = dict.fromkeys(machine.spans(program, block), 0.0)
    for item in block.body:
        match item:
            case Piece(reads=reads, shared=shared, spans=spans):
                types = [program.types[name] for name in reads]
                costs = backend.facts(item, types, [program.shared_types[name] for name in shared]).line_costs
            case Store():
                spans, costs = (machine.store_span(program, item),), (float(stored(program, item)),)
        for span, cost in zip(spans, costs, strict=True):
            found[span] = found.get(span, 0.0) + cost
    known = {span: cost for span, cost in found.items() if span is not None}
    total = sum(known.values())
    return {span: cost / total if total else 1 / len(known) for span, cost in known.items()}


def stored(program: Program, store: Store) -> int:
    """Count the elements that a store writes: for a vector of positions instead of an index, all of these."""
    (array,) = leaves(program.types[store.array])
    positions = [elements(program.types[name]) for name in store.indices]
    return math.prod((*positions, *array.shape[len(positions) :]))
