"""The values of names behind the first block of a group of calls, or the reason why they are unknown there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

DEPENDS = "what it is given depends on what the call before it gives"
OPAQUE = "what it is given is computed by code of which nothing is known, which is not done early"
STORED = "what it is given has an element stored into it in between, which is not done early"
CHOSEN = "what it is given depends on the arm of a branch in between"
BENEATH = "what it is given was saved before, where it cannot be read early"
ASKS = "whether it is made depends on what a call before it gives"
ASKS_UNSEEN = "whether it is made cannot be said early"


@dataclass(frozen=True)
class Unknown:
    """A value unknown where a group begins: the reasons, and the variables on whose stacks its operands lie."""

    reasons: frozenset[str] = frozenset()
    beneath: frozenset[str] = frozenset()

    @classmethod
    def because(cls, reason: str) -> Unknown:
        """A value that is unknown for one reason."""
        return cls(frozenset((reason,)))

    @classmethod
    def saved(cls, variable: str) -> Unknown:
        """A value that was saved on the stack of `variable` before the group begins."""
        return cls(frozenset((BENEATH,)), frozenset((variable,)))

    @property
    def why(self) -> str:
        """The reason that weighs most."""
        order = (DEPENDS, ASKS, OPAQUE, STORED, CHOSEN, ASKS_UNSEEN, BENEATH)
        return min(self.reasons, key=lambda reason: order.index(reason) if reason in order else -1)

    @property
    def is_beneath(self) -> bool:
        """Return whether it would be known if the stacks' contents were."""
        return self.reasons == {BENEATH}

    @property
    def asked(self) -> Unknown:
        """The same of a call that is made on a condition which is not known."""
        return self if self.is_beneath else Unknown.because(ASKS if DEPENDS in self.reasons else ASKS_UNSEEN)


Value = str | Unknown
"""The name, at the end of the group's first block, of a value."""


def together(values: Iterable[Value]) -> Unknown | None:
    """The unknown part of several values; None if nothing is unknown."""
    unknown = [value for value in values if isinstance(value, Unknown)]
    if not unknown:
        return None
    reasons = (reason for each in unknown for reason in each.reasons)
    return Unknown(frozenset(reasons), frozenset(name for each in unknown for name in each.beneath))


@dataclass
class Values:
    """The values of names, in terms of the end of the group's first block."""

    names: dict[str, Value] = field(default_factory=dict)
    stacks: dict[str, list[Value]] = field(default_factory=dict)
    before: dict[str, Value] = field(default_factory=dict)
    """`names` as they were before the body of the present block, after its pops."""

    def of(self, name: str) -> Value:
        """The value of `name` now."""
        return self.names.get(name, name)

    def copy(self) -> Values:
        """The same, apart."""
        stacks = {name: [*stack] for name, stack in self.stacks.items()}
        return replace(self, names=dict(self.names), stacks=stacks, before=dict(self.before))

    def met(self, other: Values) -> Values | None:
        """The values that are known where two arms come together; None where they leave stacks that differ."""
        if {k: v for k, v in self.stacks.items() if v} != {k: v for k, v in other.stacks.items() if v}:
            return None
        names = {name: _met(self.of(name), other.of(name)) for name in (*self.names, *other.names)}
        return Values(names, self.stacks)


def _met(one: Value, other: Value) -> Value:
    return one if one == other else together((one, other)) or Unknown.because(CHOSEN)
