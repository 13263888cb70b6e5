"""Checks behind calls of which it must be known that they give something new for a function's stores to be right.

What a function that is not batched gives is known when it is traced: `__apart__` refuses there what is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pcbatch.frontend.translate.aliases import Aliases
from pcbatch.frontend.translate.changed_objects import changed_by, changed_name
from pcbatch.frontend.translate.possible_names import PossibleNames, Spot
from pcbatch.frontend.translate.references import free_arguments
from pcbatch.frontend.translate.same_objects import Facts, parts_related
from pcbatch.ir.code import Code
from pcbatch.ir.program import Block, Coded, Function, Op, Primitive, Store, reads, statement, writes

APART = "__apart__"
"""The pseudo-builtin `__apart__((b,), (a,))`, which refuses a `b` that is, or has for a part, what `a` is or has."""


def checked(aliases: Aliases) -> Function:
    """The function with a check behind each call that must give something new for its stores to be right."""
    possible = PossibleNames(aliases.function, aliases.kind_of, aliases.live, aliases.method, aliases.hints_at)
    with_parts = possible.calls_with_parts()
    spots = list(dict.fromkeys((*possible.calls_to_check(), *with_parts)))
    blocks = {block.label: block for block in aliases.function.blocks}
    aliases.objects = bool(aliases.summaries)
    before = {(block.label, at): facts for block, at, facts in (aliases.before_each_op() if spots else ())}
    checks = {
        spot: _check(
            aliases, blocks[spot[0]], spot[1], possible.related(spot), before[spot], has_parts=spot in with_parts
        )
        for spot in spots
    }
    return with_ops_behind(aliases.function, checks)


def _check(
    aliases: Aliases, block: Block, at: int, related: frozenset[str], facts: Facts, *, has_parts: bool
) -> tuple[Primitive, ...]:
    """The check behind op `at` of `block`: what it assigns is nothing that it read, or that is read later.

    An object may keep what its method is given, unless that may be read later, under whatever name.
    """
    op = block.ops[at]
    live = aliases.live[block.label][at]
    later = live - set(writes(op))
    given_on = set(reads(op)) if changed_by(op) is None else set(reads(op)) & live
    others = (related & live | given_on) & aliases.variables - set(writes(op))
    assert isinstance(op, Coded)
    given = [*sorted(others), *free_arguments(statement(op), aliases.variables)]
    if changed_by(op) is not None:
        kept = (part for name in reads(op) if name not in live for part in parts_related(name, facts, later))
        given += dict.fromkeys(kept)
    if not given and len(writes(op)) == 1 and not has_parts:
        return ()
    every = [each for each_block in aliases.function.blocks for each in each_block.ops]
    stores = (each for each in every if isinstance(each, Store) or ((c := changed_by(each)) and c.is_element))
    arrays = any(changed_name(each) in related | set(writes(op)) for each in stores)
    change = changed_by(op)
    is_known = change is not None and change.taken  # what the value of a method has of its object
    every_results = [[name] for name in writes(op)] if is_known else [writes(op)]
    codes = [
        Code(f"{APART}({_tuple(results)}, {_tuple(given)}{'' if arrays else ', False'})") for results in every_results
    ]
    return tuple(
        Primitive((), tuple(name for name in code.reads if name in aliases.variables), code, op.span) for code in codes
    )


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def with_ops_behind(function: Function, more: Mapping[Spot, Sequence[Op]]) -> Function:
    """`function` with more ops behind some of its ops."""
    blocks = (
        replace(
            block,
            ops=tuple(each for at, op in enumerate(block.ops) for each in (op, *more.get((block.label, at), ()))),
        )
        for block in function.blocks
    )
    return replace(function, blocks=tuple(blocks))
