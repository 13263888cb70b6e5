"""The choice of a form: whether a program can be native, and whether that, or XLA, is better for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pcbatch.errors import Span
from pcbatch.ir.analysis import effects
from pcbatch.ir.analysis.dataflow import components
from pcbatch.ir.analysis.effects import Loop, Node, blocks_of, is_framed, nest, nest_with_calls
from pcbatch.ir.machine import Block, Piece, Program, PushJump, Step, Store, store_span
from pcbatch.ir.types import elements, is_number, leaves
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU


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
    pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
    for found in backend.native_obstacles([(piece, signature_of(program, piece)) for piece in pieces]):
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
    obstacles = backend.native_obstacles([(piece, signature_of(program, piece)) for _, piece in pieces])
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
