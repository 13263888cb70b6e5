"""The syntax check: constructs that the reader cannot read, whatever values there are, found in a function's tree.

A batched function with one of them is refused when it is decorated; a helper with one of them is not interpreted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

import gast

from pcbatch.errors import Diagnostic, raise_all
from pcbatch.frontend.nodes import PYTHON_2, Refusal, assigned_in, children, parameters, span_of
from pcbatch.frontend.scope import Scope
from pcbatch.frontend.source import FunctionSource, capture, from_tree

TRY = Refusal(
    "PCB101",
    "`try` is not supported",
    "a lane that fails cannot be caught here",
    "test the condition with `if` beforehand; read a failed lane's status from `f.run(..)`",
)
CLASS = Refusal(
    "PCB102",
    "a class inside a batched function is not supported",
    "defined here",
    "define it outside, next to the batched function",
)
DECORATED = Refusal(
    "PCB102",
    "a function inside a batched function has no decorators",
    "what it does would be lost",
    "leave it away: a function inside a batched function is part of it",
)
SCOPE = Refusal(
    "PCB103",
    "a variable around the batched function cannot be assigned",
    "declared here",
    "return the new value and assign it where the function is called",
)
GENERATOR = Refusal(
    "PCB105",
    "a batched function returns once, and cannot `yield`",
    "suspended here",
    "store the values in an array and return that; a function that is gone over in a batched one may `yield`",
)
ASYNC = Refusal("PCB105", "`async` and `await` are not supported", "here", "write a plain function")
TEMPLATE = Refusal(
    "PCB114",
    "template strings are not supported",
    "made here",
    "use the text as the message of an `assert` or a `raise`",
)
TYPES = Refusal("PCB123", "type aliases and type parameters are not supported", "here", "leave the types out")
COST_VALUE = Refusal(
    "PCB127",
    "a row cannot cost this",
    "not a positive number",
    "say about how many multiply-adds one row takes: `@pcbatch.cost(1000.0)`",
)
COST_LITERAL = Refusal(
    "PCB128",
    "this cost is not a literal, so it is not known without running the file",
    "known only when the file runs",
    "write the number here: `@pcbatch.cost(1000.0)`",
)


CODES: dict[str, str] = {
    "PCB100": "the source of the function cannot be read",
    "PCB101": "`try`: a lane that fails has a status, it cannot be caught",
    "PCB102": "a class, or a decorated function, inside a batched function",
    "PCB103": "`global`, or `nonlocal` of what is no variable of a batched function",
    "PCB105": "`yield`, `await`, `async`",
    "PCB107": "control flow, a batched call or an element store inside `with`",
    "PCB109": "a loop over what has no items; a range of what are no integers",
    "PCB112": "a `tf.Variable` that is made or changed",
    "PCB113": "`is` with a lane's numbers",
    "PCB114": "a string made from a lane's values outside `assert` and `raise`",
    "PCB116": "`raise` of what is no exception, or was made elsewhere",
    "PCB117": "a number that does not fit into the dtype of what it meets",
    "PCB118": "randomness with hidden state",
    "PCB119": "input, output, clocks: what would happen once, while the program is traced",
    "PCB120": "what depends on how a value is represented: `.numpy()`, `id`, `hash`",
    "PCB121": "`return` without a value",
    "PCB122": "a further decorator under `autobatch`",
    "PCB123": "a type alias or type parameters",
    "PCB124": "a lambda made into a batched function",
    "PCB125": "syntax of Python 2",
    "PCB126": "`pcbatch.sync()` with arguments",
    "PCB127": "`pcbatch.cost` of something that is not a positive number",
    "PCB128": "`pcbatch.cost` of something that only running the file would tell",
    "PCB129": "`range`, `enumerate`, `zip` and `reversed` in combinations that a loop does not take",
    "PCB130": "a list whose length differs by lane, or that has no end",
    "PCB131": "`pcbatch.debug(..)` as a value, or with arguments that do not fit",
    "PCB132": "a forward derivative, inside a batched function, through a batched call",
    "PCB150": "something other than a plain Python function is made into a batched function",
    "PCB151": "a function that does not stand in its file as it is now",
    "PCB152": "a file that is not valid Python",
    "PCB201": "a variable that is not assigned on every path to where it is read",
    "PCB202": "arguments of a batched call that do not fit its parameters",
    "PCB203": "a path through a function that ends without `return`",
    "PCB204": "a store or a change of something that is not a local variable's own",
    "PCB205": "a change of what may be one of several arrays or objects",
    "PCB208": "an unknown name",
    "PCB211": "a call that changes an object that is read later",
}


def _same(refusal: Refusal, *names: str) -> dict[str, Refusal]:
    return dict.fromkeys(names, refusal)


_REFUSED: dict[str, Refusal] = {
    **_same(TRY, "Try", "TryStar"),
    "ClassDef": CLASS,
    **_same(ASYNC, "AsyncFunctionDef", "AsyncFor", "AsyncWith", "Await"),
    "Global": SCOPE,
    **_same(TYPES, "TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec"),
    **_same(TEMPLATE, "TemplateStr", "Interpolation"),
    **_same(PYTHON_2, "Print", "Exec", "Repr"),
}
REFUSED: dict[type, Refusal] = {getattr(gast, name): each for name, each in _REFUSED.items() if hasattr(gast, name)}
"""The constructs refused by their node type alone."""


def check_syntax(tree: Any, file: str) -> list[Diagnostic]:
    """Every construct in the batched function `tree` that cannot be read."""
    found = [*_suspensions(tree), *unreadable(tree)]
    found.sort(key=lambda each: (each[0].lineno, each[0].col_offset))
    return [refusal.at(span_of(node, file)) for node, refusal in found]


def _suspensions(tree: Any) -> Iterator[tuple[Any, Refusal]]:
    """Yield the places where a batched function suspends itself: only generators that it iterates over may do that."""
    return ((each, GENERATOR) for each in _inside(tree) if isinstance(each, gast.Yield | gast.YieldFrom))


def unreadable(tree: Any) -> Iterator[tuple[Any, Refusal]]:
    """The constructs in a function or a lambda that cannot be read, functions inside of it included."""
    return _in_scope(tree, frozenset())


def _in_scope(tree: Any, around: frozenset[str]) -> Iterator[tuple[Any, Refusal]]:
    """Yield refusals as `unreadable`; the functions `around` have variables of these names."""
    if type(tree) in REFUSED:
        yield tree, REFUSED[type(tree)]
    nodes = _inside(tree)
    has_functions = any(isinstance(each, gast.FunctionDef | gast.AsyncFunctionDef) for each in nodes)
    own = _variables(tree, nodes) if has_functions else frozenset()
    for node in nodes:
        match node:
            case gast.FunctionDef(decorator_list=decorators):
                yield from ((decorator, DECORATED) for decorator in decorators)
                yield from _in_scope(node, around | own)
            case gast.AsyncFunctionDef():
                yield from _in_scope(node, around | own)
            case gast.Nonlocal(names=names) if not around.issuperset(names):
                yield node, SCOPE
            case gast.comprehension(is_async=is_async, target=target) if is_async:
                yield target, ASYNC
            case _ if type(node) in REFUSED:
                yield node, REFUSED[type(node)]


def _variables(tree: Any, nodes: Sequence[Any]) -> frozenset[str]:
    """The variables of a function, with these nodes, that functions inside of it may declare `nonlocal`."""
    body = tree.body if isinstance(tree.body, list) else []
    functions = {each.name for each in nodes if isinstance(each, gast.FunctionDef)}
    declared = {name for each in nodes if isinstance(each, gast.Nonlocal) for name in each.names}
    return frozenset(({each.id for each in parameters(tree.args)} | assigned_in(body) | functions) - declared)


def _inside(tree: Any) -> list[Any]:
    """The nodes inside of a function, in order, without those of functions and classes inside of it."""
    waiting = children(tree)[::-1]
    found = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
            waiting += reversed(children(node))
    return found


def read_function(function: Any) -> FunctionSource:
    """Capture the source of a live Python function or bound method and check its syntax.

    Raises UnsupportedSyntaxError with everything in it that pcbatch does not translate, or with the reason why there is
    no source to be had.
    """
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return read_function(function.__func__).bound()
    if isinstance(function, staticmethod | classmethod):
        return read_function(function.__func__)
    return _checked(capture(function))


def read_definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The source of a parsed definition; raises UnsupportedSyntaxError with every refusal in it."""
    return _checked(from_tree(node, lines, file, qualname, scope))


def _checked(source: FunctionSource) -> FunctionSource:
    raise_all(check_syntax(source.tree, source.file))
    return source
