"""The values that helpers capture on their own: variables of a layer, arrays from around a plain function.

A run takes them as they are, but for the way back they must be shared operands like any other: their gradients are
wanted, and their values are those of the run, whatever is assigned later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pcbatch.ir.machine import Piece, Program
from pcbatch.runtime.backends.protocol import Backend


def with_hidden(program: Program, backend: Backend) -> tuple[Program, tuple[Any, ...]]:
    """Return the program with captures of its pieces' helpers as shared operands behind all others, and these."""
    found: dict[int, tuple[str, Any]] = {}

    def shown(piece: Piece) -> Piece:
        shared = [program.shared_types[name] for name in piece.shared]
        captured = backend.facts(piece, [program.types[name] for name in piece.reads], shared).captured
        for each in captured:
            found.setdefault(id(each), (f"captured {len(found)}", each))
        pairs = {id(each): found[id(each)] for each in captured}.values()
        return replace(
            piece,
            shared=(*piece.shared, *(name for name, _ in pairs)),
            kept={**piece.kept, **{name: (each,) for name, each in pairs}},
            unnamed=len(pairs),
        )

    def items(block: Any) -> Iterator[Any]:
        for item in block.body:
            yield shown(item) if isinstance(item, Piece) else item

    with backend.tracing_once():
        blocks = tuple(replace(block, body=tuple(items(block))) for block in program.blocks)
    if not found:
        return program, ()
    types = {name: backend.type_of(each) for name, each in found.values()}
    shared, shared_types = (*program.shared, *types), {**program.shared_types, **types}
    shown_all = replace(program, blocks=blocks, shared=shared, shared_types=shared_types)
    return shown_all, tuple(each for _, each in found.values())
