"""Functions as their authors wrote them: their trees, with the real lines and character columns of their files.

The whole file is parsed and the function is found in it by its first line: nothing is dedented, no position moves.
What `linecache` knows counts as a file: notebook cells, the REPL of Python 3.13, code run under a made-up file name.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from string import Formatter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Literal

import gast

from pcbatch.errors import CompileError, Diagnostic, Span, UnsupportedSyntaxError
from pcbatch.frontend.nodes import assigned_in, check_nesting, parse_lines, span_of
from pcbatch.frontend.scope import LiveScope, Scope
from pcbatch.installed import is_rewritten

# -- hints -------------------------------------------------------------------------------------------------------------
# Hints change no result; `pcbatch.function.hints` has them as a user calls them.


COST = ("pcbatch.cost", "pcbatch.function.hints.cost")
COST_ATTRIBUTE = "__pcbatch_cost__"
"""Attribute of a plain function in which `pcbatch.cost` notes its number, for `read_function`."""


def is_text_for(text: str, values: int) -> bool:
    """Return whether a text has a field for each of so many values, or none."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    return not any(fields) and len(fields) in (0, values)


def is_cost(value: Any) -> bool:
    """Return whether a row can cost `value`: a positive finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


# -- source ------------------------------------------------------------------------------------------------------------


ParameterKind = Literal["positional", "either", "rest", "keyword"]


@dataclass(frozen=True)
class Parameter:
    """A parameter: "positional" only, "keyword" only or "either"; `default` is the expression of its default.

    `*xs` is the "rest": the tuple of all further positional arguments.
    """

    name: str
    kind: ParameterKind
    default: Any = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function as its author wrote it. Compared by identity: one value for each batched function.

    `tree` is a gast.FunctionDef without decorators, positions being those in `file`, in characters. `locals` are the
    names that are local by Python's rule (assigned anywhere in it, parameters included). The `receiver` is the first
    parameter of a bound method (`self`), which is static and no parameter of the program. `cost` is what `pcbatch.cost`
    says of it.
    """

    name: str
    qualname: str
    file: str
    tree: Any = field(repr=False)
    parameters: tuple[Parameter, ...]
    span: Span
    locals: frozenset[str] = field(repr=False)
    scope: Scope = field(repr=False)
    receiver: str | None = None
    cost: float | None = None

    def bound(self) -> FunctionSource:
        """The same function as a method bound to its first parameter."""
        if not self.parameters or self.receiver is not None:
            return self
        receiver = self.parameters[0].name
        return replace(self, parameters=self.parameters[1:], locals=self.locals - {receiver}, receiver=receiver)


def from_tree(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The FunctionSource of a parsed definition; its syntax is not checked here."""
    check_nesting(node, file)
    tree = converted(node, lines)
    arguments = tree.args
    stars = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    parameters = parameters_of(arguments)
    locals_ = assigned_in(tree.body) | {p.name for p in parameters} | {each.id for each in stars}
    return FunctionSource(
        name=node.name,
        qualname=qualname,
        file=file,
        tree=tree,
        parameters=parameters,
        span=span_of(tree, file),
        locals=locals_,
        scope=scope,
    )


def parameters_of(arguments: Any) -> tuple[Parameter, ...]:
    """The parameters of a definition, `**options` apart."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults

    def kind(index: int) -> ParameterKind:
        return "positional" if index < len(arguments.posonlyargs) else "either"

    return (
        *(Parameter(a.id, kind(i), d) for i, (a, d) in enumerate(zip(positional, defaults, strict=True))),
        *([] if arguments.vararg is None else [Parameter(arguments.vararg.id, "rest", gast.Tuple([], gast.Load()))]),
        *(Parameter(a.id, "keyword", d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    )


def converted(node: ast.AST, lines: Sequence[str]) -> Any:
    """The gast tree of a definition or a lambda of Python's parser, with columns in characters: the same each time."""
    if not hasattr(node, _CONVERTED):
        tree = gast.ast_to_gast(node)
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if not all(map(str.isascii, lines[first - 1 : last])):
            _use_character_columns(tree, lines)
        if isinstance(tree, gast.FunctionDef | gast.AsyncFunctionDef):
            tree.decorator_list = []
        setattr(node, _CONVERTED, tree)
    return getattr(node, _CONVERTED)


_CONVERTED = "pcbatch_tree"
"""The attribute of a tree of Python's that has its gast tree."""


def _use_character_columns(tree: Any, lines: Sequence[str]) -> None:
    """Turn the columns of Python's parser, which count UTF-8 bytes, into characters."""
    for node in gast.walk(tree):
        for line, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            number = getattr(node, line, None)
            if number is not None and not lines[number - 1].isascii():
                prefix = lines[number - 1].encode()[: getattr(node, column)]
                setattr(node, column, len(prefix.decode()))


# -- capture -----------------------------------------------------------------------------------------------------------
# The text of a live function's file, and its definition in it.


def capture(function: Any) -> FunctionSource:
    """The source of a live Python function; its syntax is not checked here.

    Raises UnsupportedSyntaxError with the reason where there is no source to be had.
    """
    node, lines = found(function)
    source = from_tree(node, lines, function.__code__.co_filename, function.__qualname__, LiveScope(function))
    return replace(source, cost=getattr(function, COST_ATTRIBUTE, None))


def found(function: Any) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, tuple[str, ...]]:
    """The definition of a function, and the lines of its file."""
    original = _unwrapped(function)
    if original is not function:
        raise UnsupportedSyntaxError([wrapped(original.__name__, _first_line(original))])
    if not isinstance(function, FunctionType):
        raise _refused("PCB150", f"{_describe(function)} is {_kind(function)}, not a plain Python function", _DEFINE)
    code = function.__code__
    if is_rewritten(code.co_filename):
        what = f"`{function.__name__}` is defined inside of a tf.function, and AutoGraph has rewritten it"
        raise _refused("PCB151", what, "define it outside, and call it there; or write tf.function(autograph=False)")
    lines = lines_of(function)
    if not lines:
        raise _refused(
            "PCB100", f"the source of `{function.__qualname__}` cannot be read: {code.co_filename} has no text", _A_FILE
        )
    if function.__name__ == "<lambda>" or code.co_name == "<lambda>":
        help_ = "write `def name(..): return ..`"
        message = "a lambda cannot be made into a batched function"
        raise UnsupportedSyntaxError([Diagnostic("PCB124", message, _first_line(function), "this lambda", help_)])
    nodes = [node for node in _functions(parse_lines(lines, code.co_filename)) if _starts(node, code)]
    if not nodes and code.co_filename == "<string>":  # what `exec` makes is called as what `python -c` runs
        what = f"the source of `{function.__qualname__}` cannot be read"
        raise _refused("PCB100", f"{what}: `exec` keeps no text", _A_FILE)
    if not nodes:
        what = f"the source of `{function.__qualname__}` cannot be found in {code.co_filename}"
        raise _refused("PCB151", f"{what}: line {code.co_firstlineno} is another", _IMPORT_AGAIN)
    return nodes[0], lines


def _unwrapped(function: Any) -> Any:
    """The plain function inside of `functools.wraps`, `lru_cache` and their like; `function` itself if it has none."""
    if isinstance(function, classmethod) or not hasattr(function, "__wrapped__"):
        return function
    inner = inspect.unwrap(function)
    return inner if isinstance(inner, FunctionType) else function


def lines_of(function: FunctionType) -> tuple[str, ...]:
    """The text in which a function stands, as the file is now; none where there is no text."""
    file = function.__code__.co_filename
    known = linecache.cache.get(file)
    linecache.checkcache(file)
    if known is not None and file not in linecache.cache and not os.path.exists(file):
        linecache.cache[file] = known  # a cell's text with a date: older notebooks put it back themselves
    return tuple(linecache.getlines(file, function.__globals__))


@functools.lru_cache(maxsize=64)
def _functions(module: ast.Module) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """The definitions in a file."""
    waiting: list[ast.AST] = [module]
    for node in waiting:  # which grows
        for name in _BODIES:
            waiting += getattr(node, name, ())
    return tuple(node for node in waiting if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


_BODIES = ("body", "handlers", "cases", "orelse", "finalbody")
"""The fields of statements, and of their parts, that hold statements."""


def _starts(node: ast.FunctionDef | ast.AsyncFunctionDef, code: Any) -> bool:
    """Return whether `code` was compiled from `node`: the same name, first line and parameters."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return (node.name, first, tuple(names)) == (code.co_name, code.co_firstlineno, code.co_varnames[:count])


def _first_line(function: FunctionType) -> Span:
    """The first line of a function, decorators included."""
    return Span.of_line(function.__code__.co_filename, function.__code__.co_firstlineno)


def wrapped(name: str, span: Span) -> Diagnostic:
    """The refusal of a function that another decorator has replaced."""
    return Diagnostic(
        "PCB122",
        f"`{name}` is already wrapped by another decorator",
        span,
        "what the wrapper does would be lost",
        "put `autobatch` below the other decorators, next to `def`",
    )


def _describe(value: Any) -> str:
    return f"`{getattr(value, '__qualname__', None) or type(value).__qualname__}`"


def _kind(value: Any) -> str:
    """Describe in words a value that is no function."""
    match value:
        case type():
            return "a class"
        case BuiltinFunctionType() | MethodType():
            return "built in"
        case functools.partial():
            return "a functools.partial"
        case classmethod() | property():
            return f"a {type(value).__name__}"
        case _ if callable(value):
            return "an object with `__call__`"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


_DEFINE = "write `def f(..): ..` that calls it, and make that a batched function"
_A_FILE = (
    "define the function in a file, a notebook cell or, from Python 3.13, the interactive prompt; for text of your own "
    "making, put its lines into `linecache.cache` under the name that it is compiled with"
)
_IMPORT_AGAIN = "if the file has changed since it was imported, import it again"


def _refused(code: str, message: str, help_: str) -> CompileError:
    return UnsupportedSyntaxError([Diagnostic(code, message, None, help=help_)])
