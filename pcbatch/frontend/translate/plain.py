"""The user's function as plain Python, with what tensors do not know by themselves done for them.

`a[i] = v` becomes `a = store(a, i, v)`, on a copy, since tensors cannot be changed in place; slices of fixed length are
checked; shifts and some built-ins get their meaning; `case True:` becomes `case true():` with a class that knows the
array library's bools. Everything else runs as it was written, closures and globals shared with it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Set
from types import CodeType, FunctionType
from typing import Any

import gast

from pcbatch.frontend.source.scope import is_builtin
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.matching import FLAG
from pcbatch.ir.slices import Window, length_of

STORE = "_pcb_store"
FLAGS = {True: "_pcb_true", False: "_pcb_false"}
WINDOW = "_pcb_window"
READ = "_pcb_read"
CALL = "_pcb_call"
SHIFTS: dict[type[ast.operator], str] = {ast.LShift: "lshift", ast.RShift: "rshift"}
"""Operators that tensors lack, and the names of the functions given for them."""


def read_window(array: Any, index: Any) -> Any:
    """`array[index]`, each `Window` in the index checked against its axis; IndexError where it leaves the array."""
    parts = index if isinstance(index, tuple) else (index,)
    shape = getattr(array, "shape", None) or (len(array),)
    taken = sum(part is not None and part is not ... for part in parts)
    found: list[Any] = []
    axis = 0
    for part in parts:
        found.append(part.resolve(shape[axis]) if isinstance(part, Window) else part)
        axis += len(shape) - taken if part is ... else part is not None
    return array[tuple(found) if isinstance(index, tuple) else found[0]]


def plain_function(
    function: FunctionType,
    source: FunctionSource,
    store: Callable[..., Any],
    builtins: Mapping[str, Callable[..., Any]],
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """`function` itself if it needs no help, else a copy of it that is helped.

    In the copy `store(array, index, value)` gives a new array for a store, and calls of the built-ins in `builtins`,
    which do not know the array library's values, go to the functions given for them; so do the operators in `SHIFTS`,
    and calls of the paths in `functions`.
    """
    calls = {path: f"{CALL}{number}" for number, path in enumerate(functions or {})}
    helped = {name for name in builtins if name in source.names and is_builtin(source.scope, name)}
    definition = _Helped(helped, calls).visit(gast.gast_to_ast(source.tree))
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    helpers: dict[str, Any] = {STORE: store, READ: read_window, WINDOW: Window}
    helpers |= {_alias(name): builtins[name] for name in (*helped, *SHIFTS.values(), "pos")}
    helpers |= {name: _flag(flag, builtins[FLAG]) for flag, name in FLAGS.items()}
    helpers |= {name: (functions or {})[path] for path, name in calls.items()}
    given = {name: each for name, each in helpers.items() if name in used}
    if not given:
        return function
    definition.decorator_list = []
    definition.returns = None
    definition.name = "_pcb_helped"  # not the function's own name, which must stay what it is for recursive calls
    # Nested in a function whose parameters are the closure's names, the copy sees them as free variables.
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: _cell(value) for name, value in given.items()}
    outer = ast.parse(f"def outer({', '.join(cells)}): pass")
    outer.body[0].body = [definition]  # type: ignore[attr-defined]
    code = compile(ast.fix_missing_locations(outer), source.file, "exec")
    inner = _code_named(_code_named(code, "outer"), "_pcb_helped")
    closure = tuple(cells[name] for name in inner.co_freevars)
    copied = FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


class _Flag(type):
    """The type of a class of which True, or False, and the array library's equals are the instances."""

    is_one: Callable[[Any], Any]

    def __instancecheck__(cls, value: Any) -> bool:
        return bool(cls.is_one(value))


def _flag(flag: bool, same: Callable[[Any, bool], Any]) -> type:
    return _Flag(FLAGS[flag], (), {"is_one": staticmethod(lambda value: same(value, flag))})


def _alias(name: str) -> str:
    return f"_pcb_{name}"


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)


class _Helped(ast.NodeTransformer):
    """Rewrites assignments with subscripts among their targets, and calls of helped built-ins and of `calls`."""

    def __init__(self, helped: Set[str], calls: Mapping[str, str]) -> None:
        self.helped, self.calls = helped, calls
        self.numbers = itertools.count()

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = self.calls.get(ast.unparse(node.func)) if isinstance(node.func, ast.Name | ast.Attribute) else None
        if name is not None:
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node.func)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Name(self, node: ast.Name) -> ast.Name:
        name = _alias(node.id) if node.id in self.helped else node.id
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not any(map(_is_window, _parts(node.slice))):
            return node
        return _call(READ, node, node.value, _index(node.slice))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call(_alias("pos"), node, node.operand) if isinstance(node.op, ast.UAdd) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        shift = SHIFTS.get(type(node.op))
        return node if shift is None else _call(_alias(shift), node, node.left, node.right)

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        stores: list[ast.stmt] = []
        targets = [self._target(target, stores) for target in node.targets]
        return [ast.copy_location(ast.Assign(targets, node.value), node), *stores] if stores else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        target = node.target
        if isinstance(target, ast.Subscript):
            old: ast.expr = self.visit(ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target))
        elif isinstance(target, ast.Name) and type(node.op) in SHIFTS:
            old = ast.Name(target.id, ast.Load())
        else:
            return node
        value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        shift = SHIFTS.get(type(node.op))
        new = value if shift is None else _call(_alias(shift), node, old, node.value)
        if isinstance(target, ast.Name):
            return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], new), node))
        return self._store(target.value, target.slice, new, node)

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.pattern:
        if node.value is None:
            return node
        return ast.copy_location(ast.MatchClass(ast.Name(FLAGS[node.value], ast.Load()), [], [], []), node)

    def _target(self, target: ast.expr, stores: list[ast.stmt]) -> ast.expr:
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(element, stores) for element in target.elts]
        elif isinstance(target, ast.Subscript):
            name = f"_pcb_value{next(self.numbers)}"
            stores.append(self._store(target.value, target.slice, ast.Name(name, ast.Load()), target))
            return ast.copy_location(ast.Name(name, ast.Store()), target)
        return target

    def _store(self, array: ast.expr, index: ast.expr, value: ast.expr, place: ast.AST) -> ast.stmt:
        assert isinstance(array, ast.Name), "the frontend refuses stores into anything but a name"
        call = _call(STORE, place, ast.Name(array.id, ast.Load()), _index(index), value)
        statement = ast.Assign([ast.Name(array.id, ast.Store())], call)
        return ast.fix_missing_locations(ast.copy_location(statement, place))


def _call(name: str, place: ast.AST, *arguments: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    return ast.fix_missing_locations(ast.copy_location(call, place))


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_window(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and length_of(part.lower, part.upper) is not None


def _index(index: ast.expr) -> ast.expr:
    """An index as an argument: slices as calls of `Window`, or of `slice` where their length is not fixed."""
    match index:
        case ast.Slice(lower, upper, step):
            bounds = [bound or ast.Constant(None) for bound in (lower, upper)]
            length = length_of(lower, upper)
            if length is not None:
                return _call(WINDOW, index, *bounds, step or ast.Constant(1), length)
            return _call("slice", index, *bounds, step or ast.Constant(None))
        case ast.Tuple(elts=parts):
            return ast.copy_location(ast.Tuple([_index(part) for part in parts], ast.Load()), index)
    return index
