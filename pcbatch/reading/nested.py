"""Advice on objects inside of others of their class, such as nodes of a tree, of which each lane would have others."""

from __future__ import annotations

from dataclasses import replace

from pcbatch.reading.core import RefusedError
from pcbatch.reading.state import State
from pcbatch.reading.values import Ref

CODES = ("PCB301", "PCB304", "PCB404")
"""The refusals of structures that differ by lane, or that grow."""


def advise(error: RefusedError, state: State) -> None:
    """Have a refusal say how to write a tree or a linked list that grows by lane, if there is such a one."""
    name = _nested(state) if error.diagnostic.code in CODES else ""
    if name:
        help = (
            f"how many `{name}` there are inside of a `{name}` must not differ by lane: keep one list for each of its "
            f'fields, and refer to a `{name}` by its number, as in "Trees and linked lists" in docs/language.md'
        )
        error.diagnostic = replace(error.diagnostic, help=help)


def _nested(state: State) -> str:
    """The name of a class of which an object leads to another one; "" if there is none."""
    for number, cell in state.heap.items():
        if cell.kind != "object" or cell.cls is None:
            continue
        for each in state.reachable(iter([part for _, part in cell.parts()])):
            other = state.heap.get(each.cell) if isinstance(each, Ref) and each.cell != number else None
            if other is not None and other.cls is cell.cls:
                return cell.cls.__name__
    return ""
