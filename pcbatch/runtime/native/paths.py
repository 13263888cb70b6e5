"""When a lane comes to a block, as a formula over the branches on its way there, kept short while code is made.

Of a program counter the compiler can tell nothing. A formula that says "after this branch or after its other arm" it
can, and here it is "always" already, so nothing is computed for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from pcbatch.runtime.backends.protocol import Array, Backend

LONGEST = 6
"""Terms of a formula beyond which it is computed and stands for itself."""

Term = frozenset[tuple[int, bool]]
"""Numbers of bools, and whether each is to hold or not: all of them are."""


@dataclass(frozen=True)
class When:
    """A formula: one of some terms holds. Without terms it never does, with an empty one always."""

    terms: frozenset[Term]


NEVER, ALWAYS = When(frozenset()), When(frozenset([frozenset()]))


class Paths:
    """The formulas of one turn through some blocks."""

    def __init__(self, backend: Backend):
        self.backend = backend
        self._bools: list[Array] = []
        self._numbers: dict[int, int] = {}
        self._computed: dict[When, Array] = {}

    def _number(self, condition: Array) -> int:
        if id(condition) not in self._numbers:
            self._numbers[id(condition)] = len(self._bools)
            self._bools.append(condition)
        return self._numbers[id(condition)]

    def and_(self, when: When, condition: Any, holds: bool = True) -> When:
        """`when`, and the scalar bool `condition` holds, or does not. None is a condition that always holds."""
        if condition is None:
            return when if holds else NEVER
        literal, opposite = ((self._number(condition), each) for each in (holds, not holds))
        return When(frozenset(term | {literal} for term in when.terms if opposite not in term))

    def or_(self, first: When, second: When) -> When:
        """Either."""
        terms = _simplified(first.terms | second.terms)
        if len(terms) <= LONGEST:
            return When(terms)
        return self.and_(ALWAYS, self._either([self._term(term) for term in sorted(terms, key=sorted)]))

    def computed(self, when: When) -> Array | None:
        """The scalar bool that a formula is; None: it always holds."""
        if when == ALWAYS:
            return None
        if when not in self._computed:
            terms = [self._term(term) for term in sorted(when.terms, key=sorted)]
            self._computed[when] = self._either(terms)
        return self._computed[when]

    def _either(self, bools: list[Array]) -> Array:
        return reduce(lambda a, b: a | b, bools) if bools else self.backend.constant_bool(False)

    def _term(self, term: Term) -> Array:
        literals = [self._bools[number] if holds else ~self._bools[number] for number, holds in sorted(term)]
        return reduce(self.backend.both, literals)


def _simplified(terms: frozenset[Term]) -> frozenset[Term]:
    """Fewer terms that say the same: "a and b, or a and not b" is "a", and "a, or a and b" is."""
    found = set(terms)
    while True:
        for one in found:
            pair = next((other for other in found if _is_pair(one, other)), None)
            if pair is not None:
                found -= {one, pair}
                found.add(one & pair)
                break
            if any(other < one for other in found):
                found.remove(one)
                break
        else:
            return frozenset(found)


def _is_pair(one: Term, other: Term) -> bool:
    """Whether two terms differ in whether one bool holds, and in nothing else."""
    differ = one ^ other
    return len(differ) == 2 and len({number for number, _ in differ}) == 1
