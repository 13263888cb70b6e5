"""Calls of batched functions: which names denote one, and which argument goes to which parameter."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.source.iteration import key_of, reduced
from pcbatch.frontend.source.nested import definition, is_expression, of_lambda
from pcbatch.frontend.source.nodes import INNER_SCOPES, consumed_by, dotted, span_of, unparse
from pcbatch.frontend.source.scope import is_builtin
from pcbatch.frontend.source.scopes import bound_in
from pcbatch.frontend.source.source import Closure, FunctionSource, Parameter
from pcbatch.syntax import parse

Resolve = Callable[[FunctionSource, str], FunctionSource | None]
Report = Callable[[Diagnostic], None]
METHOD = "."
"""Begins the name that is asked for a method which is a function of the program: `Account.fee` may be another one."""


class Callees:
    """The batched functions that the names in one function denote, asked for once each."""

    def __init__(self, source: FunctionSource, resolve: Resolve):
        self.source = source
        self._resolve = resolve
        self._known: dict[str, FunctionSource | None] = {}
        self._lambdas: dict[int, Closure] = {}
        self._looked_into: list[Any] = []
        self.variables: Set[str] = source.locals
        """The variables of the function, those of the compiler's own included."""

    def named(self, node: Any) -> FunctionSource | None:
        """The batched function, or the function of this one, that the expression `node` denotes, or None."""
        name = dotted(node)
        is_label = isinstance(node, gast.Name) and "." in node.id  # a method that is a function of the program
        if name is None or (name.partition(".")[0] in self.variables and not is_label):
            return None
        if name in self.source.functions:
            return self.source.functions[name].source
        asked = METHOD + name if is_label else name
        if asked not in self._known:
            self._known[asked] = self._resolve(self.source.root, asked)
        return self._known[asked]

    def has_calls(self, node: Any) -> bool:
        """Whether a comprehension calls functions of the program, for which nothing can stand."""
        if isinstance(node, gast.Lambda):
            return False
        if getattr(node, "is_written_out", False):  # `source.mapping`
            return True
        if isinstance(node, gast.Call) and self.is_called_key(node):
            return True
        called = self.closure(node.func) if isinstance(node, gast.Call) else None
        if called is not None:
            if isinstance(node.func, gast.Lambda):
                return False
            stands = _is_given(node.func, self.source) and is_expression(called.source)
            if not stands or self._calls_inside(called.source):
                return True
        return any(map(self.has_calls, gast.iter_child_nodes(node)))

    def _calls_inside(self, function: FunctionSource) -> bool:
        """Whether a function that is one expression, for which a lambda can stand, calls one for which nothing can."""
        if function.tree in self._looked_into:  # it calls itself
            return True
        self._looked_into.append(function.tree)
        found = self.has_calls(function.tree.body[0].value)
        self._looked_into.pop()
        return found

    def is_called_key(self, node: Any) -> bool:
        """Whether the key of a `max(.., key=..)` is, or calls, a function of the program that nothing stands for."""
        key = _key(node, self.source)
        if key is None:
            return False
        if isinstance(key, gast.Lambda):
            return self.has_calls(key.body)
        closure = self.closure(key)
        if closure is None or not (_is_given(key, self.source) and is_expression(closure.source)):
            return closure is not None
        return self.has_calls(closure.source.tree.body[0].value)

    def closure(self, node: Any) -> Closure | None:
        """The function that the expression `node` is, with what it is handed of here, or None."""
        if isinstance(node, gast.Lambda):
            if id(node) not in self._lambdas:
                self._lambdas[id(node)] = of_lambda(self.source, node)
            return self._lambdas[id(node)]
        found = self.named(node)
        if found is None:
            return None
        return self.source.functions[node.id] if _is_given(node, self.source) else Closure(found)

    def called(self, node: Any) -> FunctionSource | None:
        """The batched function that the Call `node` calls, or None."""
        return self.named(node.func)


def _is_given(node: Any, source: FunctionSource) -> bool:
    return isinstance(node, gast.Name) and node.id in source.functions


def _key(node: Any, source: FunctionSource) -> Any:
    """The key of the Call `node`, if that is a loop over all elements, and of which it is the body; else None."""
    key = key_of(node)
    if key is None or reduced(node, lambda name: name not in source.locals and is_builtin(source.scope, name)) is None:
        return None
    return key


def check_uses(callees: Callees, report: Report) -> None:
    """Report batched functions that are used as values or called from lambdas and comprehensions."""
    source = callees.source

    def root(node: Any) -> str:
        return (dotted(node) or "").partition(".")[0]

    loops: set[int] = set()
    """The comprehensions that are loops."""

    def visit(node: Any, hidden: frozenset[str], inner: Any, unrolled: bool = False) -> None:
        found = definition(node)
        if isinstance(node, gast.FunctionDef) or (found is not None and found[0] in source.functions):
            return  # a function of its own, which is looked at by itself
        if isinstance(node, gast.Name) and node.id in source.functions and inner is None:
            return
        if (
            isinstance(node, gast.Name | gast.Attribute)
            and root(node) not in hidden
            and (named := callees.named(node)) is not None
        ):
            if not named.is_taken:  # a plain function is a value as any other
                report(_as_value(node, source))
            return
        if isinstance(node, gast.Call) and root(node.func) not in hidden and callees.called(node) is not None:
            if _is_given(node.func, source) and is_expression(source.functions[node.func.id].source):
                pass  # a lambda stands for it
            elif isinstance(inner, gast.Lambda):
                report(_inside_lambda(node, source))
            elif inner is not None and not unrolled:
                report(_inside_comprehension(node, inner, source))
            for part in (*node.args, *node.keywords):
                value = part.value if isinstance(part, gast.keyword) else part
                if inner is not None or callees.closure(value) is None:
                    visit(part, hidden, inner, unrolled)
            return
        if isinstance(node, INNER_SCOPES):
            hidden |= bound_in(node)
            unrolled = id(node) in loops or _is_written_out(node, consumed=unrolled)
            inner = node if inner is None else inner
        if isinstance(node, gast.Call):
            loops.add(id(reduced(node, lambda name: name not in source.locals and is_builtin(source.scope, name))))
        key = _key(node, source) if isinstance(node, gast.Call) else None
        for child in gast.iter_child_nodes(node):
            if key is not None and getattr(child, "value", None) is key:
                visit_key(key, hidden, inner, unrolled)
                continue
            given = isinstance(node, gast.Call) and isinstance(child, gast.GeneratorExp)
            visit(child, hidden, inner, unrolled or (given and _is_consumed(node, source)))

    def visit_key(key: Any, hidden: frozenset[str], inner: Any, unrolled: bool) -> None:
        """What `max(.., key=..)` does with each element: the body of its loop."""
        match key:
            case gast.Lambda(args=arguments, body=body) if len(arguments.args) == 1 and not arguments.defaults:
                visit(body, hidden | {arguments.args[0].id}, inner, unrolled)
            case gast.Name() | gast.Attribute() if callees.named(key) is not None and root(key) not in hidden:
                if inner is not None and not unrolled:
                    visit(key, hidden, inner, unrolled)
            case _:
                visit(key, hidden, inner, unrolled)

    for statement in source.tree.body:
        visit(statement, frozenset(), None)


def _is_written_out(node: Any, *, consumed: bool) -> bool:
    """Whether an inner scope is a comprehension that can be written out; a generator, if something consumes it."""
    fits = isinstance(node, gast.ListComp) or (isinstance(node, gast.GeneratorExp) and consumed)
    return fits and not any(each.ifs for each in node.generators)


def _is_consumed(node: Any, source: FunctionSource) -> bool:
    """Whether a call takes one generator and goes over it."""
    generators = consumed_by(node)
    return bool(generators) and node.func.id not in source.locals and is_builtin(source.scope, node.func.id)


def _as_value(node: Any, source: FunctionSource) -> Diagnostic:
    name = dotted(node)
    kind = "function" if name in source.functions else "batched function"
    return Diagnostic(
        "PCB206",
        f"the {kind} `{name}` is used as a value",
        span_of(node, source.file),
        "not called here",
        f"call it: `{name}(..)`; to choose between functions write `if .. else`",
    )


def _inside_lambda(node: Any, source: FunctionSource) -> Diagnostic:
    return Diagnostic(
        "PCB115",
        f"the batched function `{dotted(node.func)}` is called inside a lambda",
        span_of(node, source.file),
        "called here",
        "call it in a statement, where its value is needed",
    )


def _inside_comprehension(node: Any, comprehension: Any, source: FunctionSource) -> Diagnostic:
    first = comprehension.generators[0]
    loop = f"for {unparse(first.target)} in {unparse(first.iter)}:"
    return Diagnostic(
        "PCB130",
        f"the batched function `{dotted(node.func)}` is called inside a comprehension",
        span_of(node, source.file),
        "called here",
        f"write a list without `if`, `[.. for .. in ..]`; or a loop, `{loop}`, that adds to a total",
    )


# -- binding arguments -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """An argument of a call: its parameter, its expression, and whether that is the parameter's default."""

    parameter: str
    value: Any
    default: bool = False


def bind(node: Any, callee: FunctionSource, source: FunctionSource, report: Report) -> list[Argument] | None:
    """The arguments of the Call `node` in the order in which they are evaluated, defaults last.

    Arguments that do not fit `callee` are reported, all of them, and None is returned.
    """
    name = dotted(node.func)
    faults: list[Diagnostic] = []

    def fault(where: Any, message: str, label: str) -> None:
        help_ = f"it is defined as `{_signature(callee)}`"
        faults.append(Diagnostic("PCB202", message, span_of(where, source.file), label, help_))

    rest = next((p.name for p in callee.own_parameters if p.kind == "rest"), None)
    stars = [each for each in node.args if isinstance(each, gast.Starred)]
    if rest is not None and len(stars) == 1 and node.args.index(stars[0]) >= len(_positional(callee)):
        stars = []  # into the tuple
    for star in [*stars, *(keyword for keyword in node.keywords if keyword.arg is None)]:
        where = star.value if isinstance(star, gast.keyword) else star
        report(_starred(where, name or "", callee, source))
    if stars or any(keyword.arg is None for keyword in node.keywords):
        return None
    positional = _positional(callee)
    by_keyword = {p.name for p in callee.own_parameters if p.kind in ("either", "keyword")}
    found = [Argument(parameter, value) for parameter, value in zip(positional, node.args, strict=False)]
    if rest is not None and len(node.args) > len(positional):
        further = gast.Tuple(node.args[len(positional) :], gast.Load())
        found.append(Argument(rest, gast.copy_location(further, node.args[len(positional)])))
    elif len(node.args) > len(positional):
        message = f"`{name}` takes {len(positional)} positional arguments, {len(node.args)} are given"
        fault(node.args[len(positional)], message, "one too many")
    for keyword in node.keywords:
        if keyword.arg not in by_keyword:
            fault(keyword.value, f"`{name}` has no keyword parameter `{keyword.arg}`", "not expected")
        elif any(argument.parameter == keyword.arg for argument in found):
            fault(keyword.value, f"`{name}` is given `{keyword.arg}` twice", "given a second time")
        else:
            found.append(Argument(keyword.arg, keyword.value))
    given = {argument.parameter for argument in found}
    missing = [p.name for p in callee.own_parameters if p.name not in given and p.default is None]
    if missing:
        names = ", ".join(f"`{each}`" for each in missing)
        fault(node, f"`{name}` is called without {names}", f"no argument for {names}")
    for parameter in callee.own_parameters:
        if parameter.name in given or parameter.default is None:
            continue
        if parameter.kind == "rest":
            found.append(Argument(parameter.name, gast.copy_location(parameter.default, node)))
            continue
        found.append(Argument(parameter.name, _default(parameter, callee, str(name)), default=True))
    for diagnostic in faults:
        report(diagnostic)
    return None if faults else found


def _positional(callee: FunctionSource) -> list[str]:
    """The parameters that positional arguments go to, one by one."""
    return [each.name for each in callee.own_parameters if each.kind in ("positional", "either")]


def spread_over(node: Any, callee: FunctionSource) -> int | None:
    """How many parameters the tuple in `f(a, *rest)`, which comes last, must be for; None where that cannot be said."""
    *before, last = node.args or [None]
    if not isinstance(last, gast.Starred) or any(isinstance(each, gast.Starred) for each in before):
        return None
    if any(each.kind == "rest" for each in callee.own_parameters):
        return None
    given = {keyword.arg for keyword in node.keywords}
    left = [each for each in callee.own_parameters if each.kind in ("positional", "either")][len(before) :]
    left = [each for each in left if each.name not in given]
    return None if any(each.default is not None for each in left) else len(left)


def _starred(node: Any, name: str, callee: FunctionSource, source: FunctionSource) -> Diagnostic:
    parameters = ", ".join(parameter.name for parameter in callee.parameters)
    return Diagnostic(
        "PCB110",
        f"the batched function `{name}` is called with arguments that are unpacked",
        span_of(node, source.file),
        "how many there are is not known here",
        f"unpack them first and write them out: `{name}({parameters})`",
    )


def _default(parameter: Parameter, callee: FunctionSource, name: str) -> Any:
    """The expression of a default: itself where it is a literal, else the value that Python made at the definition."""
    if is_literal(parameter.default) or callee.is_nested:
        return parameter.default
    if parameter.kind == "keyword":
        place = f"__kwdefaults__[{parameter.name!r}]"
    else:
        defaults = [
            p.name for p in callee.root.parameters if p.kind in ("positional", "either") and p.default is not None
        ]
        place = f"__defaults__[{defaults.index(parameter.name)}]"
    return gast.ast_to_gast(parse(f"{name}.{place}")).body[0].value


def _signature(source: FunctionSource) -> str:
    """`f(a, /, b=.., *, c)`."""
    parts: list[str] = []
    kinds = [parameter.kind for parameter in source.own_parameters]
    for index, parameter in enumerate(source.own_parameters):
        if parameter.kind == "keyword" and not {"keyword", "rest"} & {*kinds[:index]}:
            parts.append("*")
        star = "*" if parameter.kind == "rest" else ""
        parts.append(star + parameter.name if star or parameter.default is None else f"{parameter.name}=..")
        if parameter.kind == "positional" and "positional" not in kinds[index + 1 :]:
            parts.append("/")
    return f"{source.name}({', '.join(parts)})"


def is_literal(node: Any) -> bool:
    """Whether an expression is a number, a bool or a tuple of such."""
    match node:
        case gast.Constant(value=value):
            return isinstance(value, int | float)
        case gast.UnaryOp(op=gast.USub() | gast.UAdd(), operand=gast.Constant(value=value)):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case gast.Tuple(elts=parts):
            return all(map(is_literal, parts))
    return False
