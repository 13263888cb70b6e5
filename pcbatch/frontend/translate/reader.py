"""Reads of expressions where their values, and the parts of these, come from; see `references`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pcbatch.frontend.translate.matching import PARTS
from pcbatch.frontend.translate.references import (
    ANY,
    LIMIT,
    NEW,
    NO_HINTS,
    Hints,
    KindOf,
    Maker,
    Place,
    Reference,
    Taking,
    element,
    elements_in_lists,
    step_of,
)
from pcbatch.frontend.translate.sequences import ELEMENT
from pcbatch.ir.code import Code
from pcbatch.ir.method_effects import VIEWS

_DEEP = 3
"""What a computed attribute gives may be so deep in its object."""


def assignments(code: Code, kind_of: KindOf, *, objects: bool = False, hints: Hints = NO_HINTS) -> tuple[Taking, ...]:
    """What the variables that `code` assigns get, and from where.

    What a call gives of which nobody knows anything is taken for new. With `objects` what makes containers of others'
    elements counts, too (`xs + ys`, a comprehension, a class): numbers and arrays have no elements that are shared.
    """
    match code.body:
        case [ast.With(items=[ast.withitem(context_expr=value, optional_vars=target)])]:
            targets = [] if target is None else [target]
        case [ast.Assign(targets=targets, value=value)]:
            pass
        case _:
            return ()
    references = tuple(Reader(kind_of, objects, hints).of(value))
    return tuple(taking for target in targets for taking in _bound(target, references))


def references_of(node: ast.expr, kind_of: KindOf, *, objects: bool, hints: Hints = NO_HINTS) -> tuple[Reference, ...]:
    """Where the value of `node`, and its parts, come from; `objects` and `hints` as in `assignments`."""
    return tuple(Reader(kind_of, objects, hints).of(node))


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


class Reader:
    """Reads the references of expressions."""

    def __init__(self, kind_of: KindOf, objects: bool, hints: Hints = NO_HINTS):
        self.kind_of, self.objects, self.hints = kind_of, objects, hints

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
            case ast.Subscript(slice=ast.List()):  # an array's elements at several places: a copy
                yield (), _new(node)
            case ast.Subscript(value=value, slice=index):
                if any(isinstance(each, ast.Slice) for each in (index, *ast.iter_child_nodes(index))):
                    references = tuple(self.of(value))
                    is_list = (isinstance(value, ast.Name) and value.id in self.hints.lists) or not self.hints.views
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
                references = tuple(self.of(value))
                yield from element(references, f".{name}")
                if self.objects and (name in self.hints.methods or name == "__dict__"):
                    yield from references
                    yield from _inside(ANY, element(references, ANY)) if name == "__dict__" else ()
                for _ in range(_DEEP if self.objects and name in self.hints.properties else 0):
                    references = tuple(element(references, ANY))
                    yield from references
                    yield from _inside(ANY, references)
            case ast.Constant():
                pass
            case ast.Call(func=ast.Name(id=name), args=[value, position, *_]) if name == ELEMENT:
                yield from element(tuple(self.of(value)), step_of(position))
            case ast.Call(func=ast.Name(id=name), args=[value, _]) if name == PARTS:
                yield from self.of(value)
            case ast.Call(func=ast.Attribute(value=value, attr="keys" | "values" | "items"), args=[]) if self.objects:
                yield from self.of(value)  # of a dict, which is looked at again whenever this is
            case ast.Call(args=[value, *_]) if self.kind_of(node) == "view":
                yield from self.of(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in VIEWS and self._is_arrays(node, value):
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
            case ast.Call() if isinstance(maker := self.kind_of(node), Maker):
                yield (), _new(node)
                yield from self.made(node, maker)
            case ast.Call(args=arguments) if (kind := self.kind_of(node)) in ("row", "rows"):
                for argument in arguments:
                    elements = list(element(tuple(self.of(argument)), ANY))
                    yield from _inside(ANY, elements if kind == "row" else _inside(ANY, elements))
            case _:
                yield (), _new(node)

    def _is_arrays(self, node: ast.Call, whole: ast.expr) -> bool:
        """Whether a method may be an array's, as far as that is known or will not be asked.

        Among objects, where one may have a method of that name, a part's.
        """
        if self.kind_of(node) != "unknown" or (self.objects and isinstance(whole, ast.Name)):
            return False
        return node.func.attr in self.hints.arrays or root_of_path(whole) not in self.hints.variables  # type: ignore[attr-defined]

    def made(self, node: ast.Call, maker: Maker) -> Iterator[Reference]:
        """Where the parts of the object come from that a class makes in this call."""
        given = maker.given(node)
        defaults = dict(maker.defaults)
        for path, (name, inside) in maker.parts:
            if name.startswith(NEW):
                yield path, (f"{_new(node)[0]} {name}", inside)
            elif name in given:
                found = tuple(each for argument in given[name] for each in self.of(argument))
                for step in inside:
                    found = tuple(element(found, step))
                yield from (((*path, *more)[:LIMIT], place) for more, place in found)
            elif name not in maker.parameters or name in defaults:
                yield path, (defaults.get(name, name), inside)

    def _turn(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> Iterator[Reference]:
        """Where what one turn of a comprehension gives comes from: what it makes is another object in each turn."""
        given = node.value if isinstance(node, ast.DictComp) else node.elt
        taken: dict[str, list[Reference]] = {}
        targets = (part for each in node.generators for part in ast.walk(each.target))
        own = {part.id for part in targets if isinstance(part, ast.Name)}
        outer = self.hints
        lists = {name: depth for name, depth in outer.lists.items() if name not in own}
        self.hints = replace(outer, lists=lists | elements_in_lists(node.generators, outer.lists), variables=())
        for each in node.generators:
            every = [found for found in self.of(each.iter) for found in _through(found, taken)]
            for name, reference in _bound(each.target, tuple(element(tuple(every), ANY))):
                taken.setdefault(name, []).append(reference)
        reached = [each for each in self.of(given) if not each[1][0].startswith(NEW)]
        self.hints = outer
        for found in reached:
            is_same = found[1][0] not in taken or len(node.generators) > 1  # in several turns
            yield from list(_through(found, taken)) * (2 if is_same else 1)


def root_of_path(node: ast.expr) -> str:
    """The variable that `node` is, or is a part of, at a place that is written out; "" of anything else."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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
