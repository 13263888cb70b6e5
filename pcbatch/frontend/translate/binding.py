"""What is known of the variables of a finished function: each is assigned before it is read, each free name exists."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence, Set

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.source.nodes import assigned_name, span_of, walk
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.draft import DraftBlock, Places
from pcbatch.ir.analysis.dataflow import definitely_assigned
from pcbatch.ir.program import Coded, Function, Op, Terminator, reads, statement, writes


def nodes_with_places(block: DraftBlock) -> Iterator[tuple[Op | Terminator, Places]]:
    """The ops and the terminator of a finished block, each with the places of what it reads."""
    yield from block.ops
    if block.terminator is not None:
        yield block.terminator, block.places


def free_names(function: Function, variables: frozenset[str]) -> list[str]:
    """The names that the code of `function` reads and that are none of its variables, in order of first appearance."""
    ops = (op for block in function.blocks for op in block.ops)
    loaded = (name for op in ops if isinstance(op, Coded) for name in statement(op).reads)
    return [name for name in dict.fromkeys(loaded) if name not in variables]


def rebound_receiver(source: FunctionSource) -> list[Diagnostic]:
    """That a method assigns the name of the object that it is bound to, at the first place."""
    places = (node for statement in source.tree.body for node in walk(statement))
    found = next((n for n in places if source.receiver is not None and assigned_name(n) == source.receiver), None)
    if found is None:
        return []
    message = f"`{source.receiver}`, the object that the method belongs to, is assigned"
    help_ = "use another name; the object itself stays the same for all lanes"
    return [Diagnostic("PCB209", message, span_of(found, source.file), "assigned here", help_)]


def unassigned(function: Function, drafts: Sequence[DraftBlock], source: FunctionSource) -> dict[str, Diagnostic]:
    """One diagnostic for each variable that some path leaves unassigned, at the first place that reads it."""
    facts = definitely_assigned(function)
    found: dict[str, Diagnostic] = {}
    for block, draft in zip(function.blocks, drafts, strict=True):
        assigned = facts[block.label].start
        for node, places in nodes_with_places(draft):
            for name in reads(node):
                if name not in assigned and name in source.locals and name not in found:
                    found[name] = _unassigned(name, places.get(name, node.span), source)
            assigned |= frozenset(writes(node)) | frozenset(found)
    return found


def _unassigned(name: str, span: Span | None, source: FunctionSource) -> Diagnostic:
    assignments = [
        span_of(node, source.file)
        for statement in source.tree.body
        for node in walk(statement)
        if assigned_name(node) == name
    ]
    before = [each for each in assignments if span is None or each < span]
    if not before:
        message = f"`{name}` is read before anything is assigned to it"
        help_ = f"assign `{name}` first; a name that is assigned anywhere in a function is local to it"
        return Diagnostic("PCB201", message, span, "read here", help_)
    return Diagnostic(
        "PCB201",
        f"`{name}` is not assigned on every path to this place",
        span,
        "read here",
        f"assign `{name}` on the other paths too, or once before they part",
        (Note(before[-1], "assigned here, on some paths only"),),
    )


def unknown_names(
    free: Sequence[str], drafts: Sequence[DraftBlock], source: FunctionSource, known: Set[str | None]
) -> list[Diagnostic]:
    """One diagnostic for each of the `free` names that is nowhere to be found; `known` names are taken for granted."""
    missing = [name for name in free if name not in known and source.scope.origin(name) is None]
    found: list[Diagnostic] = []
    for name in missing:
        spans = (
            places.get(name, node.span)
            for draft in drafts
            for node, places in nodes_with_places(draft)
            if isinstance(node, Coded) and name in statement(node).reads
        )
        close = difflib.get_close_matches(name, sorted(source.locals), n=1)
        close += [f"math.{name}"] if hasattr(math, name) else []
        help_ = f"did you mean `{close[0]}`?" if close else f"define or import `{name}` in the module"
        found.append(Diagnostic("PCB208", f"the name `{name}` is not defined", next(spans), "unknown", help_))
    return found
