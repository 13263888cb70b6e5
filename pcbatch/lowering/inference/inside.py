"""What methods of the user's do inside their objects, found by calling them once more, on a copy.

    rows = o.rows
    o.put(x)                # changes a part in place: `rows` sees it
    rows = o.counted()      # counts, and gives a part of its object: what is stored there is in `rows`, too

Only what is called says it. It is asked where it matters (`frontend.translate.aliasing`), and the program is built anew
with it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Collection, Iterator
from typing import Any

from pcbatch.errors import InPlaceError, Span
from pcbatch.ir import records
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import ANY, Effect, Path, effects_in, is_of_effects, steps_to, text_of_effects
from pcbatch.ir.pseudo_builtins import CHANGED, TAKEN
from pcbatch.ir.values import copied
from pcbatch.lowering.codegen.builtins import BUILTINS, OPS
from pcbatch.lowering.codegen.environment import Environment

LOOK = "_pcb_inside"
"""The name by which a traced piece knows the function below."""
_CALLING = frozenset({BUILTINS[CHANGED], BUILTINS[TAKEN]})


def asked(code: Code, span: Span, environment: Environment) -> Iterator[str]:
    """What to look at, as arguments of `look`: the methods that the translated `code` at `span` calls, known or not."""
    nodes = [node for each in code.body for node in ast.walk(each)] if span in environment.suspects else []
    known = sorted(text for place, text in environment.in_place if place == span and is_of_effects(text))
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == OPS and name in _CALLING:
                options = [each for each in node.keywords if each.arg != "site"]
                call = ast.Call(ast.Name(LOOK), [ast.Tuple([*map(ast.Constant, known)]), *node.args], options)
                yield ast.unparse(call).removeprefix(f"{LOOK}(").removesuffix(")")


def look(known: Collection[str], value: Any, method: str, *args: Any, **options: Any) -> None:
    """InPlaceError if `value.method(..)`, of an object of the user's, does what is not `known`.

    What the call raises is told by the statement itself. What a list does is known without this, unless the same call
    is one of an object, too.
    """
    is_object = not isinstance(value, (list, dict, tuple)) and records.fields_of(value) is not None
    if not is_object and not known:
        return
    whole, args, options = copied((value, args, options))
    found = set(_effects(whole, method, args, options))
    before = {each for text in known for each in effects_in(text)}
    found |= {Effect("stays", each.path) for each in before - found if each.kind == "leaves"}
    is_named_as_lists = not known and (hasattr(list, method) or hasattr(dict, method))
    if found - before or is_named_as_lists:
        text = text_of_effects(found - before)
        raise InPlaceError("PCB205", "this changes a part of its object in place, or gives one", "copy the part", text)


def _effects(whole: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Effect]:
    """What `whole.method(..)` does: anything, where a list's cannot be called with a lane's number.

    A method of the user's that cannot be called so becomes a function of the program.
    """
    before = [(path, part, records.parts_of(part)) for path, part in _parts(whole, ())]
    given: Any = None
    try:
        given = getattr(whole, method)(*args, **options)
    except Exception:  # whatever it is, the statement itself raises it, too, and tells it at the user's line
        if isinstance(whole, (list, dict)):
            yield from (Effect("changes", (ANY,)), Effect("gives", (ANY,)), Effect("gave", (ANY,)))
    after = list(_parts(whole, ()))
    for path, part, parts in before:
        if path and _is_other(records.parts_of(part), parts):
            yield Effect("changes", path)
    for path, part in after:
        places = [place for place, other, _ in before if other is part]
        yield from (Effect("moves", path, place) for place in places if path not in places)
    now = dict(after)
    yield from (Effect("leaves", path) for path, part, _ in before if now.get(path) is not part and ANY not in path)
    for place, result in _parts(given, ()):
        yield from (Effect("gave", path, place) for path, part, _ in before if _may_share(part, result))
        yield from (Effect("gives", path, place) for path, part in after if _may_share(part, result))


def _is_other(now: tuple[Any, ...] | None, before: tuple[Any, ...] | None) -> bool:
    now, before = now or (), before or ()
    return len(now) != len(before) or not all(map(operator.is_, now, before))


def _may_share(one: Any, other: Any) -> bool:
    return one is other or (records.parts_of(one) is None and records.parts_of(other) is None)


def _parts(whole: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """What can change in a value, itself among it, by its path: lists, dicts, objects and arrays.

    What a named tuple has, has two paths.
    """
    parts = records.parts_of(whole)
    if parts is None:
        if len(getattr(whole, "shape", ())) > 0:
            yield path, whole
        return
    if not records.is_frozen(whole):
        yield path, whole
    fields = records.fields_of(whole) or {}
    found: list[tuple[Path, Any]] = [((f".{name}",), part) for name, part in fields.items()]
    if isinstance(whole, dict):
        found += [(steps_to(key), part) for key, part in whole.items()]
    elif isinstance(whole, (list, tuple)):
        found += [((at,), part) for at, part in enumerate(whole)]
    for steps, part in found:
        yield from _parts(part, (*path, *steps))
