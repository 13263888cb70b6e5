"""Checks that cannot fail are not made.

    fault 0 ARITHMETIC "ZeroDivisionError: .."         fault 0 MAX_DEPTH "RecursionError: .."
    fault 1 MAX_DEPTH "RecursionError: .."      -->
    b1: y = x / n, check 0                             b1: y = x / n

A division of floats never fails, nor does an index that is in range by its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pcbatch.ir.machine import Block, Fault, Item, Piece, Program, PushJump, Statement, Store

Checked = Callable[[Program, Piece], frozenset[int]]
"""A function from a piece to those of its fault sites that it really checks on the types of its variables."""


def drop_idle_checks(program: Program, checked: Checked) -> Program:
    """Take away the fault sites of checks that cannot fail, and number the others anew."""

    def piece(item: Item) -> Item:
        if not isinstance(item, Piece) or not item.sites:
            return item
        left = checked(program, item)
        statements = tuple(
            replace(each, sites=tuple(site if site in left else None for site in each.sites))
            for each in item.statements
        )
        return replace(item, statements=statements, sites=tuple(site for site in item.sites if site in left))

    blocks = tuple(replace(block, body=tuple(map(piece, block.body))) for block in program.blocks)
    used = sorted({site for block in blocks for site in _sites(block)})
    number = {site: place for place, site in enumerate(used)}
    return replace(
        program,
        blocks=tuple(_renumbered(block, number) for block in blocks),
        faults=tuple(program.faults[site] for site in used),
    )


def _sites(block: Block) -> Iterator[int]:
    """The fault sites that a block names."""
    for item in block.body:
        yield from item.sites if isinstance(item, Piece) else () if item.site is None else (item.site,)
    if isinstance(block.terminator, Fault | PushJump):
        yield block.terminator.site
    if block.steps_site >= 0:
        yield block.steps_site


def _renumbered(block: Block, number: dict[int, int]) -> Block:
    def statement(each: Statement) -> Statement:
        return replace(each, sites=tuple(None if site is None else number[site] for site in each.sites))

    def item(each: Item) -> Item:
        if isinstance(each, Store):
            return each if each.site is None else replace(each, site=number[each.site])
        statements = tuple(map(statement, each.statements))
        return replace(each, sites=tuple(number[site] for site in each.sites), statements=statements)

    end = block.terminator
    return replace(
        block,
        body=tuple(map(item, block.body)),
        terminator=replace(end, site=number[end.site]) if isinstance(end, Fault | PushJump) else end,
        steps_site=number.get(block.steps_site, -1),
    )
