"""The user's function as plain Python, with what tensors do not know by themselves done for them.

`a[i] = v` becomes `a = store(a, i, v)`, on a copy, since tensors cannot be changed in place, and `p.a[i] = v` likewise
`p = store_inside(p, [".a"], i, v)`; lists, dicts and objects change in place, as ever; slices of fixed length are
checked; shifts and some built-ins get their meaning; `case True:` becomes `case true():` with a class that knows the
array library's bools; a call of what is, or may be, a batched function goes straight to its plain function. Everything
else runs as it was written, closures and globals shared with it.
"""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import gast

from pcbatch.frontend.source.scope import is_builtin
from pcbatch.frontend.source.source import FunctionSource
from pcbatch.frontend.translate.matching import FLAG
from pcbatch.frontend.translate.plain_code import (
    CALL,
    CALLED,
    FLAGS,
    INSIDE,
    MAPPED,
    OPERATORS,
    OTHERS,
    OWN,
    READ,
    STORE,
    UNARY,
    WINDOW,
    Helped,
    Mangled,
    alias,
)
from pcbatch.ir.slices import Window
from pcbatch.ir.values import copied
from pcbatch.syntax import parse


def read_window(read: Callable[[Any, Any], Any], array: Any, index: Any) -> Any:
    """`array[index]`, as `read` gives it, each `Window` in the index checked against its axis.

    IndexError where one leaves the array.
    """
    parts = index if isinstance(index, tuple) else (index,)
    shape = getattr(array, "shape", None) or (len(array),)
    taken = sum(part is not None and part is not ... for part in parts)
    found: list[Any] = []
    axis = 0
    for part in parts:
        found.append(part.resolve(shape[axis]) if isinstance(part, Window) else part)
        axis += len(shape) - taken if part is ... else part is not None
    return read(array, tuple(found) if isinstance(index, tuple) else found[0])


Store = Callable[[Any, Any, Any], Any]


def storing(is_array: Callable[[Any], bool], store: Store) -> tuple[Store, Callable[..., Any]]:
    """What `a[i] = v` and `p.x[0].a[i] = v` call: what gives a new array by `store`, and changes all else in place.

    Each gives what the variable before the first part is then: the same object, unless it is, or is a tuple of, arrays.
    """

    def stored(whole: Any, index: Any, value: Any) -> Any:
        if is_array(whole):
            return store(whole, index, value)
        # A slice of a list, which a helper may assign: Python cuts it short where it leaves the list.
        whole[slice(index.start, index.stop, index.step) if isinstance(index, Window) else index] = value
        return whole

    def inside(whole: Any, steps: Sequence[Any], index: Any, value: Any) -> Any:
        if not steps:
            return stored(whole, index, value)
        (step, is_field), *others = steps
        part = getattr(whole, step) if is_field else whole[step]
        changed = inside(part, others, index, value)
        if changed is part:
            return whole
        if isinstance(whole, tuple):
            names = getattr(whole, "_fields", None)
            parts = [*whole]
            parts[names.index(step) if names is not None and is_field else step] = changed
            return tuple(parts) if names is None else type(whole)(*parts)
        if is_field:
            object.__setattr__(whole, step, changed)  # a frozen object has an array that changes, too
            return whole
        return stored(whole, step, changed)

    return stored, inside


def plain_function(
    function: FunctionType,
    source: FunctionSource,
    is_array: Callable[[Any], bool],
    store: Store,
    builtins: Mapping[str, Callable[..., Any]],
    called: Callable[[Any], Any],
    batched: type,
    values: Collection[str],
    functions: Mapping[str, Callable[..., Any]],
    counted: Callable[..., Any],
) -> Callable[..., Any]:
    """`function` itself if it needs no help, else a copy of it that is helped.

    In the copy `store(array, index, value)` gives a new array for a store into what `is_array`. Calls of the built-ins
    in `builtins`, which do not know the array library's values, go to the functions given for them; so do the operators
    in `OPERATORS`, attributes of arrays and their elements, and calls of the paths in `functions`. `called(callee)` is
    what is called for another callee that is, or may be, `batched`; `counted` for `pcbatch.map` with a count. The
    parameters `values` it gets copied, but for arrays, as it has values in a batch: nobody else sees what it changes.
    """
    calls = {path: f"{CALL}{number}" for number, path in enumerate(functions)}
    helped = {name for name in builtins if name in source.names and is_builtin(source.scope, name)}
    names = _known(function)

    def is_as_called(callee: ast.expr) -> bool:
        value = _value(callee, names)
        return value is not _UNKNOWN and not isinstance(value, batched)

    tree = Mangled(function).visit(gast.gast_to_ast(source.tree))
    rewriting = Helped(helped, calls, is_as_called, source.file)
    definition = rewriting.visit(tree)
    own = parse("\n".join(f"{name} = {OWN}({name})" for name in values)).body
    definition.body[:0] = [_placed(each, definition.body[0]) for each in own]
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    stored, inside = storing(is_array, store)
    helpers: dict[str, Any] = {STORE: stored, INSIDE: inside, WINDOW: Window}
    helpers |= {alias(name): builtins[name] for name in (*helped, *OPERATORS.values(), *UNARY.values(), *OTHERS)}
    helpers |= {READ: partial(read_window, builtins["read"])}
    helpers |= {CALLED: called, OWN: copied, MAPPED: counted}
    helpers |= {name: _case(name, partial(builtins[FLAG], flag=flag)) for flag, name in FLAGS.items()}
    equal = builtins[OPERATORS[ast.Eq]]
    helpers |= {name: _case(name, partial(equal, number)) for name, number in rewriting.cases.items()}
    helpers |= {name: functions[path] for path, name in calls.items()}
    given = {name: each for name, each in helpers.items() if name in used}
    if not given:
        return function
    definition.decorator_list = []
    definition.returns = None
    definition.name = "_pcb_helped"  # not the function's own name, which must stay what it is for recursive calls
    # Nested in a function whose parameters are the closure's names, the copy sees them as free variables.
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: _cell(value) for name, value in given.items()}
    outer = parse(f"def outer({', '.join(cells)}): pass")
    outer.body[0].body = [definition]
    code = compile(ast.fix_missing_locations(outer), source.file, "exec")
    inner = _code_named(_code_named(code, "outer"), "_pcb_helped")
    closure = tuple(cells[name] for name in inner.co_freevars)
    code = inner.replace(co_name=function.__code__.co_name)  # what tracebacks say
    helped_copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    helped_copy.__kwdefaults__ = function.__kwdefaults__
    return helped_copy


_UNKNOWN = object()


def _known(function: FunctionType) -> dict[str, Any]:
    """What the names of a function are bound to outside it, as far as they are now; its own ones are unknown."""
    names = {**vars(python), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            names[name] = _UNKNOWN
    own = (*function.__code__.co_varnames, *function.__code__.co_cellvars)
    return names | dict.fromkeys(own, _UNKNOWN)


def _value(callee: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name, or a path through modules, stands for."""
    match callee:
        case ast.Name(id=name):
            return names.get(name, _UNKNOWN)
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner, attr=name):
            module = _value(owner, names)
            return getattr(module, name, _UNKNOWN) if isinstance(module, ModuleType) else _UNKNOWN
    return _UNKNOWN


class _Case(type):
    """The type of a class of which the instances are what a pattern matches: the array library's True, or 1."""

    is_one: Callable[[Any], Any]

    def __instancecheck__(cls, value: Any) -> bool:
        return bool(cls.is_one(value))


def _case(name: str, is_one: Callable[[Any], Any]) -> type:
    return _Case(name, (), {"is_one": staticmethod(is_one)})


def _placed(statement: ast.stmt, place: ast.stmt) -> ast.stmt:
    """A statement that is to stand where another one does."""
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


def _cell(value: Any) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _code_named(code: CodeType, name: str) -> CodeType:
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name)
