"""Where a value, and each of its parts, may come from: from a variable, from a part of one, or new; see `reader`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pcbatch.ir import method_effects
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import VIEWS

Path = method_effects.Path
ANY = method_effects.ANY
"""The path step of an index that is not known here."""
NEW = "new "
"""Begins the names of objects that a statement makes: they hold inside the statement only."""
LIMIT = 6
"""Longer paths are cut: what is true of a part is then taken for true of what it is in."""

Place = tuple[str, Path]
Reference = tuple[Path, Place]
"""A part of a value, by its path, and the place that it is taken from."""
Taking = tuple[str, Reference]
"""A variable that is assigned, and where a part of its new value comes from."""


@dataclass(frozen=True)
class Maker:
    """What a class makes of the arguments of a call: where the parts of the new object come from.

    `parts` name parameters, objects that are made there, and what belongs to others. So do `defaults`: objects that a
    parameter has in every call that gives none.
    """

    parameters: tuple[str, ...]
    parts: tuple[Reference, ...]
    defaults: tuple[tuple[str, str], ...] = ()

    def given(self, call: ast.Call) -> dict[str, list[ast.expr]]:
        """By parameter, what it may be given: each argument where an unpacked one hides which it is."""
        every = [*call.args, *(keyword.value for keyword in call.keywords)]
        is_plain = not any(isinstance(each, ast.Starred) for each in call.args)
        if not is_plain or any(keyword.arg is None for keyword in call.keywords):
            return dict.fromkeys(self.parameters, every)
        found = {name: [argument] for name, argument in zip(self.parameters, call.args, strict=False)}
        return found | {str(keyword.arg): [keyword.value] for keyword in call.keywords}


@dataclass(frozen=True)
class Hints:
    """What is known of a function beside its text."""

    lists: Mapping[str, int] = field(default_factory=dict)
    """The variables that hold lists, and how deep these are: a slice of one is a list of its own."""
    properties: Container[str] = ()
    """The attributes that may be computed ones, which give parts of their object."""
    methods: Container[str] = ()
    """The attributes that may be methods, which hold their object."""
    variables: Container[str] = ()
    """The variables of which, and of whose parts, it is asked whether a method that may be an array's is one."""
    arrays: Container[str] = ()
    """The methods that are arrays', as far as it has been asked."""
    views: bool = True
    """Whether a slice may be of an array, which shares its elements: one of a list is a list of its own."""


NO_HINTS = Hints()
Kind = Literal["new", "view", "copy", "row", "rows", "unknown"] | tuple[str, ...] | Maker
"""What a call gives: a new object; one that shares its elements with an argument; a container of the same
elements in the same order; one of its arguments' elements, or of tuples of them; nobody knows; a record of its
arguments, with these fields if they are known; an object that a class makes."""
KindOf = Callable[[ast.Call], Kind]


def has_unknown_call(code: Code, kind_of: KindOf) -> bool:
    """Whether something in `code` is called of which nobody knows what it gives."""
    nodes = (node for statement in code.body for node in ast.walk(statement))
    return any(isinstance(node, ast.Call) and kind_of(node) == "unknown" for node in nodes)


def may_give_view(code: Code) -> bool:
    """Whether a method is called that an array has, too, whose result shares the elements of the array."""
    nodes = (node for each in code.body for node in ast.walk(each))
    return any(isinstance(node, ast.Call) and getattr(node.func, "attr", "") in VIEWS for node in nodes)


def repeats(code: Code) -> bool:
    """Whether `code` may give a list times a number, `xs * n`, which has its elements several times."""
    match code.value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            parts = (left, right)
            is_float = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in parts)
            return not is_float and any(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in parts)
    return False


def free_arguments(code: Code, variables: Collection[str]) -> list[str]:
    """The free names, and paths from them, that calls in `code` take as arguments."""
    nodes = [node for statement in code.body for node in ast.walk(statement)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    given = [value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    return list(dict.fromkeys(ast.unparse(value) for value in given if _is_free_path(value, variables)))


def _is_free_path(node: ast.expr, variables: Collection[str]) -> bool:
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in variables


def elements_in_lists(generators: Sequence[ast.comprehension], lists: Mapping[str, int]) -> dict[str, int]:
    """The variables of a comprehension that hold lists, and how deep these are, since they are elements of `lists`."""
    pairs = ((each.target, each.iter) for each in generators)
    named = (
        (target.id, whole.id) for target, whole in pairs if isinstance(target, ast.Name) and isinstance(whole, ast.Name)
    )
    return {name: lists[whole] - 1 for name, whole in named if lists.get(whole, 0) > 1}


def step_of(index: ast.expr) -> int | str:
    """The step of a path that leads to the part at `index`."""
    match index:
        case ast.Constant(value=int(value)) if value >= 0:
            return value
        case ast.Constant(value=str(key)):
            return f"[{key!r}]"
    return ANY


def text_of(path: Path) -> str:
    """A path as it is written behind a name."""
    return "".join(
        step if isinstance(step, str) and step != ANY else f"[{'..' if step == ANY else step}]" for step in path
    )


def element(references: tuple[Reference, ...], step: int | str) -> Iterator[Reference]:
    """Where the element at `step` of a value comes from."""
    for path, (name, inside) in references:
        if not path:
            yield (), (name, (*inside, step)[:LIMIT])
        elif path[0] == step or ANY in (path[0], step):
            yield path[1:], (name, inside)
