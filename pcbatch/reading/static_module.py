"""A module made of the text of its file, without running it: what its names stand for, as far as the text says.

Functions are those that Python would make, which nobody calls: the reader interprets them. Literals are values, classes
of methods and fields are classes; what is imported is opaque, and known by its dotted name, unless it belongs to
Python's own library or to NumPy; everything else is opaque.
"""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import importlib
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from pcbatch.frontend.module import ModuleSource, read_module
from pcbatch.frontend.scope import module_level
from pcbatch.reading.static_expressions import (
    ClassBody,
    Expressions,
    MembersError,
    Name,
    Opaque,
    StaticBatched,
    batched_of,
    is_opaque,
    opaque,
)
from pcbatch.reading.untyped.program import UntypedProgram, read_untyped

_NAMES = (
    "abc bisect cmath collections contextlib copy dataclasses enum functools heapq itertools math numbers numpy "
    "operator typing"
)
LIBRARIES = frozenset(_NAMES.split())
"""Packages that are imported: importing them does nothing else."""
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class StaticModule(Expressions):
    """The names of a module, and what they stand for."""

    def __init__(self, source: ModuleSource, text: str):
        self.source = source
        code = compile(text, source.file, "exec", dont_inherit=True)
        self.codes = {(each.co_name, each.co_firstlineno): each for each in _codes(code)}
        self.names: _Names = _Names(__name__="module", __file__=source.file, __doc__=None, __builtins__=builtins)
        self.methods: dict[str, Mapping[str, Any]] = {}
        """The functions of each class."""
        self._bound = collections.Counter(_bound(source.tree))
        self._changed = {*_changed(source)}
        self._statements(source.tree.body, is_once=True)
        for name in self._bound:
            self.names.setdefault(name, opaque(name))

    def entry(self, name: str) -> StaticBatched:
        """The batched function `name`, or `Class.name`: a method of an object of which nothing else is known."""
        owner, _, own = name.rpartition(".")
        if not owner:
            found = self.names[own]
        else:
            found = self.methods[owner][own]
            receiver = self.source.functions[name].receiver
            if receiver is not None:
                name_of = Name(receiver, methods=self.methods[owner], is_object=True, cls=self.names[owner])
                found = found.__get__(Opaque(name_of))
        assert isinstance(found, StaticBatched)
        return found

    # -- statements ----------------------------------------------------------------------------------------------------

    def _statements(self, nodes: Sequence[ast.stmt], *, is_once: bool) -> None:
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.names[node.name] = self.function(node, node.name)
                case ast.ClassDef():
                    self.names[node.name] = self._class(node)
                case ast.Import(names=aliases):
                    for alias in aliases:
                        path = alias.name if alias.asname else alias.name.partition(".")[0]
                        self.names[alias.asname or path] = _module(path, alias.asname or path)
                case ast.ImportFrom(names=aliases):
                    for alias in aliases:
                        self._import(node, alias.name, alias.asname or alias.name)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value, is_once)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._assign(name, value, is_once)
                case _ if isinstance(node, BLOCKS):
                    self._block(node, is_once)
                case _:
                    for name in _bound(ast.Module([node], [])):
                        self.names[name] = opaque(name)

    def _block(self, node: Any, is_once: bool) -> None:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.expr | ast.withitem | ast.pattern):
                for name in _bound(ast.Module([ast.Expr(each)], [])):  # type: ignore[arg-type]
                    self.names[name] = opaque(name)
        for part in ("body", "orelse", "finalbody"):
            self._statements(getattr(node, part, []), is_once=is_once and not isinstance(node, LOOPS))
        for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self._statements(each.body, is_once=is_once)

    def _import(self, node: ast.ImportFrom, name: str, bound: str) -> None:
        if name == "*":
            self.names.are_open = True
            return
        module = _module(node.module or "", node.module or "") if node.level == 0 else None
        if module is None or isinstance(module, Opaque) or not hasattr(module, name):
            self.names[bound] = opaque(bound, f"{'.' * node.level}{node.module or ''}.{name}")
        else:
            self.names[bound] = getattr(module, name)

    def _assign(self, name: str, node: ast.expr, is_once: bool) -> None:
        if name in self.source.functions:
            self.names[name] = self._batched_by_call(name, node)
            return
        found = self.value(node, name) if is_once and self._bound[name] == 1 else opaque(name)
        if isinstance(found, Opaque) and found.opaque_name.text != name:  # what is imported, by another name
            found = opaque(name, found.opaque_name.origin)
        is_changed = name in self._changed and isinstance(found, list | dict | set)
        self.names[name] = opaque(name) if is_changed else found

    def _batched_by_call(self, name: str, node: ast.expr) -> Any:
        """`name = pcbatch.autobatch(function, ..)`."""
        assert isinstance(node, ast.Call)
        assert isinstance(node.args[0], ast.Name)
        function = self.names[node.args[0].id]
        if not isinstance(function, FunctionType):
            return function
        return StaticBatched(function, self.source.statics[name], self.source.functions[name].cost)

    # -- functions and classes -----------------------------------------------------------------------------------------

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str, cell: CellType | None = None
    ) -> Any:
        """A function as its definition makes it, decorated if that is known; `cell` is for its class."""
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        code = self.codes[node.name, first]
        closure = tuple(cell for _ in code.co_freevars) if cell is not None else ()
        defaults = tuple(
            self._default(each, f"{qualname}.__defaults__[{place}]") for place, each in enumerate(node.args.defaults)
        )
        function = FunctionType(code, self.names, node.name, defaults or None, closure)
        function.__qualname__ = qualname
        keyword = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        function.__kwdefaults__ = {
            a.arg: self._default(d, f"{qualname}.__kwdefaults__[{a.arg!r}]") for a, d in keyword if d is not None
        }
        source = self.source.functions.get(qualname)
        if source is not None:
            is_static = any(self.value(each, "") is staticmethod for each in node.decorator_list)
            return StaticBatched(function, self.source.statics[qualname], source.cost, is_static)
        made: Any = function
        for each in reversed(node.decorator_list):
            decorator = self.value(each, "")
            if decorator not in (staticmethod, classmethod, property, functools.cached_property):
                return opaque(node.name)
            made = decorator(made)
        return made

    def _default(self, node: ast.expr, text: str) -> Any:
        found = self.value(node, text)
        return opaque(text) if isinstance(found, Opaque) and not found.opaque_name.origin else found

    def _class(self, node: ast.ClassDef) -> Any:
        body = ClassBody(self, node)
        found: Any
        try:
            found = body.made()
            members = {name: each for base in reversed(found.__mro__[:-1]) for name, each in vars(base).items()}
        except MembersError:
            members = body.members
            found = Opaque(Name(node.name, methods=members))
        self.methods[node.name] = {name: each for name, each in members.items() if hasattr(each, "__get__")}
        return found


class _Names(dict[str, Any]):
    """The names of a module; after `from m import *` there may be any others."""

    are_open = False

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (self.are_open and not hasattr(builtins, str(name)))

    def __missing__(self, name: str) -> Any:
        if not self.are_open:
            raise KeyError(name)
        return self.setdefault(name, opaque(name))


def module_of(path: str, around: Mapping[str, Any]) -> Any:
    """The module of a path that begins with dots, perhaps, if it is known; else it is opaque."""
    return _module(path, path.rpartition(".")[2] or "package")


def _module(path: str, text: str) -> Any:
    """The module of a dotted name, if it is known; else it is opaque."""
    if path.partition(".")[0] not in LIBRARIES:
        return opaque(text, path)
    try:
        return importlib.import_module(path)
    except ImportError:
        return opaque(text, path)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """All code in a module's."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _bound(module: ast.Module) -> Iterator[str]:
    """The names that a module's own statements bind, each as often as they do; those of `global` more than once."""
    for node in module_level(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
    for node in ast.walk(module):
        if isinstance(node, ast.Global):
            yield from (each for each in node.names for _ in range(2))


def _changed(source: ModuleSource) -> Iterator[str]:
    """The names of what some statement changes, wherever it stands but in a batched function, which changes nothing."""
    batched = {each.tree.lineno for each in source.functions.values()}
    nodes: list[ast.AST] = [source.tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef) and node.lineno in batched:
            continue
        nodes += ast.iter_child_nodes(node)
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                yield name


def read_file(path: str | os.PathLike[str], name: str) -> UntypedProgram:
    """The program of the batched function `name`, or `Class.name`, of a file, for arguments of any types.

    Raises CompileError with what is refused whatever the types are.
    """
    source = read_module(path)
    module = StaticModule(source, "".join(linecache.getlines(source.file)))
    entry = batched_of(module.entry(name))
    assert entry is not None
    return read_untyped(
        entry, batched_of, is_array=_is_array, takes_gradients=_is_tape, is_opaque=is_opaque, module_of=module_of
    )


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _is_tape(value: object) -> bool:
    return isinstance(value, Opaque) and value.opaque_name.origin == "tensorflow.GradientTape"
