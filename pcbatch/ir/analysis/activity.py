"""The variables and blocks of a machine program through which a gradient flows.

A variable is *active* if it holds floats, depends on floats of a parameter or shared operand that is differentiated,
and can reach a result. Two least solutions, one along the flow of values and one against it; where control goes plays
no part, so a name that is used for several things counts as all of them. Where calls are forked, what these are
given and what they give passes from lane to lane.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from pcbatch.ir.analysis.parallel_call_groups import Group, groups
from pcbatch.ir.machine import Block, Piece, Program, Store
from pcbatch.ir.types import TensorType, Type, leaves

Names = frozenset[str]


@dataclass(frozen=True)
class Activity:
    """The active `variables` and `shared` operands, and the numbers of the active `blocks`.

    A block is active if it writes, pops, pushes or stores to an active variable, gives one to a call that it forks, or
    has one from it. Blocks that no lane comes to are not.
    """

    variables: Names
    shared: Names
    blocks: tuple[int, ...]

    def is_active(self, piece: Piece) -> bool:
        """Return whether a gradient flows through `piece`; values written by others are constants to it."""
        comes_in = not self.variables.isdisjoint(piece.reads) or not self.shared.isdisjoint(piece.shared)
        return comes_in and not self.variables.isdisjoint(piece.writes)


def has_gradient(type_: TensorType) -> bool:
    """Return whether there are gradients of such numbers."""
    return type_.dtype.startswith(("float", "bfloat", "complex"))


def activity(
    program: Program, parameters: Collection[str] | None = None, shared: Collection[str] | None = None
) -> Activity:
    """Return the activity when these parameters and shared operands are differentiated (None: all)."""
    floats = frozenset(name for name, type_ in program.types.items() if _has_floats(type_))
    operands = frozenset(name for name, type_ in program.shared_types.items() if _has_floats(type_))
    wanted = operands if shared is None else operands.intersection(shared)
    sources = floats.intersection(program.parameters if parameters is None else parameters)
    every = [group for group in groups(program) if group.block in program.order]
    reached = sorted(program.order) if every else range(len(program.blocks))
    moves = [move for number in reached for move in _moves(program.blocks[number])]
    moves += [move for group in every for move in _handed_over(group)]

    def forward(known: Names) -> Iterator[Iterable[str]]:
        for given, same, taken in moves:
            if not known.isdisjoint(given) or not wanted.isdisjoint(same):
                yield taken

    def backward(known: Names) -> Iterator[Iterable[str]]:
        for given, _, taken in moves:
            if not known.isdisjoint(taken):
                yield given

    varied = _solve(sources, forward, floats)
    useful = _solve(floats.intersection(program.results), backward, floats)
    variables = varied & useful
    read = {name for _, same, taken in moves if not variables.isdisjoint(taken) for name in same}
    touched = {number: {*_touched(program.blocks[number])} for number in reached}
    for group in every:
        touched[group.block].update(variable for member in group.members for variable, _ in member.call.given)
        touched[group.join].update(name for member in group.members for name, _ in member.call.results)
    blocks = (number for number, names in touched.items() if not variables.isdisjoint(names))
    return Activity(variables, wanted & read, tuple(blocks))


def _has_floats(type_: Type) -> bool:
    return any(map(has_gradient, leaves(type_)))


def _solve(start: Names, step: Callable[[Names], Iterator[Iterable[str]]], within: Names) -> Names:
    """The least set with `start` to which `step` adds nothing, of names `within`."""
    known, before = start, None
    while known != before:
        before = known
        known = known.union(*step(known)) & within
    return known


_Move = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Variables and shared operands of which values are made, and the variables that take these."""


def _moves(block: Block) -> Iterator[_Move]:
    for item in block.body:
        match item:
            case Piece(reads=reads, shared=shared, writes=writes):
                yield reads, shared, writes
            case Store(value=value, array=array):
                yield (value,), (), (array,)
    for push in block.pushes:
        if push.saved is not None:  # what is pushed is popped into the same variable
            yield (push.saved,), (), (push.variable,)


def _handed_over(group: Group) -> Iterator[_Move]:
    for member in group.members:
        yield from (((name,), (), (variable,)) for variable, name in member.call.given)
        yield from (((variable,), (), (name,)) for name, variable in member.call.results)


def _touched(block: Block) -> Iterator[str]:
    """The variables that a block pops, writes, stores to or pushes."""
    yield from block.pops
    for item in block.body:
        yield from item.writes if isinstance(item, Piece) else (item.array,)
    yield from (push.variable for push in block.pushes)
