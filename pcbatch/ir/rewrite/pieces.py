"""Pieces of machine programs, made anew of some of their statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from pcbatch.ir.analysis.effects import read
from pcbatch.ir.expressions import Written, path_of, walk
from pcbatch.ir.machine import Block, Item, Piece, Return, Store, Straight, checked_sites
from pcbatch.ir.payload import Compute
from pcbatch.ir.program import Exit, Primitive, reads, writes


def is_divisible(item: Item) -> bool:
    """Tell whether an item can be taken apart: a store, or a piece of primitives that is under no condition."""
    if item.predicate is not None:
        return False
    if isinstance(item, Store):
        return True
    plain = item.function is None and not item.speculative and not item.unnamed
    return plain and all(isinstance(each.op, Primitive) for each in item.statements)


def assembled(items: Sequence[Item], wanted: Collection[str], shared: Sequence[str]) -> tuple[Item, ...]:
    """Items, of which pieces of one scope that follow each other become one, if they can be taken apart again.

    Of what their statements give, pieces write what is `wanted`, or read behind them. `shared` are the program's shared
    operands.
    """
    found: list[Item] = []
    for kind, run in groupby(items, key=_kind):
        if kind is None:
            found += run
            continue
        pieces = [item for item in run if isinstance(item, Piece)]
        known = dict.fromkeys(name for each in pieces for name in each.shared)
        statements = tuple(one for each in pieces for one in each.statements)
        found.append(replace(pieces[0], statements=statements, shared=tuple(known)))
    needed = {*wanted}
    for place, item in reversed([*enumerate(found)]):
        if isinstance(item, Piece):
            found[place] = item = _with_operands(item, needed, shared)
        needed |= {*read(Block("", (item,), Return()))}
    return tuple(found)


def _kind(item: Item) -> str | None:
    """The scope of a piece that can be taken apart; None for all else."""
    return item.scope if isinstance(item, Piece) and is_divisible(item) else None


def _with_operands(piece: Piece, wanted: Collection[str], shared: Sequence[str]) -> Piece:
    """The piece with what its statements read, write and check; one that cannot be taken apart keeps what is shared."""
    ops = [each.op for each in piece.statements if not isinstance(each.op, Exit)]
    reads_: dict[str, None] = {}
    assigned: dict[str, None] = {}
    for op in ops:
        reads_ |= dict.fromkeys(name for name in reads(op) if name not in assigned and name not in shared)
        assigned |= dict.fromkeys(writes(op))
    used = [name for name in piece.shared if not is_divisible(piece) or any(_names(op, name) for op in ops)]
    written = tuple(name for name in assigned if name in wanted)
    sites = checked_sites(piece.statements)
    return replace(piece, reads=tuple(reads_), writes=written, shared=tuple(used), sites=sites)


def _names(op: Straight, shared: str) -> bool:
    """Tell whether an op has to do with a shared operand, which may be a path in its code."""
    if shared in reads(op) or not isinstance(op, Primitive) or not isinstance(op.code, Compute):
        return shared in reads(op)
    nodes = [*walk(op.code.expression)]
    return any(isinstance(each, Written) or path_of(each) == shared for each in nodes)
