"""Capturing the source of a function: its tree, with the real lines and character columns of the file it stands in.

The whole file is parsed and the function is found in it by its first line: nothing is dedented, no position moves.
What `linecache` knows counts as a file: notebook cells, the REPL of Python 3.13, code run under a made-up file name.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Literal

import gast

from pcbatch.errors import CompileError, Diagnostic, Span, UnsupportedSyntaxError, raise_all
from pcbatch.frontend.check.refusals import PYTHON_2
from pcbatch.frontend.check.syntax import check_syntax
from pcbatch.frontend.source.hints import COST_ATTRIBUTE
from pcbatch.frontend.source.nodes import assigned_in, names_in, span_of
from pcbatch.frontend.source.scope import LiveScope, Scope

ParameterKind = Literal["positional", "either", "keyword"]


@dataclass(frozen=True)
class Parameter:
    """A parameter: "positional" only, "keyword" only or "either"; `default` is the expression of its default."""

    name: str
    kind: ParameterKind
    default: Any = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function as its author wrote it. Compared by identity: one value for each batched function.

    `tree` is a gast.FunctionDef without decorators, positions being those in `file`, in characters. `locals` are the
    names that are local by Python's rule (assigned anywhere in it, parameters included), `names` all names in it. The
    `receiver` is the first parameter of a bound method (`self`), which is static and no parameter of the program.
    `cost` is what `pcbatch.cost` says of it.
    """

    name: str
    qualname: str
    file: str
    tree: Any = field(repr=False)
    parameters: tuple[Parameter, ...]
    span: Span
    locals: frozenset[str] = field(repr=False)
    names: frozenset[str] = field(repr=False)
    scope: Scope = field(repr=False)
    receiver: str | None = None
    cost: float | None = None

    def bound(self) -> FunctionSource:
        """The same function as a method bound to its first parameter."""
        if not self.parameters or self.receiver is not None:
            return self
        receiver = self.parameters[0].name
        return replace(self, parameters=self.parameters[1:], locals=self.locals - {receiver}, receiver=receiver)


def read_function(function: Any) -> FunctionSource:
    """Capture the source of a live Python function or bound method and check its syntax.

    Raises UnsupportedSyntaxError with everything in it that pcbatch does not translate, or with the reason why there is
    no source to be had.
    """
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return read_function(function.__func__).bound()
    if isinstance(function, staticmethod | classmethod):
        return read_function(function.__func__)
    original = _unwrapped(function)
    if original is not function:
        raise UnsupportedSyntaxError([wrapped(original.__name__, _first_line(original))])
    if not isinstance(function, FunctionType):
        raise _refused("PCB150", f"{_describe(function)} is {_kind(function)}, not a plain Python function", _DEFINE)
    code = function.__code__
    lines = _lines(function)
    if not lines:
        raise _refused(
            "PCB100", f"the source of `{function.__qualname__}` cannot be read: {code.co_filename} has no text", _A_FILE
        )
    if function.__name__ == "<lambda>" or code.co_name == "<lambda>":
        help_ = "write `def name(..): return ..`"
        message = "a lambda cannot be made into a batched function"
        raise UnsupportedSyntaxError([Diagnostic("PCB124", message, _first_line(function), "this lambda", help_)])
    found = [node for node in _functions(parse_lines(lines, code.co_filename)) if _starts(node, code)]
    if not found:
        what = f"the source of `{function.__qualname__}` cannot be found in {code.co_filename}"
        raise _refused("PCB151", f"{what}: line {code.co_firstlineno} is another", _IMPORT_AGAIN)
    source = from_tree(found[0], lines, code.co_filename, function.__qualname__, LiveScope(function))
    return replace(source, cost=getattr(function, COST_ATTRIBUTE, None))


def _unwrapped(function: Any) -> Any:
    """The plain function inside of `functools.wraps`, `lru_cache` and their like; `function` itself if it has none."""
    if isinstance(function, classmethod) or not hasattr(function, "__wrapped__"):
        return function
    inner = inspect.unwrap(function)
    return inner if isinstance(inner, FunctionType) else function


def _lines(function: FunctionType) -> tuple[str, ...]:
    """The text in which a function stands, as the file is now; none where there is no text."""
    file = function.__code__.co_filename
    known = linecache.cache.get(file)
    linecache.checkcache(file)
    if known is not None and file not in linecache.cache and not os.path.exists(file):
        linecache.cache[file] = known  # a cell's text with a date: older notebooks put it back themselves
    return tuple(linecache.getlines(file, function.__globals__))


def from_tree(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The FunctionSource of a parsed definition; raises UnsupportedSyntaxError with every refusal in it."""
    tree = gast.ast_to_gast(node)
    _use_character_columns(tree, lines)
    arguments = tree.args
    stars = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    parameters = _parameters(arguments)
    source = FunctionSource(
        name=node.name,
        qualname=qualname,
        file=file,
        tree=tree,
        parameters=parameters,
        span=span_of(tree, file),
        locals=assigned_in(tree.body) | {p.name for p in parameters} | {each.id for each in stars},
        names=names_in(tree),
        scope=scope,
    )
    # What stands in a class is most likely a method; the check is repeated when that is known.
    owner = qualname.rpartition(".")[0]
    in_class = owner != "" and not owner.endswith("<locals>")
    raise_all(check_syntax(tree, file, source.locals, scope, parameters[0].name if in_class and parameters else None))
    tree.decorator_list = []
    return source


@lru_cache(maxsize=64)
def parse_lines(lines: tuple[str, ...], file: str) -> ast.Module:
    """The tree of a file's text; UnsupportedSyntaxError if it is not Python."""
    try:
        return ast.parse("".join(lines), filename=file)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        width = error.end_offset - (error.offset or 1) if error.end_lineno == line and error.end_offset else 1
        span = Span(file, line, column, line, column + max(1, width))
        if (error.msg or "").startswith("Missing parentheses in call to"):
            old = Diagnostic("PCB125", f"{PYTHON_2.message}: {error.msg}", span, PYTHON_2.label, PYTHON_2.help)
            raise UnsupportedSyntaxError([old]) from None
        raise UnsupportedSyntaxError([Diagnostic("PCB152", f"not valid Python: {error.msg}", span)]) from None
    except ValueError as error:  # a null byte
        raise _refused("PCB152", f"{file} is not valid Python: {error}", "save it as text") from None


def _functions(module: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _starts(node: ast.FunctionDef | ast.AsyncFunctionDef, code: Any) -> bool:
    """Whether `code` was compiled from `node`: the same name, first line and parameters."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return (node.name, first, tuple(names)) == (code.co_name, code.co_firstlineno, code.co_varnames[:count])


def _parameters(arguments: Any) -> tuple[Parameter, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults

    def kind(index: int) -> ParameterKind:
        return "positional" if index < len(arguments.posonlyargs) else "either"

    return (
        *(Parameter(a.id, kind(i), d) for i, (a, d) in enumerate(zip(positional, defaults, strict=True))),
        *(Parameter(a.id, "keyword", d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)),
    )


def _use_character_columns(tree: Any, lines: Sequence[str]) -> None:
    """Turn the columns of Python's parser, which count UTF-8 bytes, into characters."""
    for node in gast.walk(tree):
        for line, column in (("lineno", "col_offset"), ("end_lineno", "end_col_offset")):
            number = getattr(node, line, None)
            if number is not None and not lines[number - 1].isascii():
                prefix = lines[number - 1].encode()[: getattr(node, column)]
                setattr(node, column, len(prefix.decode()))


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
    """What a value is that is no function, in words."""
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
