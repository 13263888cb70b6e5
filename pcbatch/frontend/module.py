"""A module read without importing it: its batched functions, and the meaning of the names in them."""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gast

from pcbatch.errors import CompileError, Diagnostic, Span, raise_all
from pcbatch.frontend import syntax
from pcbatch.frontend.nodes import dotted, parse_lines
from pcbatch.frontend.scope import Scope, StaticScope, module_level, static_scope
from pcbatch.frontend.source import COST, FunctionSource, is_cost, wrapped
from pcbatch.frontend.syntax import read_definition

METHODS = ("builtins.staticmethod", "builtins.classmethod")
DECORATORS = ("pcbatch.autobatch", "pcbatch.api.autobatch")


@dataclass(frozen=True)
class ModuleSource:
    """The batched functions of a file, by the names that they have in it (`Class.method` for methods).

    `known` also maps the undecorated names of functions that are batched under another: after `fast = autobatch(slow)`
    a call of `slow` in a batched function is a call of `fast`. `statics` are the static parameters of each of
    `functions`, as far as the text says.
    """

    file: str
    tree: ast.Module = field(repr=False)
    functions: Mapping[str, FunctionSource]
    statics: Mapping[str, frozenset[str]] = field(repr=False)
    scope: Scope = field(repr=False)
    known: Mapping[str, FunctionSource] = field(repr=False)

    def resolve(self, source: FunctionSource, name: str) -> FunctionSource | None:
        """The batched function that the dotted `name` denotes inside `source`, or None."""
        root, _, rest = name.partition(".")
        if source.receiver is not None and root == source.receiver:
            owner = source.qualname.rpartition(".")[0]
            return self.known.get(f"{owner}.{rest}")
        return self.known.get(name)

    @property
    def default_entry(self) -> str | None:
        """The one function that no other batched function of the file calls; None if there is not exactly one."""
        called = {
            callee for source in self.functions.values() for callee in self._called(source) if callee is not source
        }
        entries = [name for name, source in self.functions.items() if source not in called]
        return entries[0] if len(entries) == 1 else None

    def _called(self, source: FunctionSource) -> Iterator[FunctionSource]:
        """The batched functions that a function calls by name."""
        for node in gast.walk(source.tree):
            path = dotted(node.func) if isinstance(node, gast.Call) else None
            if path is None or path.partition(".")[0] in source.locals:
                continue
            callee = self.resolve(source, path)
            if callee is not None:
                yield callee


def read_module(path: str | os.PathLike[str]) -> ModuleSource:
    """Parse the file at `path` and find the uses of `pcbatch.autobatch`, as decorator or as a call.

    Raises OSError if it cannot be read, UnsupportedSyntaxError with all refusals in all its batched functions.
    """
    file = os.fspath(path)
    os.stat(file)  # linecache would silently give no lines
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    module = parse_lines(tuple(lines), file)
    scope = static_scope(module, os.path.splitext(os.path.basename(file))[0])
    reader = _Reader(file, tuple(lines), scope)
    reader.read(module)
    raise_all(reader.diagnostics)
    known = {**reader.undecorated, **reader.functions}
    return ModuleSource(file, module, reader.functions, reader.statics, scope, known)


class _Reader:
    """One walk over the statements of a module, in order."""

    def __init__(self, file: str, lines: tuple[str, ...], scope: StaticScope):
        self.file = file
        self.lines = lines
        self.scope = scope
        self.definitions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.functions: dict[str, FunctionSource] = {}
        self.undecorated: dict[str, FunctionSource] = {}
        self.statics: dict[str, frozenset[str]] = {}
        self.diagnostics: list[Diagnostic] = []

    def read(self, module: ast.Module) -> None:
        for node in module_level(module):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._definition(node, node.name)
                case ast.ClassDef():
                    for method in node.body:
                        if isinstance(method, ast.FunctionDef):
                            self._definition(method, f"{node.name}.{method.name}")
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    self._assignment(name, call)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str) -> None:
        self.definitions[qualname] = node
        self.functions.pop(qualname, None)  # a later definition takes the name
        at = [index for index, decorator in enumerate(node.decorator_list) if self._is_autobatch(decorator)]
        if not at:
            return
        hints = [each for each in node.decorator_list if isinstance(each, ast.Call) and self._path(each.func) in COST]
        below = [each for each in node.decorator_list[at[-1] + 1 :] if each not in hints]
        if any(self._path(decorator) not in METHODS for decorator in below):
            self.diagnostics.append(wrapped(node.name, self._span(below[0])))
        elif (source := self._capture(node, qualname)) is not None:
            source = replace(source, cost=self._cost(hints[0]) if hints else None)
            is_static = any(self._path(each) == "builtins.staticmethod" for each in node.decorator_list)
            self.functions[qualname] = source.bound() if "." in qualname and not is_static else source
            self.statics[qualname] = _statics(node.decorator_list[at[0]])

    def _assignment(self, name: str, call: ast.Call) -> None:
        """`name = pcbatch.autobatch(function, ..)`."""
        match call:
            case ast.Call(args=[ast.Name(id=original)]) if self._is_autobatch(call.func):
                definition = self.definitions.get(original)
                source = self.functions.get(original)
                if source is None and definition is not None:
                    source = self.undecorated.get(original) or self._capture(definition, original)
                if source is not None:
                    self.functions[name] = source
                    self.statics[name] = _statics(call) | _statics(call.func)
                    self.undecorated.setdefault(original, source)

    def _capture(self, node: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str) -> FunctionSource | None:
        try:
            return read_definition(node, self.lines, self.file, qualname, self.scope)
        except CompileError as error:
            self.diagnostics += error.diagnostics
            return None

    def _is_autobatch(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            node = node.func
        return self._path(node) in DECORATORS

    def _path(self, node: ast.expr) -> str:
        """Return the dotted path that a name or attribute stands for, "" if it is not known."""
        match node:
            case ast.Name(id=name):
                origin = self.scope.origin(name)
                return origin.path if origin is not None else ""
            case ast.Attribute(value=value, attr=attribute):
                base = self._path(value)
                return f"{base}.{attribute}" if base else ""
        return ""

    def _cost(self, hint: ast.Call) -> float | None:
        """The number that the outermost `@pcbatch.cost(number)` gives, as it counts when the file runs."""
        value: Any = None
        with contextlib.suppress(ValueError):
            value = ast.literal_eval(hint.args[0]) if len(hint.args) == 1 else None
        if is_cost(value):
            return float(value)
        refusal = syntax.COST_LITERAL if value is None else syntax.COST_VALUE
        self.diagnostics.append(refusal.at(self._span(hint.args[0] if hint.args else hint)))
        return None

    def _span(self, node: ast.expr) -> Span:
        return Span(self.file, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _statics(node: ast.expr) -> frozenset[str]:
    """The static parameters that a use of `autobatch` names in its text."""
    found: Any = ()
    for each in node.keywords if isinstance(node, ast.Call) else ():
        if each.arg == "static_argnames":
            with contextlib.suppress(ValueError):
                found = ast.literal_eval(each.value)
    return frozenset([found] if isinstance(found, str) else found)
