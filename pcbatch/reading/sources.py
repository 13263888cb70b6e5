"""Trees of functions: of live ones as their files have them, with what their scopes are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, MemberDescriptorType
from typing import Any
from weakref import ref

import gast

from pcbatch.frontend import source, syntax
from pcbatch.frontend.nodes import Refusal, children, parse_lines, walk
from pcbatch.frontend.source import COST_ATTRIBUTE, converted
from pcbatch.installed import IN_PYTHON, OWN, is_installed

SCOPES = (gast.FunctionDef, gast.Lambda, gast.AsyncFunctionDef, gast.ClassDef)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class ScopeOf:
    """The names of a function: those that are its own, those of functions around it that it assigns, where it reads."""

    locals: frozenset[str]
    nonlocals: frozenset[str]
    loads: dict[str, tuple[tuple[int, int], ...]] = field(repr=False)


def is_users(function: Any) -> bool:
    """Return whether a function of Python's belongs to the user's own project."""
    if not isinstance(function, FunctionType):
        return False
    file = function.__code__.co_filename
    return file in IN_PYTHON or (not is_installed(file) and not file.startswith((OWN, "<pcbatch", "<string>")))


_trees: dict[int, tuple[ref[CodeType], Any]] = {}
"""Trees by the identity of code: equal code may stand in several files."""


def tree_of(function: FunctionType) -> tuple[Any, str]:
    """The tree of a live function, and its file; UnsupportedSyntaxError where there is no source to be had."""
    code = function.__code__
    key = id(code)
    if key not in _trees:
        if code.co_name == "<lambda>":
            node, lines = _lambda(function)
        else:
            node, lines = source.found(function)
        tree = converted(node, lines)
        _mangle(tree, getattr(code, "co_qualname", function.__qualname__))
        _trees[key] = ref(code, lambda _: _trees.pop(key, None)), tree
    return _trees[key][1], code.co_filename


def known_as(function: FunctionType, tree: Any) -> None:
    """Let a live function be read as a tree that stands in no file."""
    key = id(function.__code__)
    _trees[key] = ref(function.__code__, lambda _: _trees.pop(key, None)), tree


def _mangle(tree: Any, qualified: str) -> None:
    """Give private names, `self.__x`, the name of the class in which a function of this qualified name stands."""
    *around, _ = qualified.split(".")
    while around and around[-1] == "<locals>":
        around = around[:-2]  # the function around it
    cls = around[-1].lstrip("_") if around else ""
    if not cls:
        return
    for node in walk(tree):
        for field_name in ("id", "attr", "arg", "name"):
            name = getattr(node, field_name, None)
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                setattr(node, field_name, f"_{cls}{name}")
        if isinstance(node, gast.Nonlocal):
            node.names = [f"_{cls}{n}" if n.startswith("__") and not n.endswith("__") else n for n in node.names]


@lru_cache(maxsize=64)
def _lambdas(module: ast.Module) -> tuple[ast.Lambda, ...]:
    return tuple(node for node in ast.walk(module) if isinstance(node, ast.Lambda))


def _lambda(function: FunctionType) -> tuple[Any, tuple[str, ...]]:
    code = function.__code__
    lines = source.lines_of(function)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [
        node
        for node in _lambdas(parse_lines(lines, code.co_filename))
        if node.lineno == code.co_firstlineno
        and tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == names
    ]
    if len(found) > 1 and hasattr(code, "co_positions"):
        places = {(line, column) for line, _, column, _ in code.co_positions() if column}
        found = [each for each in found if (each.body.lineno, each.body.col_offset) in places] or found
    elif len(found) > 1:
        found = [node for node in found if _compiled(node, code) == _contents(code)][:1]
    if len(found) != 1:
        raise LookupError("the source of a lambda cannot be told from others")
    return found[0], lines


def _compiled(node: ast.Lambda, code: CodeType) -> Any:
    """The contents of a lambda that is compiled where the names that `code` takes from around it are variables.

    From Python 3.11 on that depends on what its module imports, too; but there code knows its columns.
    """
    names = [ast.arg(name) for name in code.co_freevars]
    around = ast.Lambda(ast.arguments([], names, None, [], [], None, []), node)
    whole = compile(ast.fix_missing_locations(ast.Expression(around)), code.co_filename, "eval", dont_inherit=True)
    outer = next(each for each in whole.co_consts if isinstance(each, CodeType))
    return _contents(next(each for each in outer.co_consts if isinstance(each, CodeType)))


_MANGLED = re.compile(r"^_[^\W_]\w*?(?=__\w)")
"""The prefix that a class puts before private names of its own."""


def _contents(code: CodeType) -> Any:
    """A key of code that is the same wherever it stands."""
    inner = [_contents(each) if isinstance(each, CodeType) else (type(each), each) for each in code.co_consts]
    own = [each for each in inner if not (each[0] is str and "<lambda>" in each[1])]  # before 3.11 names of functions
    names = [_MANGLED.sub("", each) for each in code.co_names]
    return code.co_code, names, code.co_varnames, code.co_freevars, own


@lru_cache(maxsize=4096)
def scope_of(tree: Any) -> ScopeOf:
    """The names of a function's tree, a lambda's or a comprehension's."""
    stored: set[str] = set()
    outer: set[str] = set()
    loads: dict[str, list[tuple[int, int]]] = {}
    for node in _own(tree):
        match node:
            case gast.Name(id=name, ctx=gast.Load()):
                loads.setdefault(name, []).append((node.lineno, node.col_offset))
            case gast.Name(id=name) if getattr(node, "scope", tree) is tree:
                stored.add(name)
            case gast.FunctionDef(name=name) if node is not tree:
                stored.add(name)
            case gast.Nonlocal(names=names):
                outer.update(names)
            case gast.Import(names=aliases) | gast.ImportFrom(names=aliases):
                stored |= {each.asname or each.name.partition(".")[0] for each in aliases}
            case gast.MatchAs(name=str(name)) | gast.MatchStar(name=str(name)) | gast.MatchMapping(rest=str(name)):
                stored.add(name)
    if isinstance(tree, COMPREHENSIONS):
        stored -= {each.target.id for each in _own(tree) if isinstance(each, gast.NamedExpr)}
    if isinstance(tree, gast.FunctionDef | gast.Lambda):
        stored |= {each.id for each in parameters_of(tree)}
    for inner in walk(tree):
        if isinstance(inner, gast.Name) and isinstance(inner.ctx, gast.Load):
            loads.setdefault(inner.id, []).append((inner.lineno, inner.col_offset))
    places = {name: tuple(sorted(set(found))) for name, found in loads.items()}
    return ScopeOf(frozenset(stored - outer), frozenset(outer), places)


def unreadable(function: Any) -> tuple[Any, Refusal, str] | None:
    """The first construct in a function of the user's that cannot be read, its refusal, and the file.

    None for every other function, and where there is no source to be had.
    """
    if not is_users(function):
        return None
    try:
        tree, file = tree_of(function)
    except (LookupError, SyntaxError, OSError):
        return None
    found = unreadable_in(tree)
    return None if found is None else (*found, file)


@lru_cache(maxsize=4096)
def unreadable_in(tree: Any) -> tuple[Any, Refusal] | None:
    """The first construct in a function that cannot be read, and its refusal; None for a function that can be read."""
    return next(syntax.unreadable(tree), None)


def parameters_of(tree: Any) -> list[Any]:
    """The parameters of a function, stars included."""
    given = tree.args
    stars = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]


def _own(tree: Any) -> Iterator[Any]:
    """The nodes of a function that are in its own scope."""
    body = tree.body if isinstance(tree, gast.FunctionDef) else [tree]
    waiting = list(body) if isinstance(body, list) else [body]
    if isinstance(tree, gast.Lambda):
        waiting = [tree.body]
    elif isinstance(tree, COMPREHENSIONS):
        waiting = [*([tree.key, tree.value] if isinstance(tree, gast.DictComp) else [tree.elt])]
        for place, generator in enumerate(tree.generators):
            waiting += [generator.target, *generator.ifs, *([generator.iter] if place else [])]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, SCOPES):
            if isinstance(node, gast.FunctionDef | gast.Lambda):
                waiting += [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]
            continue
        if isinstance(node, COMPREHENSIONS):
            waiting.append(node.generators[0].iter)
            waiting += [each for each in walk(node) if isinstance(each, gast.NamedExpr)]
            continue
        waiting += children(node)


def cost_of(live: Any) -> float | None:
    """Return what the author of a live function says that its rows cost, `pcbatch.cost`; None where nothing is said."""
    found: float | None = getattr(live, COST_ATTRIBUTE, None)
    return found


def is_slot(cls: type, name: str) -> bool:
    """Tell whether objects of a class keep an attribute in a slot."""
    return isinstance(
        next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None), MemberDescriptorType
    )


def is_set_by_descriptor(cls: type | None, name: str) -> bool:
    """Tell whether an attribute of objects of a class is set by a descriptor of the user's."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None) if cls is not None else None
    setter = getattr(type(found), "__set__", None)
    return isinstance(setter, FunctionType) and is_users(setter)


def has_setter(cls: type | None, name: str) -> bool:
    """Tell whether setting an attribute of objects of a class runs code of the user's."""
    is_property = cls is not None and any(isinstance(vars(base).get(name), property) for base in cls.__mro__)
    return is_property or is_set_by_descriptor(cls, name)
