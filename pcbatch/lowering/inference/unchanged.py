"""Calls that change what they are given, found while types are inferred: a lane's values change by assignment alone.

A method that is called for its value, and a helper, run while the program is traced. What they change in a list, a dict
or an object would be seen by what is traced with them and by nobody else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pcbatch.errors import ChangeError
from pcbatch.ir import records
from pcbatch.ir.code import Code
from pcbatch.ir.pseudo_builtins import CHANGED, TAKEN
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.lowering.codegen.environment import Environment
from pcbatch.lowering.codegen.pieces import Statement
from pcbatch.lowering.inference import in_place
from pcbatch.runtime.backends.protocol import Backend

LOOK, CHECK, SEEN = "_pcb_look", "_pcb_check", "_pcb_seen"
"""The names by which a traced piece knows the functions below, and what the first has seen."""


def guarded(
    statements: Sequence[Statement], variables: frozenset[str], environment: Environment
) -> Iterator[Statement]:
    """`statements` with a look at what each is given before it, and a check behind it, where it calls something.

    Before what might change an object, or give a part of one, stands a look at that.
    """
    for each in statements:
        if each.span is not None and not each.opens:
            for target, method in in_place.asked(each.code, each.span, environment):
                yield Statement(Code(f"{in_place.LOOK}({target}, {method!r})"), each.span)
        yield from _guarded(each, variables)


def _guarded(each: Statement, variables: frozenset[str]) -> Iterator[Statement]:
    """The same of one statement."""
    read = [name for name in each.code.reads if name in variables] if calls_something(each.code) else []
    if not read:
        yield each
        return
    yield Statement(Code(f"{SEEN} = {LOOK}({', '.join(read)})"), each.span)
    yield each
    yield Statement(Code(f"{CHECK}({SEEN}, {read!r})"), each.span)


@lru_cache(maxsize=4096)
def calls_something(code: Code) -> bool:
    """Whether the translated `code` calls anything but the backend's operations, which may call methods of users."""
    calls = (node.func for each in code.body for node in ast.walk(each) if isinstance(node, ast.Call))
    return any(not isinstance(f, ast.Attribute) or not _is_operation(f) or f.attr in _METHODS for f in calls)


_METHODS = frozenset({BUILTINS[CHANGED], BUILTINS[TAKEN]})
"""The operations that call a method of an object, on a copy of that: what else it is given might change."""


def _is_operation(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == OPS


Seen = list[list[tuple[Any, tuple[Any, ...]]]]
"""For each value what it holds that can change, with the parts of that."""


def helpers(backend: Backend) -> Mapping[str, Any]:
    """What a piece with such looks and checks is given. What no lane can keep (a tape) may change as it likes."""

    def look(*values: Any) -> Seen:
        """What can change in `values`, as it is now."""
        return [list(_held(value, set())) if _is_value(value, backend) else [] for value in values]

    return {LOOK: look, CHECK: check, in_place.LOOK: in_place.look}


def _is_value(value: Any, backend: Backend) -> bool:
    if records.parts_of(value) is None:
        return False
    try:
        backend.type_of(value)
    except TypeError:
        return False
    return True


def check(seen: Seen, names: Sequence[str]) -> None:
    """ChangeError PCB424 if something is not as it was `seen`, in the variables of these `names`."""
    for each, name in zip(seen, names, strict=True):
        for whole, parts in each:
            now = records.parts_of(whole) or ()
            if len(now) != len(parts) or any(a is not b for a, b in zip(now, parts, strict=True)):
                raise ChangeError(
                    "PCB424",
                    f"what is called here changes `{name}`, which it is given",
                    f"a method changes its own object, and nothing else that it is given: change `{name}` by one of "
                    f"its own, `{name}.method(..)`; have a helper return a new object, `{name} = helper({name})`",
                    name,
                )


def _held(value: Any, known: set[int]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    parts = records.parts_of(value)
    if parts is None or id(value) in known:
        return
    known.add(id(value))
    if not records.is_frozen(value):
        yield value, parts
    for part in parts:
        yield from _held(part, known)
