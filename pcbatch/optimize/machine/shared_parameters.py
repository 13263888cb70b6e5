"""A parameter that is one value for all lanes, and that nothing writes, stays one value: a shared operand.

    parameters xs, n                   parameters n; shared xs
    b0: t0 = xs[n]; ..       -->       b0: t0 = xs[n]; ..

Which parameters are one value for all lanes is the caller's to say (`in_axes=None`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir.analysis.effects import read_at_end, written
from pcbatch.ir.machine import Item, Piece, Program, Store


def share_parameters(program: Program, wanted: Collection[str]) -> Program:
    """Make shared operands of those of the parameters `wanted` that can be such."""
    chosen = [name for name in program.parameters if name in wanted and name in shareable(program)]
    if not chosen:
        return program

    def shared(item: Item) -> Item:
        if not isinstance(item, Piece):
            return item
        own = tuple(name for name in item.reads if name in chosen)
        reads = tuple(name for name in item.reads if name not in chosen)
        return replace(item, reads=reads, shared=(*own, *item.shared))

    return replace(
        program,
        parameters=tuple(name for name in program.parameters if name not in chosen),
        types={name: type_ for name, type_ in program.types.items() if name not in chosen},
        storage={name: kind for name, kind in program.storage.items() if name not in chosen},
        shared=(*chosen, *program.shared),
        shared_types={**{name: program.types[name] for name in chosen}, **program.shared_types},
        blocks=tuple(replace(block, body=tuple(map(shared, block.body))) for block in program.blocks),
    )


def shareable(program: Program) -> frozenset[str]:
    """The parameters that no item writes and that pieces alone read.

    What the machine itself reads (a branch's condition, a predicate, an index of a store, a fault's argument, a result,
    what a push saves) needs lanes.
    """
    candidates = set(program.parameters) - set(program.results)
    candidates -= {name for site in program.faults for name in site.arguments}
    for block in program.blocks:
        candidates -= {*read_at_end(program, block), *written(block), *block.pops}
        candidates -= {name for push in block.pushes for name in (push.variable, push.saved) if name is not None}
        for item in block.body:
            candidates.discard(item.predicate or "")
            if isinstance(item, Store):
                candidates -= {*item.indices, item.value}
    return frozenset(candidates)
