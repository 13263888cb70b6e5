"""A pool of lanes: an example runs in a lane.

How many lanes there are, and which examples they hold, is a matter of the pool alone. Inputs, results, status and steps
lie by example, so whatever a pool does with its lanes, an example gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Pool:
    """`lanes` lanes, and arrays for `examples` examples: ints, or int32 scalars where they are known only when it runs.

    The state says which example a lane holds. It need not say so in a pool that is `whole`: lane i holds example i, as
    many lanes as examples, none of them yet to start. Then what lies by lane lies by example too, and nothing has to be
    moved or kept. There may be fewer examples than that (`batch_buckets`): the last lanes are free then, throughout.
    In any other pool examples wait in a queue (`ends.take_next`), which also says how many there are: there may be
    fewer than the arrays have room for, so that what is compiled for a pool serves many numbers of examples.
    """

    lanes: Any
    examples: Any
    whole: bool = False

    @classmethod
    def of(cls, examples: Any, lanes: int | None = None) -> Pool:
        """The pool in which a run of so many examples begins; a lane for each of them unless `lanes` says how many."""
        if lanes is None or (isinstance(examples, int) and examples in (0, lanes)):
            return cls(examples, examples, whole=True)
        return cls(lanes, examples)

    @classmethod
    def at_most(cls, most: int, examples: Any) -> Pool:
        """A pool of `most` lanes at most, for so many examples: one of a few, for many numbers of them.

        Few examples get a part of the lanes, of which there are a quarter, a sixteenth, .. of `most`; the arrays of
        many have `most` times a power of two elements. A number of examples that is not known has a pool of its own.
        """
        if not isinstance(examples, int):
            return cls(most, examples)
        if not examples:
            return cls.of(examples)
        lanes = most
        while examples <= -(-lanes // STEP) < lanes:
            lanes = -(-lanes // STEP)
        room = lanes
        while room < examples:
            room *= 2
        return cls(lanes, room)

    @property
    def static(self) -> Pool:
        """The statically known part of the pool, None standing for an unknown number: a key."""

        def known(number: Any) -> int | None:
            return number if isinstance(number, int) else None

        return replace(self, lanes=known(self.lanes), examples=known(self.examples))


STEP = 4
"""Step in size of pools for few examples. Each size is compiled anew, so few of them."""
