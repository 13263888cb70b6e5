"""The interface between the machine's loop and its schedules: a trip, and what a schedule may do with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.effects import successors
from pcbatch.ir.machine import Program
from pcbatch.runtime.backends.protocol import Array, Backend, State
from pcbatch.runtime.costs.estimate import Prices

# -- block graph -------------------------------------------------------------------------------------------------------
# The ways of lanes from block to block, and the order in which a trip goes through the blocks.


@dataclass(frozen=True)
class BlockGraph:
    """The control flow of a program of `len(successors)` blocks.

    `successors[b]` are the places to which block `b` can send lanes, those beyond the blocks being ends; at the blocks
    of `sync` lanes wait for each other, some of which are `deferred`. `order` has the blocks in the order of a trip
    (see `optimize.machine.block_order`); those where lanes wait for each other come first, for it is at the start of a
    trip that they may go on.
    """

    successors: Sequence[Sequence[int]]
    sync: Collection[int] = ()
    order: Sequence[int] = ()
    deferred: Collection[int] = ()

    def __post_init__(self) -> None:
        if not self.order:
            numbers = range(len(self.successors))
            object.__setattr__(self, "order", sorted(numbers, key=lambda number: number not in self.sync))

    @classmethod
    def of(cls, program: Program) -> BlockGraph:
        """The ways of lanes in `program`."""
        deferred = [number for number, block in enumerate(program.blocks) if block.deferred is not None]
        sync = [number for number, block in enumerate(program.blocks) if block.sync or block.deferred is not None]
        return cls(successors(program), sync, list(program.order), deferred=deferred)

    @cached_property
    def meetings(self) -> list[int]:
        """The blocks at which lanes wait for each other since the user says so."""
        return [number for number in self.sync if number not in self.deferred]

    @cached_property
    def onward(self) -> list[list[int]]:
        """The blocks to which each can send lanes and at which they do not wait for others."""
        blocks = [number for number in range(len(self.successors)) if number not in self.sync]
        return [[place for place in dict.fromkeys(places) if place in blocks] for places in self.successors]

    @cached_property
    def before(self) -> list[list[int]]:
        """The blocks, for each block, from which lanes can come to it, and to which none can go from it.

        They are in components of the flow that are earlier than its own.
        """
        return [[other for other in self._beyond if number in self._beyond[other]] for number in self._beyond]

    def gathering(self, expensive: Collection[int]) -> dict[frozenset[int], list[int]]:
        """The expensive blocks that lie one behind the other, each with the blocks whose lanes it waits for.

        A block waits for lanes that can come to another one before, from which they cannot come back to that: a loop
        behind a loop. Not for those at the entry, if that is no loop: from there all lanes go at once.
        """
        found: dict[frozenset[int], list[int]] = {}
        for number in expensive:
            earlier = [other for other in expensive if other in self.before[number] and (other or self._returns)]
            leading = (other for each in earlier for other in (each, *self._coming[each]))
            places = frozenset(other for other in leading if other in self.before[number])
            if earlier:
                found.setdefault(places, []).append(number)
        return found

    @cached_property
    def _returns(self) -> bool:
        """Return whether lanes can come back to the entry."""
        return any(0 in places for places in self.successors)

    @cached_property
    def _coming(self) -> list[set[int]]:
        """The blocks, for each block, from which lanes can come to it."""
        found: list[set[int]] = [set() for _ in self.successors]
        changes = True
        while changes:
            changes = False
            for number, places in enumerate(self.successors):
                for place in (each for each in places if each < len(found)):
                    more = {number, *found[number]} - found[place]
                    found[place] |= more
                    changes = changes or bool(more)
        return found

    @cached_property
    def _beyond(self) -> dict[int, set[int]]:
        """The blocks, for each block, to which lanes can go from it, and from which none can come back."""
        edges = {
            number: [place for place in places if place < len(self.successors)]
            for number, places in enumerate(self.successors)
        }
        beyond: dict[int, set[int]] = {}
        within: dict[int, set[int]] = {}
        for members in map(set, components(edges)):  # what lies behind comes first
            found: set[int] = set()
            for place in {place for number in members for place in edges[number]} - members:
                found |= within[place] | beyond[place]
            within.update(dict.fromkeys(members, members))
            beyond.update(dict.fromkeys(members, found))
        return {number: beyond[number] for number in edges}

    @cached_property
    def ahead(self) -> list[list[int]]:
        """The blocks of `onward` that come later in `order`."""
        places = {number: place for place, number in enumerate(self.order)}
        return [
            [each for each in onward if places.get(each, -1) > places.get(number, len(places))]
            for number, onward in enumerate(self.onward)
        ]


# -- schedule step -----------------------------------------------------------------------------------------------------

Again = Callable[[Array], Array]
"""A function from the number of lanes that wait at a block that has just run (a scalar) to whether it runs again."""


@dataclass(frozen=True)
class BlockCounts:
    """Counts of a block in a trip, all scalars; the last three are None for a block that can run only once."""

    first: Array
    """The number of lanes for which it ran at first; where it is not `chosen`, of those that wait."""
    chosen: Array | None = None
    """True if it ran; None for a block that runs wherever lanes wait at it."""
    times: Array | None = None
    """The number of its runs."""
    lanes: Array | None = None
    """The number of lanes for which it ran, all times together."""
    rows: Array | None = None
    """The number of rows that it computed, all times together."""


Guarded = Callable[
    [int, Array, Array, State, Sequence[int], "Again | None"], tuple[State, list[Array], BlockCounts, Array]
]
"""`guarded(number, predicate, lanes, state, followed, again) -> (state, arrivals, turns, left)`.

Runs block `number` where `predicate` holds for the `lanes` lanes (a scalar) that wait there, and as often again as
`again` says, where one is given and the block can send lanes to itself. `arrivals[i]` is how many lanes then wait, able
to run, at block `followed[i]`, and `left` how many still wait at block `number`. `turns` says what the block did.
"""

Switched = Callable[[Array, State], State]
"""`switched(number, state) -> state`: runs block `number`, an int32 scalar, for all lanes that wait there."""

Memory = Any
"""The state that a schedule carries from trip to trip: int64 `[blocks]`, zeros before the first."""


class Trip:
    """One trip: the state on its way through guarded blocks, and the numbers of lanes that wait.

    `waiting[b]` is the number (an int32 scalar) of lanes that wait at block `b` and are able to run it: at the start of
    the trip (`counted`: int32 `[blocks]`) and, as far as `run` was told to follow lanes, from then on; `recount` makes
    all of them true again. At a block where lanes wait for others (`pcbatch.sync()`) none are counted unless it is
    their turn. `flow` knows where lanes go, and a good order for the blocks. Where the pool `refills`, lanes begin
    with other examples while others run.
    """

    def __init__(
        self,
        backend: Backend,
        state: State,
        waiting: Array,
        count: Callable[[State], Array],
        guarded: Guarded,
        flow: BlockGraph,
        prices: Callable[[], Prices],
        switched: Switched | None = None,
        refills: bool = False,
    ):
        self.backend, self.state, self.flow = backend, state, flow
        self.blocks = range(len(flow.successors))
        self.counted = waiting
        self.waiting = backend.unstack(waiting, len(self.blocks))
        self._count, self._guarded, self._prices = count, guarded, prices
        self._switched = switched
        self._ran: dict[int, BlockCounts] = {}
        self.refills = refills

    @property
    def prices(self) -> Prices:
        """The costs of blocks; estimated when they are first asked for."""
        return self._prices()

    # What was done in the trip, to be asked when all its blocks have run.

    @cached_property
    def ran(self) -> Array:
        """The numbers of lanes for which blocks have run in this trip, at first: int32 `[blocks]`."""
        return self._by_block([turns.first for turns in self._turns()])

    @cached_property
    def times(self) -> Array:
        """The numbers of runs of blocks in this trip: int32 `[blocks]`."""
        once = self.backend.cast(self.ran > 0, "int32")
        return self._of_repeated([turns.times for turns in self._turns()], once)

    @cached_property
    def lanes(self) -> Array:
        """The numbers of lanes for which blocks have run in this trip, all times together: int32 `[blocks]`."""
        return self._of_repeated([turns.lanes for turns in self._turns()], self.ran)

    def rows(self, of_others: Array) -> Array:
        """The numbers of rows of blocks in this trip, if those that can run only once computed `of_others`."""
        return self._of_repeated([turns.rows for turns in self._turns()], of_others)

    def _of_repeated(self, numbers: Sequence[Array | None], others: Array) -> Array:
        """`numbers` of the blocks that have one and were chosen, `others` of the others: `[blocks]`."""
        if all(number is None for number in numbers):
            return others
        backend, nobody = self.backend, self.backend.constant(0)
        known = self._by_block([nobody if number is None else number for number in numbers])
        return backend.where(backend.array([number is not None for number in numbers], "bool"), known, others)

    def _turns(self) -> list[BlockCounts]:
        return [self._ran.get(number, BlockCounts(self.backend.constant(0))) for number in self.blocks]

    def _by_block(self, numbers: Sequence[Array]) -> Array:
        """Return the element of `numbers` for each block that was chosen, else 0: int32 `[blocks]`."""
        # Vectors at once: scalar by scalar XLA would compile a kernel for every block.
        backend, all_turns, found = self.backend, self._turns(), self.backend.stack(list(numbers))
        if all(turns.chosen is None for turns in all_turns):
            return found
        always = backend.constant(0) == 0
        chosen = backend.stack([always if turns.chosen is None else turns.chosen for turns in all_turns])
        return backend.where(chosen, found, backend.constant(0))

    def recount(self) -> Array:
        """Count afresh how many lanes wait at each block: int32 `[blocks]`. It costs a pass over the lanes."""
        counted = self._count(self.state)
        self.waiting = self.backend.unstack(counted, len(self.blocks))
        return counted

    def onward(self, number: int) -> list[int]:
        """The blocks to which `number` can send lanes and at which they do not wait for others."""
        return self.flow.onward[number]

    def ahead(self, number: int) -> list[int]:
        """The blocks among them that come later in `flow.order`."""
        return self.flow.ahead[number]

    def run_block(
        self, number: int, predicate: Array | None, follow: Sequence[int] = (), again: Again | None = None
    ) -> None:
        """Run block `number`, where the bool scalar `predicate` holds, for the lanes that wait there.

        Where it holds, lanes must wait there; None is wherever they do, and costs less bookkeeping than to say so. The
        lanes that then wait at the blocks `follow` are counted there; that costs a block that runs a reduction over the
        lanes for each. All of `onward(number)` that may run later in the trip must be among them, unless there is a
        `recount` before they run, or lanes would run uncounted.

        A block runs once in a trip; but where `again` is given, one that can send lanes to itself runs for those lanes
        again as long as that holds, up to `MOST_TURNS` times.
        """
        backend, lanes = self.backend, self.waiting[number]
        self.state, arrivals, turns, left = self._guarded(
            number,
            lanes > 0 if predicate is None else predicate,
            lanes,
            self.state,
            follow,
            again if number in self.flow.onward[number] else None,
        )
        self._ran[number] = replace(turns, chosen=predicate)
        self.waiting[number] = left if predicate is None else backend.where(predicate, left, lanes)
        for place, count in zip(follow, arrivals, strict=True):
            self.waiting[place] = backend.add(self.waiting[place], count)

    def switch_to(self, number: Array) -> None:
        """Run block `number`, an int32 scalar, for the lanes that wait there, which must be some; no other block runs.

        That takes the whole state through a conditional with an arm for every block.
        """
        assert self._switched is not None, "this trip can only run guarded blocks"
        self.state = self._switched(number, self.state)
        self._ran = {
            block: BlockCounts(self.waiting[block], chosen=self.backend.equal(number, block)) for block in self.blocks
        }


class Schedule(Protocol):
    """A rule that chooses blocks."""

    @property
    def name(self) -> str:
        """The name by which options choose it."""

    def trip(self, trip: Trip, memory: Memory) -> Memory:
        """A function that asks `trip` to run blocks, at least one at which lanes wait; it returns its memory."""
