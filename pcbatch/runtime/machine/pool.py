"""A pool of lanes: a lane is a place to run in, an example is what runs there.

How many lanes there are, and which examples they hold, is a matter of the pool alone. Inputs, results, status and steps
lie by example, so whatever a pool does with its lanes, an example gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Pool:
    """`lanes` lanes for `examples` examples: ints, or int32 scalars where they are known only when a program runs.

    The state says which example a lane holds. It need not say so in a pool that is `whole`: lane i holds example i, as
    many lanes as examples, none of them free or yet to start. Then what lies by lane lies by example too, and nothing
    has to be moved or kept.
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

    @property
    def static(self) -> Pool:
        """What is known of it when a program is traced, None standing for a number that is not: a key."""

        def known(number: Any) -> int | None:
            return number if isinstance(number, int) else None

        return replace(self, lanes=known(self.lanes), examples=known(self.examples))
