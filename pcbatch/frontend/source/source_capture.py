"""Capturing the source of a live function: the text of its file, and its definition in it.

The whole file is parsed and the function is found in it by its first line: nothing is dedented, no position moves.
What `linecache` knows counts as a file: notebook cells, the REPL of Python 3.13, code run under a made-up file name.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from pcbatch.errors import CompileError, Diagnostic, Span, UnsupportedSyntaxError
from pcbatch.frontend.source.hints import COST_ATTRIBUTE
from pcbatch.frontend.source.nodes import parse_lines
from pcbatch.frontend.source.scope import LiveScope
from pcbatch.frontend.source.source import FunctionSource, from_tree
from pcbatch.installed import is_rewritten


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
