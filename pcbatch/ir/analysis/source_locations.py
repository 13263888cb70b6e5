"""The places in the user's source from which the code of a block comes."""

from __future__ import annotations

from collections.abc import Iterator

from pcbatch.errors import Span
from pcbatch.ir.machine import Block, Fault, Piece, Program, PushJump, Store


def spans(program: Program, block: Block) -> tuple[Span, ...]:
    """The statements and conditions that the block has a part of, in order; none where nothing is known."""
    found = sorted(set(_spans(program, block)))
    return tuple(found or ([block.span] if block.span is not None else []))


def store_span(program: Program, store: Store) -> Span | None:
    """The statement that a store belongs to: where it fails if it does."""
    return None if store.site is None else program.faults[store.site].span


def _spans(program: Program, block: Block) -> Iterator[Span]:
    for item in block.body:
        within = item.spans if isinstance(item, Piece) else (store_span(program, item),)
        yield from (span for span in within if span is not None)
    match block.terminator:
        case PushJump(site=site) | Fault(site=site):
            span = program.faults[site].span
            if span is not None:
                yield span


def file_of(program: Program, function: str) -> str:
    """The file that the user's `function` stands in; "" where that is not known."""
    blocks = (block for block in program.blocks if block.function == function)
    return next((span.file for block in blocks for span in spans(program, block)), "")
