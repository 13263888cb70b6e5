"""Where the value of an expression, and each of its parts, comes from: from a variable, from a part of one, or new."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal

from pcbatch.frontend.source.scope import Scope
from pcbatch.frontend.translate.matching import PARTS
from pcbatch.frontend.translate.sequences import ELEMENT, SEQUENCE
from pcbatch.ir.code import Code
from pcbatch.ir.pseudo_builtins import PSEUDO_BUILTINS, ROW

Path = tuple[int | str, ...]
ANY = "*"
"""The path step of an index that is not known here."""
NEW = "new "
"""Begins the names of objects that a statement makes: they hold inside the statement only."""
LIMIT = 6
"""Longer paths are cut: what is true of a part is then taken for true of what it is in."""

Place = tuple[str, Path]
Reference = tuple[Path, Place]
"""A part of a value, by its path, and the place that it is taken from."""
Taking = tuple[str, Reference]
"""A variable that is assigned, and where a part of its new value comes from."""

Kind = Literal["new", "view", "copy", "row", "rows", "unknown"] | tuple[str, ...]
"""What a call gives: a new object; one that shares its elements with an argument; a container of the same
elements in the same order; one of its arguments' elements, or of tuples of them; nobody knows; a record of its
arguments, with these fields if they are known."""
KindOf = Callable[[ast.Call], Kind]

_MAKING = ("tensorflow.", "tf_keras.", "keras.", "math.", "pcbatch.")
"""Modules whose functions give new arrays, as far as arrays can be changed at all."""
_NUMBERS = frozenset({"abs", "all", "any", "bool", "divmod", "float", "int", "len", "pow", "range", "round"})
"""Built-ins that give numbers."""
_CONTAINERS: dict[str, Kind] = {"list": "copy", "tuple": "copy", "sorted": "row", "reversed": "row"}
_CONTAINERS |= {"zip": "rows", "enumerate": "rows", "dict": "copy"}
"""Built-ins that give containers."""
_COPYING: dict[str, Kind] = {"copy.copy": "copy", "copy.deepcopy": "new", "dataclasses.replace": "copy"}
"""Functions that copy objects."""
_VIEWS = frozenset(
    {"asanyarray", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diagonal"}
    | {"expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape", "rollaxis", "rot90", "split"}
    | {"squeeze", "swapaxes", "transpose"}
)
"""NumPy's functions whose results share elements with their argument, or may."""


def kind_of_calls(scope: Scope, is_variable: Callable[[str], bool]) -> KindOf:
    """What calls in a function with this scope and these variables give."""

    def kind(node: ast.Call) -> Kind:
        root: ast.expr = node.func
        steps: list[str] = []
        while isinstance(root, ast.Attribute):
            steps.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or is_variable(root.id):
            return "unknown"
        if root.id in PSEUDO_BUILTINS:
            return "view" if root.id in (SEQUENCE, ROW) else "new"
        origin = scope.origin(root.id)
        path = ".".join([origin.path if origin is not None else "", *steps])
        if path.startswith("numpy."):
            return "view" if path.rpartition(".")[2] in _VIEWS else "new"
        if path.startswith("builtins."):
            name = path.removeprefix("builtins.")
            return "new" if name in _NUMBERS else _CONTAINERS.get(name, "unknown")
        if origin is not None and origin.fields is not None and not steps:
            return origin.fields
        return "new" if path.startswith(_MAKING) else _COPYING.get(path, "unknown")

    return kind


def assignments(
    code: Code, kind_of: KindOf, *, objects: bool = False, lists: Collection[str] = ()
) -> tuple[Taking, ...]:
    """What the variables that `code` assigns get, and from where.

    What a call gives of which nobody knows anything is taken for new. With `objects` what makes containers of others'
    elements counts, too (`xs + ys`, a comprehension, a class): numbers and arrays have no elements that are shared.
    The variables `lists` hold lists, whose slices are lists of their own.
    """
    match code.body:
        case [ast.With(items=[ast.withitem(context_expr=value, optional_vars=target)])]:
            targets = [] if target is None else [target]
        case [ast.Assign(targets=targets, value=value)]:
            pass
        case _:
            return ()
    references = tuple(_Reader(kind_of, objects, lists).of(value))
    return tuple(taking for target in targets for taking in _bound(target, references))


def references_of(
    node: ast.expr, kind_of: KindOf, *, objects: bool, lists: Collection[str] = ()
) -> tuple[Reference, ...]:
    """Where the value of `node`, and its parts, come from; `objects` and `lists` as in `assignments`."""
    return tuple(_Reader(kind_of, objects, lists).of(node))


def has_unknown_call(code: Code, kind_of: KindOf) -> bool:
    """Whether something in `code` is called of which nobody knows what it gives."""
    nodes = (node for statement in code.body for node in ast.walk(statement))
    return any(isinstance(node, ast.Call) and kind_of(node) == "unknown" for node in nodes)


def repeats(code: Code) -> bool:
    """Whether `code` may give a list times a number, `xs * n`, which has its elements several times."""
    match code.value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            parts = (left, right)
            is_float = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in parts)
            return not is_float and any(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in parts)
    return False


def free_arguments(code: Code, variables: Collection[str]) -> list[str]:
    """The free names, and paths from them, that calls in `code` take as arguments."""
    nodes = [node for statement in code.body for node in ast.walk(statement)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    given = [value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    return list(dict.fromkeys(ast.unparse(value) for value in given if _is_free_path(value, variables)))


def _is_free_path(node: ast.expr, variables: Collection[str]) -> bool:
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in variables


def _bound(target: ast.expr, references: tuple[Reference, ...]) -> Iterator[Taking]:
    match target:
        case ast.Name(id=name):
            yield from ((name, reference) for reference in references)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            steps = _steps(parts)
            for step, part in zip(steps, parts, strict=True):
                inner = tuple(element(references, step))
                if isinstance(part, ast.Starred):  # a list of what is left
                    part, inner = part.value, tuple(((ANY, *path)[:LIMIT], place) for path, place in inner)
                yield from _bound(part, inner)


class _Reader:
    """Reads the references of expressions."""

    def __init__(self, kind_of: KindOf, objects: bool, lists: Collection[str]):
        self.kind_of, self.objects, self.lists = kind_of, objects, lists

    def of(self, node: ast.expr) -> Iterator[Reference]:
        """Where the value of `node`, and its parts, come from. A new object comes from a place of its own."""
        match node:
            case ast.Name(id=name):
                yield (), (name, ())
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if self.objects and isinstance(node, ast.List):
                    yield (), _new(node)
                for step, part in zip(_steps(parts), parts, strict=True):
                    yield from _inside(step, self.of(part))
            case ast.Starred(value=value):
                yield from element(tuple(self.of(value)), ANY)
            case ast.Dict(keys=keys, values=parts):
                if self.objects:
                    yield (), _new(node)
                for key, part in zip(keys, parts, strict=True):
                    if key is None:
                        yield from _inside(ANY, element(tuple(self.of(part)), ANY))
                    else:
                        yield from _inside(step_of(key), self.of(part))
            case ast.BinOp(left=left, right=right) if self.objects and _may_be_list(node):
                yield (), _new(node)
                for part in (left, right):
                    elements = list(element(tuple(self.of(part)), ANY))
                    yield from _inside(
                        ANY, elements * (2 if isinstance(node.op, ast.Mult) else 1)
                    )  # `[q] * 2` has q twice
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() if self.objects:
                yield (), _new(node)
                yield from _inside(ANY, self._turn(node))
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.of(body)
                yield from self.of(orelse)
            case ast.BoolOp(values=parts):
                for part in parts:
                    yield from self.of(part)
            case ast.NamedExpr(value=value):
                yield from self.of(value)
            case ast.Subscript(value=value, slice=index):
                if any(isinstance(each, ast.Slice) for each in (index, *ast.iter_child_nodes(index))):
                    references = tuple(self.of(value))
                    is_list = isinstance(value, ast.Name) and value.id in self.lists
                    if is_list:
                        yield from [((), _new(node))] if self.objects else ()
                    else:
                        yield from references  # a view of an array; of a list other positions
                    yield from _inside(ANY, element(references, ANY)) if self.objects or is_list else ()
                else:
                    references = tuple(self.of(value))
                    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
                        references = tuple(element(references, step_of(part)))
                    yield from references
            case ast.Attribute(value=value, attr=name):
                yield from element(tuple(self.of(value)), f".{name}")
            case ast.Constant():
                pass
            case ast.Call(func=ast.Name(id=name), args=[value, position, *_]) if name == ELEMENT:
                yield from element(tuple(self.of(value)), step_of(position))
            case ast.Call(func=ast.Name(id=name), args=[value, _]) if name == PARTS:
                yield from self.of(value)
            case ast.Call(args=[value, *_]) if self.kind_of(node) == "view":
                yield from self.of(value)
            case ast.Call(args=[*given], keywords=changed) if self.kind_of(node) == "copy":
                if self.objects:
                    yield (), _new(node)
                for path, place in (each for value in given for each in self.of(value)):
                    yield from [(path, place)] if path else _inside(ANY, element((((), place),), ANY))
                is_dict = isinstance(node.func, ast.Name) and node.func.id == "dict"
                for keyword in changed:
                    step = f"[{keyword.arg!r}]" if is_dict else f".{keyword.arg}"
                    yield from _inside(step, self.of(keyword.value))
            case ast.Call(func=ast.Attribute(value=value, attr="copy"), args=[]) if self.objects:
                yield (), _new(node)
                yield from _inside(ANY, element(tuple(self.of(value)), ANY))
            case ast.Call(args=arguments, keywords=named) if isinstance(fields := self.kind_of(node), tuple):
                yield (), _new(node)
                steps = [*(f".{name}" for name in fields), *[ANY] * len(arguments)]
                for step, argument in zip(steps, arguments, strict=False):
                    yield from _inside(step, self.of(argument))
                for keyword in named:
                    yield from _inside(f".{keyword.arg}" if fields else ANY, self.of(keyword.value))
            case ast.Call(args=arguments) if (kind := self.kind_of(node)) in ("row", "rows"):
                for argument in arguments:
                    elements = list(element(tuple(self.of(argument)), ANY))
                    yield from _inside(ANY, elements if kind == "row" else _inside(ANY, elements))
            case _:
                yield (), _new(node)

    def _turn(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> Iterator[Reference]:
        """Where what one turn of a comprehension gives comes from: what it makes is another object in each turn."""
        given = node.value if isinstance(node, ast.DictComp) else node.elt
        taken: dict[str, list[Reference]] = {}
        targets = (part for each in node.generators for part in ast.walk(each.target))
        own = {part.id for part in targets if isinstance(part, ast.Name)}
        outer, self.lists = self.lists, [name for name in self.lists if name not in own]
        for each in node.generators:
            every = [found for found in self.of(each.iter) for found in _through(found, taken)]
            for name, reference in _bound(each.target, tuple(element(tuple(every), ANY))):
                taken.setdefault(name, []).append(reference)
        reached = [each for each in self.of(given) if not each[1][0].startswith(NEW)]
        self.lists = outer
        for found in reached:
            is_same = found[1][0] not in taken or len(node.generators) > 1  # in several turns
            yield from list(_through(found, taken)) * (2 if is_same else 1)


def _through(reference: Reference, taken: Mapping[str, Sequence[Reference]]) -> Iterator[Reference]:
    """Where a part comes from in the end, if what it is taken from is a variable of a comprehension that is `taken`."""
    path, (name, inside) = reference
    if name not in taken:
        yield reference
        return
    found = tuple(taken[name])
    for step in inside:
        found = tuple(element(found, step))
    yield from (((*path, *inner)[:LIMIT], place) for inner, place in found)


def _new(node: ast.expr) -> Place:
    """The place of the object that `node` makes."""
    return f"{NEW}{node.lineno}:{node.col_offset}", ()


def _may_be_list(node: ast.expr) -> bool:
    """Whether a value may be a list, by the way it is written: no number, and no arithmetic on one."""
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _may_be_list(left) and _may_be_list(right)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(isinstance(each, ast.List | ast.ListComp | ast.Tuple) for each in (left, right))
    return not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)


def _inside(step: int | str, references: Sequence[Reference] | Iterator[Reference]) -> Iterator[Reference]:
    return (((step, *path)[:LIMIT], place) for path, place in references)


def _steps(parts: Sequence[ast.expr]) -> list[int | str]:
    """The positions of the parts of a display or a target: unknown from the first starred one on."""
    first = next((at for at, part in enumerate(parts) if isinstance(part, ast.Starred)), len(parts))
    return [at if at < first else ANY for at in range(len(parts))]


def step_of(index: ast.expr) -> int | str:
    """The step of a path that leads to the part at `index`."""
    match index:
        case ast.Constant(value=int(value)) if value >= 0:
            return value
        case ast.Constant(value=str(key)):
            return f"[{key!r}]"
    return ANY


def element(references: tuple[Reference, ...], step: int | str) -> Iterator[Reference]:
    """Where the element at `step` of a value comes from."""
    for path, (name, inside) in references:
        if not path:
            yield (), (name, (*inside, step)[:LIMIT])
        elif path[0] == step or ANY in (path[0], step):
            yield path[1:], (name, inside)
