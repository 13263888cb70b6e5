"""What changes a structure, by the way it is written: an assignment to a part of a variable, a method called for that.

`state.pos.x = v`, `d["k"] += 1`, `xs.append(v)` as a statement, `xs.pop()` anywhere. What stands before the changed
part is a *path*: a name with attributes and elements of it.
"""

from __future__ import annotations

from typing import Any

import gast

from pcbatch.ir.called import CALL

TAKING = frozenset({"pop", "popitem", "setdefault"})
"""Methods that change their object, and whose value is what they are called for."""
_MARK = "_pcb_takes"
"""The attribute of a Call node that says the same of a method of the user's; see `translate.takings`."""

_FUNCTION = "_pcb_function"
"""The attribute of a Call node of a method that is a function of the program."""


def root_of(node: Any) -> str | None:
    """The name that a path begins with; None for what is no path."""
    while isinstance(node, gast.Attribute | gast.Subscript):
        node = node.value
    return str(node.id) if isinstance(node, gast.Name) else None


def steps_of(node: Any) -> list[Any]:
    """The nodes of a path behind its name, outermost part first."""
    steps: list[Any] = []
    while isinstance(node, gast.Attribute | gast.Subscript):
        steps.insert(0, node)
        node = node.value
    return steps


def called_part(node: Any) -> Any:
    """The path whose method the expression `node` calls, None where it is no such call."""
    match node:
        case gast.Call(func=gast.Attribute(value=part)) if root_of(part) is not None:
            return part
    return None


def takes(node: Any) -> bool:
    """Whether `node` calls a method of a path that changes it and gives a value, by its name or as it is marked."""
    return called_part(node) is not None and (node.func.attr in TAKING or getattr(node, _MARK, False))


def function_of(node: Any) -> tuple[str, bool] | None:
    """The function of the program that a Call of a method is marked with, and whether that gives back its object."""
    found: tuple[str, bool] | None = getattr(node, _FUNCTION, None)
    return found


def is_one_part(step: Any) -> bool:
    """Whether a step of a path leads to one part, such as an attribute: no slice, no tuple of indices."""
    if isinstance(step, gast.Attribute):
        return True
    index = step.slice
    return not isinstance(index, gast.Slice | gast.Tuple | gast.Starred) and not (
        isinstance(index, gast.Constant) and not isinstance(index.value, int | str)
    )


def with_called_objects(function: Any) -> None:
    """Let a statement `o(x)` call the method of an object that is a variable: it may change that.

    A function that is defined here, or is a name for what comes from around, is none.
    """
    nodes = list(gast.walk(function))
    stored = {each.id for each in nodes if isinstance(each, gast.Name) and not isinstance(each.ctx, gast.Load)}
    others = {node.name for node in nodes if isinstance(node, gast.FunctionDef)}
    for node in nodes:
        match node:
            case gast.Assign(targets=[gast.Name(id=name)], value=gast.Lambda()):
                others.add(name)
            case gast.Assign(targets=[gast.Name(id=name)], value=gast.Name() | gast.Attribute() as value):
                others |= {name} if root_of(value) not in stored else set()
    for node in nodes:
        match node:
            case gast.Expr(value=gast.Call(func=gast.Name(id=name) as called) as call) if name in stored - others:
                call.func = gast.copy_location(gast.Attribute(called, CALL, gast.Load()), called)
