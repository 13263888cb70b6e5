"""Instances: functions at one signature each, what is known of their variables, and one round of finding that out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pcbatch.errors import Diagnostic, Span
from pcbatch.ir import program as ir
from pcbatch.ir.joins import ConflictError, Spelling
from pcbatch.ir.types import Type
from pcbatch.lowering.inference import complaints
from pcbatch.lowering.inference.static import Binding, Known, Static, meet, plain

Signature = tuple[Known | None, ...]
Key = tuple[str, tuple[Static, ...], frozenset[str]]
"""What has one instance within a cycle: a function, the values of its static parameters, the parameters given None."""


@dataclass
class Instance:
    """One function at one signature: its variables' types, the instances that it calls, and what is wrong with it.

    `users` has the user's names of variables that have another, `statics` the values of the static parameters, `empty`
    are the parameters that are given None.
    `assigned` has the types of what runs of statements give to variables that live on, by block and last op.
    `part_stores` are the stores that go into structures, as what they are then.
    `reached` are the blocks to which control may come, `decided` the arm of each branch whose condition is known.
    `bound` has the constants that each run of statements reads, by block and last op; `sized` the variables on which
    shapes depend, with one place where they do; `varied` those that were one value here and another, or none, there.
    """

    function: ir.Function
    users: Mapping[str, str] = field(default_factory=dict)
    signature: Signature = ()
    statics: Mapping[str, Static] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    calls: dict[tuple[str, int], Instance] = field(default_factory=dict)
    assigned: dict[tuple[str, int], Mapping[str, Type | None]] = field(default_factory=dict)
    part_stores: dict[tuple[str, int], ir.Primitive] = field(default_factory=dict)
    reached: frozenset[str] = frozenset()
    decided: dict[str, str] = field(default_factory=dict)
    bound: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    sized: dict[str, Span | None] = field(default_factory=dict)
    varied: dict[str, tuple[Binding, Binding]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """What there is one instance of within a cycle."""
        return self.function.name, tuple(self.statics.values()), self.empty

    def known(self, name: str) -> Known | None:
        """The type or value of variable `name`, None while it is unknown."""
        binding = self.bindings.get(name)
        return binding.known if binding is not None else None

    def type(self, name: str) -> Type | None:
        """The type of variable `name` as a lane's value."""
        return plain(self.known(name))

    @property
    def fixed(self) -> dict[str, Static]:
        """The parameters that are no lane's: static ones, and those that are given a text or a function."""
        return {**self.statics, **odd_parameters(self.function, self.known)}

    @property
    def results(self) -> list[Type | None]:
        """The types of the results."""
        return [self.type(name) for name in self.function.results]


def odd_parameters(function: ir.Function, known: Callable[[str], Known | None]) -> dict[str, Static]:
    """The parameters that are given something that no lane can keep, a text or a function."""
    given = ((name, known(name)) for name in function.parameters)
    return {name: each for name, each in given if isinstance(each, Static) and plain(each) is None}


class RoundMode(NamedTuple):
    """How a round goes: whether it reports what is wrong, and whether it finds no values for what was a type before."""

    report: bool
    widens: bool


class Round:
    """The bindings of one instance in the making: the last round's are read, this round's are joined anew.

    `spelling` is how complaints write operations.
    """

    def __init__(self, instance: Instance, mode: RoundMode, spelling: Spelling):
        self.instance, self.spelling = instance, spelling
        self.new: dict[str, Binding] = {}
        self.mode = mode

    def known(self, name: str) -> Known | None:
        """What to read now: the last round's type or value, or this round's where the last knew nothing."""
        known = self.instance.known(name)
        return known if known is not None or name not in self.new else self.new[name].known

    @property
    def fixed(self) -> frozenset[str]:
        """The parameters that are no lane's; see `Instance.fixed`."""
        return frozenset({**self.instance.statics, **odd_parameters(self.instance.function, self.known)})

    def bind(self, name: str, known: Known | None, span: Span | None) -> None:
        """Join `known` into the variable; a conflict leaves it as it is, and is reported with both assignments."""
        if self.mode.widens and isinstance(known, Static) and self.instance.known(name) == plain(known):
            known = plain(known)
        old = self.new.setdefault(name, Binding(known, span))
        try:
            joined = meet(old.known, known)
        except ConflictError as conflict:
            user, told = self.instance.users.get(name, name), conflict.told(self.spelling)
            halves = complaints.quotient(self.instance.function, name, self.instance.users)
            self.complain(complaints.conflict(user, old, Binding(known, span), told, halves))
            return
        if known != old.known and Static in (type(known), type(old.known)):
            self.instance.varied.setdefault(name, (old, Binding(known, span)))
        if joined != old.known:
            self.new[name] = Binding(joined, span)

    def complain(self, *found: Diagnostic) -> None:
        """Note what is wrong, if this is the round that reports."""
        if self.mode.report:
            self.instance.diagnostics += found


def reachable(root: Instance) -> list[Instance]:
    """Instances in the order of their first call, breadth first from `root`, as the frontend orders functions."""
    order = [root]
    for instance in order:  # grows while it is walked
        places = {block.label: place for place, block in enumerate(instance.function.blocks)}
        for key in sorted(instance.calls, key=lambda key: (places[key[0]], key[1])):
            if not any(instance.calls[key] is seen for seen in order):
                order.append(instance.calls[key])
    return order


def still_decided(instance: Instance, arms: Mapping[str, str]) -> bool:
    """Whether the branches of `instance` to which control comes are decided as in `arms`, by block."""
    return all(instance.decided.get(label) == arm for label, arm in arms.items() if label in instance.reached)


def changed_bindings(
    before: Mapping[Key, Mapping[str, Binding]], now: Mapping[Key, Mapping[str, Binding]]
) -> Iterator[tuple[str, Binding, Binding]]:
    """The variables whose types differ between two rounds, with both bindings."""
    for key, bindings in now.items():
        old = before.get(key, {})
        if key not in before and not bindings:
            yield "", Binding(), Binding()
        for name in {**old, **bindings}:
            first, second = old.get(name, Binding()), bindings.get(name, Binding())
            if first.known != second.known:
                yield name, first, second
