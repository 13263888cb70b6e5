"""Changes of structures into ops: the variable that a changed part belongs to gets a new value.

    state.pos.x = v      state = __within__(state, __with_field__(state.pos, v, 'x'), 'pos', True)
    d["k"] = v           d = __with_item__(d, v, 'k')
    xs.append(v)         xs = __changed__(xs, 'append', v)
    x = xs.pop()         t, xs = __taken__(xs, 'pop')

From the inside out: what is changed becomes a new part, which is put back into what it is a part of. Values come first,
as in Python, and the parts are read last, so that a change inside a value is seen. `changed_objects` reads such code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from pcbatch.errors import Diagnostic, Span
from pcbatch.frontend.source.changes import function_of, root_of, steps_of
from pcbatch.frontend.source.nodes import call, constant, load, store, unparse
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.paths import readable, settled_index
from pcbatch.ir.payload import WITH_FIELD, WITH_ITEM
from pcbatch.ir.pseudo_builtins import CHANGED, STORED, TAKEN, WITHIN


def assign_field(code: Expressions, part: Any, name: str, value: str, span: Span) -> None:
    """Emit `part.name = value`, `part` being readable."""
    _put_back(code, part, call(WITH_FIELD, part, load(value), constant(name)), span)


def assign_entry(code: Expressions, part: Any, key: Any, value: str, span: Span) -> None:
    """Emit `part["key"] = value`."""
    _put_back(code, part, call(WITH_ITEM, part, load(value), key), span)


def assign_element(code: Expressions, part: Any, indices: Sequence[Any], value: str, span: Span) -> None:
    """Emit `part[i, j] = value`, the indices being variables, or known without a lane."""
    _put_back(code, part, call(STORED, part, load(value), *indices), span)


def call_method(code: Expressions, node: Any) -> None:
    """Emit the statement `part.method(..)`, as far as it changes the part."""
    if function_of(node) is not None:
        _call_function(code, node)
        return
    arguments, keywords = _arguments(code, node)
    part = readable(code, node.func.value)
    _put_back(code, part, _called(CHANGED, part, node, arguments, keywords), code.span(node))


IN_PLACE: dict[type[Any], str] = {gast.Add: "__iadd__", gast.Mult: "__imul__", gast.BitOr: "__ior__"}
"""The operators of augmented assignments that change lists or dicts in place, and the methods that they call."""


def augment(code: Expressions, part: Any, method: str, value: Any, span: Span) -> None:
    """Emit `part += value` where that changes an object in place."""
    settled = code.settled(value, [])
    _put_back(code, part, call(CHANGED, part, constant(method), settled), span)


def delete(code: Expressions, target: Any, span: Span) -> None:
    """Emit `del part[key]`."""
    part = readable(code, target.value, [target.slice])
    _put_back(code, part, call(CHANGED, part, constant("__delitem__"), settled_index(code, target.slice, [])), span)


def take(code: Expressions, node: Any) -> str:
    """Emit `part.pop(..)`; gives the variable with its value."""
    if function_of(node) is not None:
        return _call_function(code, node)
    arguments, keywords = _arguments(code, node)
    part = readable(code, node.func.value)
    value = code.temporary()
    changed = part.id if isinstance(part, gast.Name) else code.temporary()
    taken = _called(TAKEN, part, node, arguments, keywords)
    _check_local(code, part)
    code.primitive([gast.Tuple([store(value), store(changed)], gast.Store())], taken, code.span(node))
    if not isinstance(part, gast.Name):
        _put_back(code, part, load(changed, node), code.span(node))
    return value


def _call_function(code: Expressions, node: Any) -> str:
    """Emit the call of a method that is a function of the program; gives the variable with its value."""
    found = function_of(node)
    assert found is not None, "the call is marked"
    label, gives_back = found
    arguments, keywords = _arguments(code, node)
    part = readable(code, node.func.value)
    called = gast.copy_location(gast.Call(load(label, node), [part, *arguments], keywords), node)
    if not gives_back:
        return code.operand(called)
    value, changed = code.temporary(), code.temporary()
    both = gast.Tuple([store(value), store(changed)], gast.Store())
    code.primitive([both], load(code.operand(called), node), code.span(node))
    _put_back(code, part, load(changed, node), code.span(node))
    return value


def _arguments(code: Expressions, node: Any) -> tuple[list[Any], list[Any]]:
    """The arguments of a call, settled from left to right."""
    every = [*node.args, *node.keywords]
    settled = [code.settled(each, every[at + 1 :]) for at, each in enumerate(every)]
    return settled[: len(node.args)], settled[len(node.args) :]


def _called(function: str, part: Any, node: Any, arguments: Sequence[Any], keywords: Sequence[Any]) -> Any:
    made = call(function, part, constant(node.func.attr), *arguments)
    made.keywords = list(keywords)
    return made


def _put_back(code: Expressions, part: Any, changed: Any, span: Span) -> None:
    """Emit that `part` is now `changed`."""
    _check_local(code, part)
    for step in reversed(steps_of(part)):
        is_field = isinstance(step, gast.Attribute)
        key = constant(step.attr) if is_field else step.slice
        changed = call(WITHIN, step.value, changed, key, constant(is_field))
    code.primitive([store(str(root_of(part)))], changed, span)


def _check_local(code: Expressions, part: Any) -> None:
    root = root_of(part)
    if root not in code.source.locals:
        code.report(
            Diagnostic(
                "PCB204",
                f"`{unparse(part)}` is changed, which is not a local variable",
                code.span(part),
                "this belongs to another scope",
                f"pass `{root}` as an argument and return the result",
            )
        )
