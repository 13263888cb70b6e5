"""Assignments whose target turns out to be a list, or another object that they change in place.

    ys = xs
    xs += zs        # of lists: `ys` sees it; of numbers and arrays: `xs = xs + zs`

    o.f[0] = p      # into a list: what is stored into `p` later is in `o`, too; an array has a copy

    r = o.rows      # a property that gives a part of `o`: what is stored there is in `r`, too
    g = o.move      # a method of `o`: called later, it sees what `o` is then

Which of the two it is, is known when types are inferred. The program is built as if it were numbers and arrays, and
anew where it is not; of stores and attributes that is asked where it matters (`frontend.translate.aliasing`).
What methods do inside their objects is asked there, too; see `inside`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cached_property
from types import BuiltinMethodType, MethodType
from typing import Any

from pcbatch.errors import InPlaceError, Span
from pcbatch.ir import records
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import VIEWS, text_of_view, view_in
from pcbatch.ir.pseudo_builtins import STORED
from pcbatch.ir.values import copied
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.lowering.codegen.environment import Environment

LOOK = "_pcb_in_place"
"""The name by which a traced piece knows the function below."""
_STORES = "__setitem__"
_KINDS: dict[str, tuple[type, ...]] = {
    "__iadd__": (list,),
    "__imul__": (list,),
    "__ior__": (dict,),
    _STORES: (list, dict),
}
AUGMENTED = frozenset(_KINDS) - {_STORES}
"""The methods by which augmented assignments change objects."""


def asked(code: Code, span: Span, environment: Environment, variables: Collection[str]) -> Iterator[tuple[str, str]]:
    """What the translated `code` at `span` might change in place, and by what: an augmented assignment, a store.

    And of what it reads an attribute, with that: `.rows`, if this may be a part of the object, `.move()` if it may be a
    method of one of the `variables`, which is called later.
    """
    method = environment.augmented.get(span)
    if method is not None and (target := _augmented(code)):
        yield target, method
    if span in environment.suspects and (target := _stored(code)):
        yield target, _STORES
    for owner, name in _views(code) if span in environment.suspects else ():
        if (span, text_of_view(name)) not in environment.in_place:
            yield owner, text_of_view(name)
    nodes = [node for each in code.body for node in ast.walk(each)] if span in environment.readers else []
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_path(node.value, code.reads):
            owner, name = ast.unparse(node.value), f".{node.attr}"
            if (span, name) not in environment.in_place:
                yield owner, name
            is_known = id(node) in called or (span, f"{name}()") in environment.in_place
            if not is_known and _root(node.value) in variables:
                yield owner, f"{name}()"


def _views(code: Code) -> Iterator[tuple[str, str]]:
    """The methods in the translated `code` that give views if they are arrays', and of what they are."""
    for node in (node for each in code.body for node in ast.walk(each)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=root), attr="member"), args=[owner, ast.Constant(name)]):
                is_view = root == OPS and name in VIEWS
            case ast.Attribute(value=owner, attr=name, ctx=ast.Load()):
                is_view = name in VIEWS
            case _:
                continue
        names = {each.id for each in ast.walk(owner) if isinstance(each, ast.Name)}
        if is_view and names <= {*code.reads, OPS} and not any(map(_calls, ast.walk(owner))):
            yield ast.unparse(owner), str(name)


def _calls(node: ast.AST) -> bool:
    """Whether something may happen where `node` is evaluated once more."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=root), attr="member" | "getitem")) if root == OPS:
            return False
    return isinstance(node, ast.Call | ast.NamedExpr | ast.Lambda)


def _is_path(node: ast.expr, names: Collection[str]) -> bool:
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names and node.id != OPS


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _augmented(code: Code) -> str:
    """What the augmented assignment that became `code` is of: the left operand; "" where that is not seen."""
    match code.value:
        case ast.BinOp(left=left) | ast.Call(func=ast.Attribute(attr="multiply"), args=[left, _, *_]):
            return ast.unparse(left)
    return ""


def _stored(code: Code) -> str:
    """What an element is stored into; "" where nothing is stored."""
    for node in ast.walk(code.value) if code.value is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[whole, *_]) if name == BUILTINS[STORED]:
                return ast.unparse(whole)
    return ""


def look(value: Any, method: str) -> None:
    """InPlaceError if `value`, the target of an assignment, is an object that would change by `method`.

    If the method is an attribute, `.rows`: if that is computed, and gives a part of `value`. If it is `.move()`: if it
    is a method, which holds `value`.
    """
    if view_in(method):
        if records.parts_of(value) is None:
            raise InPlaceError("PCB205", "this shares the elements of its array", "copy the array", method)
        return
    if method.endswith("()"):
        held = _given(value, method[1:-2]) if isinstance(value, (list, dict)) or records.fields_of(value) else None
        if isinstance(held, (MethodType, BuiltinMethodType)) and held.__self__ is value:
            raise InPlaceError("PCB205", "this method holds its object", "call it where it is needed", method)
        return
    if method.startswith("."):
        whole = copied(value)  # a property may change its object
        if _is_computed(whole, method[1:]) and not _held(whole).keys().isdisjoint(_held(_given(whole, method[1:]))):
            raise InPlaceError("PCB205", "this gives a part of its object", "give a copy", method)
        return
    is_record = records.fields_of(value) is not None and hasattr(type(value), method)
    if isinstance(value, _KINDS[method]) or is_record:
        raise InPlaceError("PCB205", "this changes an object in place", "write `x = x + y` for a new one", method)


def _given(value: Any, name: str) -> Any:
    """What a property gives; None where it fails, which the statement itself will tell."""
    try:
        return getattr(value, name)
    except Exception:
        return None


def _is_computed(value: Any, name: str) -> bool:
    """Whether attribute `name` of an object of the user's is a property."""
    found = next((vars(base)[name] for base in type(value).__mro__ if name in vars(base)), None)
    return isinstance(found, property | cached_property) and records.fields_of(value) is not None


def _held(value: Any) -> dict[int, Any]:
    """What can change in a value, by identity: arrays, numbers apart, lists, dicts and objects."""
    parts = records.parts_of(value)
    if parts is None:
        return {id(value): value} if len(getattr(value, "shape", ())) > 0 else {}
    found = {} if records.is_frozen(value) else {id(value): value}
    for part in parts:
        found |= _held(part)
    return found
