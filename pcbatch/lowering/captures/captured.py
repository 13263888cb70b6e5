"""Captured values: what a program reads from closures, globals and modules, and which of it is array-like.

Array-like free values become shared operands, read at every call: never constants of the compiled program, never copied
to the lanes. (A captured 400 MB array took 43 s and 9 GB to compile as a constant, 0.6 s as an operand.) All other free
values are static: they are part of the compiled program and of its cache key.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.pseudo_builtins import PSEUDO_BUILTINS
from pcbatch.ir.types import Type
from pcbatch.ir.values import flatten
from pcbatch.syntax import parse


class Namespace:
    """Name lookup as in the user's function: closure cells, then globals, then builtins; always the present value.

    `values`, those of static parameters, come first; then those `given`: the object that a method is bound to, by the
    name of its first parameter.
    """

    def __init__(
        self,
        function: types.FunctionType,
        given: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
    ):
        self.function = function
        self.given = given or {}
        self.values = values or {}
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def with_values(self, values: Mapping[str, Any]) -> Namespace:
        """The same namespace inside the function when its static parameters have these values."""
        return Namespace(self.function, self.given, values)

    def __getitem__(self, name: str) -> Any:
        for first in (self.values, self.given):
            if name in first:
                return first[name]
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return vars(builtins)[name]

    def reader(self, name: str) -> Callable[[], Any]:
        """How to look up a name, or a dotted one, again and again; what it raises where there is none is `path`'s."""
        root, *attributes = name.split(".")
        read = self._root_reader(root)
        if not attributes:
            return read

        def follow() -> Any:
            value = read()
            for attribute in attributes:
                value = getattr(value, attribute)
            return value

        return follow

    def _root_reader(self, name: str) -> Callable[[], Any]:
        fixed = next((first for first in (self.values, self.given) if name in first), None)
        if fixed is not None or name in self.cells:
            return lambda: self[name]
        names = self.function.__globals__
        return lambda: names[name] if name in names else vars(builtins)[name]

    def sources(self, name: str) -> list[tuple[Callable[[Any, Any], Any], Any]]:
        """Where a name is looked up, as `get(key, default)`: in one place after the other, while nothing is there.

        None is told where it denotes what is fixed here.
        """
        if name in self.values or name in self.given:
            return []
        if name in self.cells:
            return [(partial(getattr, self.cells[name]), "cell_contents")]
        names = self.function.__globals__
        return [(names.get, name)] if name in names else [(names.get, name), (vars(builtins).get, name)]

    def hides(self, name: str) -> bool:
        """Whether `name`, a built-in's, means something else here."""
        return any(name in names for names in (self.values, self.given, self.cells, self.function.__globals__))

    def path(self, text: str) -> Any:
        """The value of a dotted name such as `model.w`; KeyError or AttributeError where there is none."""
        root, *attributes = text.split(".")
        value = self[root]
        for attribute in attributes:
            value = getattr(value, attribute)
        return value


@dataclass(frozen=True)
class Captured:
    """What a program captures now.

    `operands[function][path]` is the operand's name for a captured array at `path`; `values[operand]` its present
    value, of which `taken_apart` gives the type and the leaves. `statics` pairs every other captured path with its
    value, for the cache key. `missing` lists `(function, name)` pairs that are bound to nothing.
    """

    operands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    statics: tuple[tuple[str, str, Any], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict)
    leaves: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def taken_apart(self, type_of: Callable[[Any], Type]) -> Captured:
        """With the types and the leaves of the present values."""
        found = {name: type_of(value) for name, value in self.values.items()}
        leaves = {name: flatten(found[name], value) for name, value in self.values.items()}
        return replace(self, types=found, leaves=leaves)

    def without_values(self) -> Captured:
        """What a compiled program may keep: everything but the arrays."""
        return replace(self, values={}, leaves={})


def code_of(function: ir.Function) -> Iterator[Code]:
    """The Python of a function's ops."""
    return (ir.statement(op) for block in function.blocks for op in block.ops if isinstance(op, ir.Coded))


def function_variables(function: ir.Function) -> frozenset[str]:
    """Every variable of a cfg function: parameters, results and what its ops write."""
    return frozenset(ordered_variables(function))


def ordered_variables(function: ir.Function) -> tuple[str, ...]:
    """The function's variables: parameters first, then in order of first assignment."""
    written = (name for block in function.blocks for op in block.ops for name in ir.writes(op))
    return tuple(dict.fromkeys((*function.parameters, *written, *function.results)))


def free_paths(function: ir.Function) -> tuple[str, ...]:
    """The longest free paths (`tf.nn.relu`, `W`, `params['w']`) that a function's code reads, in their order."""
    variables = function_variables(function)
    found: dict[str, None] = {}
    for code in code_of(function):
        free = frozenset(code.reads) - variables - PSEUDO_BUILTINS
        found.update(dict.fromkeys(path for statement in code.body for path in _paths(statement, free)))
    return tuple(found)


def free_roots(program: ir.Program) -> frozenset[str]:
    """The names that the code of some function reads as free."""
    return frozenset(
        path.split(".")[0].split("[")[0] for function in program.functions for path in free_paths(function)
    )


def _paths(node: ast.AST, free: frozenset[str]) -> Iterator[str]:
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)) and isinstance(node.ctx, ast.Load):
        root: ast.AST = node
        while isinstance(root, ast.Attribute) or (
            isinstance(root, ast.Subscript) and isinstance(root.slice, ast.Constant)
        ):
            root = root.value
        if isinstance(root, ast.Name):
            if root.id in free:
                yield ast.unparse(node)
            return
    for child in ast.iter_child_nodes(node):
        yield from _paths(child, free)


Step = tuple[str, str, Any]
"""One step to a captured value: the text of the path so far, "name", "attribute" or "item", and which one."""


@dataclass(frozen=True)
class FreeValues:
    """What a program's code reads from around it: all that can be known before a call, so that a call need not parse.

    `paths` has the free paths of each function, each as its steps; `taken` the names that no operand may have.
    """

    paths: Mapping[str, tuple[tuple[Step, ...], ...]]
    taken: frozenset[str]


def free_values(program: ir.Program) -> FreeValues:
    """The free paths of every function of `program`."""
    paths = {function.name: tuple(_steps(path) for path in free_paths(function)) for function in program.functions}
    variables = (name for function in program.functions for name in function_variables(function))
    words = (word for function in program.functions for code in code_of(function) for word in code.words)
    return FreeValues(paths, frozenset((*variables, *words)))


def _steps(path: str) -> tuple[Step, ...]:
    """The steps from a name to the value at the end of `path`."""
    node: ast.expr = parse(path, mode="eval").body
    steps: list[Step] = []
    while True:
        match node:
            case ast.Attribute(value, attribute):
                steps.append((ast.unparse(node), "attribute", attribute))
            case ast.Subscript(value, ast.Constant(key)):
                steps.append((ast.unparse(node), "item", key))
            case ast.Name(name):
                return ((name, "name", name), *reversed(steps))
            case _:
                raise ValueError(f"not a path: {path}")
        node = value


def collect(free: FreeValues, namespaces: Mapping[str, Namespace], is_array: Callable[[Any], bool]) -> Captured:
    """Read every free value now and sort it into operands and statics."""
    taken = set(free.taken)
    operands: dict[str, dict[str, str]] = {}
    values: dict[str, Any] = {}
    statics: list[tuple[str, str, Any]] = []
    missing: list[tuple[str, str]] = []
    for function, paths in free.paths.items():
        mine = operands.setdefault(function, {})
        for steps in paths:
            text, value, whole = _resolve(steps, namespaces[function], is_array)
            if text is None:
                missing.append((function, steps[-1][0]))
            elif not whole:
                statics.append((function, text, value))
            elif text not in mine:
                known = next((name for name, other in values.items() if other is value), None)
                mine[text] = known or _operand_name(text, taken, values)
                values[mine[text]] = value
                taken.add(mine[text])
    return Captured(operands, values, tuple(statics), tuple(missing))


def _resolve(
    steps: tuple[Step, ...], namespace: Namespace, is_array: Callable[[Any], bool]
) -> tuple[str | None, Any, bool]:
    """`(text, value, is an operand)` of the shortest array-like prefix of a path, or of the whole path."""
    text: str | None = None
    value: Any = None
    for longer, kind, key in steps:
        try:
            match kind:
                case "name":
                    value = namespace[key]
                case "attribute":
                    value = getattr(value, key)
                case "item":
                    value = value[key]
        except (KeyError, AttributeError, IndexError, TypeError):
            return text, value, False  # tracing it names the fault
        text = longer
        if is_all_arrays(value, is_array):
            return text, value, True
    return text, value, False


def is_all_arrays(value: Any, is_array: Callable[[Any], bool]) -> bool:
    """Whether `value` is an array, or a non-empty structure of arrays alone."""
    match value:
        case dict():
            items = list(value.values())
        case tuple() | list():
            items = list(value)
        case _:
            return is_array(value)
    return bool(items) and all(is_all_arrays(item, is_array) for item in items)


def _operand_name(path: str, taken: set[str], operands: Mapping[str, Any]) -> str:
    """A readable identifier for `path`: itself where it is one and no other module's operand has it."""
    if path.isidentifier() and path not in operands:
        return path
    base = "_".join(part for part in "".join(c if c.isalnum() else " " for c in path).split())
    name, count = base, 0
    while name in taken or not name.isidentifier():
        count += 1
        name = f"{base}_{count}"
    return name
