"""The cost of a row of each block, by which schedules choose blocks, and expensive ones run on gathered lanes.

A static estimate from each piece's traced graph, in multiply-adds for matrix products, convolutions, solves and
factorisations, in elements for everything else: two units for one number, for both stand for the work of an
instruction or less, and only ratios of some size decide anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import machine
from pcbatch.ir.machine import Block, Piece, Program, Store
from pcbatch.ir.types import elements, leaves
from pcbatch.optimize.machine.compaction import Row
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU, Device
from pcbatch.runtime.costs.fitness import parts_of

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
