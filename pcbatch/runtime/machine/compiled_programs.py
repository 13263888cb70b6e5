"""The programs that a machine compiles for a pool of lanes: whole runs and legs, sizes of stacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.outcome import Outcome, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.result_packing import Returned
from pcbatch.runtime.machine.segments import Legs, Snapshot
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.store.cache_session import Name

NO_BUDGET = 2**63 - 1
"""A number of trips that no run reaches."""


class Programs:
    """The programs of one machine, counted in `statistics`; a cache on disk knows them by `digest`, as `Machine`."""

    def __init__(self, context: Context, jit: bool, digest: Callable[[], str | None]):
        self.program, self.backend, self.notes = context.program, context.backend, context.notes
        self.jit, self.statistics = jit, Statistics()
        self._digest = digest
        self._made: dict[Any, Any] = {}

    def returned(self, legs: Legs, pool: Pool) -> Returned:
        """Return the packing of a whole run's results: in few arrays, unless they become part of a caller's program."""
        packed = legs.limits.roomy and isinstance(pool.examples, int) and self.backend.runs_now()
        key = ("returned", legs.limits.roomy, pool.examples if packed else None)
        return self.once(key, lambda: Returned(legs, pool.examples if packed else None))

    def whole_run(self, legs: Legs, pool: Pool, returned: Returned | None = None) -> Callable[..., Any]:
        """The program of a whole run in a static pool, or the one for all others.

        It takes the leaves of arguments and shared operands, the first capacity where stacks grow, and the number of
        examples; it gives the last capacity, the counters and the outputs as `returned` packs them.
        """
        pool, gives = pool.static, returned or Returned(legs, None)

        def program(*arrays: Array) -> list[Array]:
            with self.statistics.tracing(counts=legs.limits.roomy):
                return gives.pack(self._traced_run(legs, list(arrays), pool))

        jit = self.jit and legs.limits.roomy
        room = [] if pool.whole else [pool.examples]
        kind = ("run", legs.limits.roomy, pool.lanes, bool(gives.specs), *room)
        return self.once(kind, lambda: self.backend.compile(program, jit, name=self.name_of(*kind)))

    def _traced_run(self, legs: Legs, arrays: list[Array], pool: Pool) -> Snapshot:
        count = len(legs.layout.inputs)
        arguments, rest = arrays[:count], arrays[count:]
        examples: Any = rest.pop()
        if pool.examples is None:
            # A shape is a constant to the compiler, a value need not be.
            room = self.backend.lanes_of(arguments[0]) if arguments else examples
            examples = None if pool.whole else examples
            pool = Pool(room if pool.whole else pool.lanes, room, pool.whole)
        until = self.backend.array(NO_BUDGET, "int64")
        if legs.limits.roomy:
            snapshot = legs.begin(arguments, pool, legs.limits.largest_capacity, examples)
            return legs.leg(snapshot, rest, until).snapshot
        snapshot = legs.begin(arguments, pool, rest.pop(), examples)
        compiled = self.leg(legs, pool)
        return legs.all_legs(lambda s: legs.unpack(compiled(*legs.flat(s), *rest, until), s), snapshot).snapshot

    def leg(self, legs: Legs, pool: Pool) -> Callable[..., Any]:
        """The program of a leg on stacks of any size: from flat snapshot, shared operands and `until` to `Arrived`."""
        pool = pool.static

        def program(*arrays: Array) -> list[Array]:
            with self.statistics.tracing(counts=True):
                remaining = iter(arrays)
                snapshot = legs.snapshot(remaining, pool)
                *shared, until = remaining
                return legs.pack(legs.leg(snapshot, shared, until))

        specs = [*legs.specs(pool, None), *self.operand_specs, ("int64", ())]
        name = self.name_of("leg", pool.whole, pool.lanes, pool.examples)
        return self.once(("leg", pool), lambda: self.backend.compile(program, self.jit, specs, name))

    @cached_property
    def operand_specs(self) -> list[Spec]:
        """The dtypes and shapes of the leaves of all shared operands."""
        operands = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        return [(leaf.dtype, leaf.shape) for leaf in operands]

    def name_of(self, *part: Any) -> Name:
        """Return the name of a part of the program on disk."""
        return Name(self._digest, (self.jit, *part), self.statistics.note, self.notes)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class Sizes:
    """The sizes of stacks that have occurred; `capacity`, of live calls, is that with which the next run starts."""

    def __init__(self, limits: Limits):
        self.capacity = limits.first_capacity
        self._limits = limits
        self._compiled: dict[tuple[Pool, bool], set[int]] = {}

    def learn(self, last: int, outcome: Outcome) -> None:
        """Remember that stacks have grown to a capacity of `last`: the next run starts there.

        What lanes needed that failed with MAX_DEPTH, maybe in a recursion without end, no other run is to pay for; nor
        what lanes need of which that is not known yet.
        """
        if last > self.capacity:
            untold = (outcome.status == LaneStatus.MAX_DEPTH) | (outcome.status == LaneStatus.UNFINISHED)
            if not bool(outcome.backend.any(untold)):
                self.capacity = last

    def compiled(self, pool: Pool, first: int, last: int, *, direct: bool) -> int:
        """Return the number of sizes compiled by a run whose stacks grew from capacity `first` to `last`.

        XLA has compiled the leg for each size on the way, the first one when the leg was traced; and it compiles anew
        what is called `direct`ly, as slices are, rather than from the graph of a whole run.
        """
        key = pool.static
        seen = self._compiled.setdefault((key, direct), set() if (key, not direct) in self._compiled else {first})
        new = {first, *self._limits.sizes(first, last)} - seen
        seen |= new
        return len(new)
