"""What the calls in a function give, by the names of what is called: new objects, views, copies, records."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from pcbatch.frontend.source.scope import Origin, Scope, origin_of
from pcbatch.frontend.translate.constructors import made_by
from pcbatch.frontend.translate.references import Kind, KindOf, Maker
from pcbatch.frontend.translate.sequences import SEQUENCE
from pcbatch.ir.pseudo_builtins import BEGUN, MADE, PSEUDO_BUILTINS, ROW

_MAKING = ("tensorflow.", "tf_keras.", "keras.", "math.", "pcbatch.")
"""Modules whose functions give new arrays, as far as arrays can be changed at all."""
_NUMBERS = frozenset({"abs", "all", "any", "bool", "divmod", "float", "int", "len", "pow", "range", "round"})
"""Built-ins that give numbers."""
_CONTAINERS: dict[str, Kind] = {"list": "copy", "tuple": "copy", "sorted": "row", "reversed": "row"}
_CONTAINERS |= {"zip": "rows", "enumerate": "rows", "dict": "copy"}
"""Built-ins that give containers."""
_COPYING: dict[str, Kind] = {"copy.copy": "copy", "copy.deepcopy": "new", "dataclasses.replace": "copy"}
_COPYING |= {"functools.partial": ()}
"""Functions that copy objects, or keep their arguments."""
_VIEWS = frozenset(
    {"asanyarray", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diagonal"}
    | {"expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape", "rollaxis", "rot90", "split"}
    | {"squeeze", "swapaxes", "transpose"}
)
"""NumPy's functions whose results share elements with their argument, or may."""


def kind_of_calls(scope: Scope, is_variable: Callable[[str], bool], inside: tuple[Any, ...] = ()) -> KindOf:
    """What calls in a function with this scope and these variables give.

    It is `inside` what makes objects of these classes. What an object of a class has of another one of the same class
    is not followed any further: that is unknown.
    """
    makers: dict[str, Kind] = {}

    def made(origin: Origin, *, begun: bool = False) -> Kind:
        if origin.definition in inside:
            return "unknown"
        return made_by(origin, partial(kind_of_calls, inside=(*inside, origin.definition)), begun=begun)

    def kind(node: ast.Call) -> Kind:
        root: ast.expr = node.func
        steps: list[str] = []
        while isinstance(root, ast.Attribute):
            steps.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or is_variable(root.id):
            return "unknown"
        if root.id == BEGUN and dataclasses.is_dataclass(cls := scope.live_class(ast.unparse(node.args[0]))):
            assert isinstance(cls, type)
            return _after_the_class(made(origin_of(cls), begun=True))
        if root.id in PSEUDO_BUILTINS:
            return "view" if root.id in (SEQUENCE, ROW, MADE) else "new"
        origin = scope.origin(root.id)
        path = ".".join([origin.path if origin is not None else "", *steps])
        if path.startswith("numpy."):
            return "view" if path.rpartition(".")[2] in _VIEWS else "new"
        if path.startswith("builtins."):
            name = path.removeprefix("builtins.")
            return "new" if name in _NUMBERS else _CONTAINERS.get(name, "unknown")
        if origin is not None and origin.fields is not None and not steps:
            if root.id not in makers:
                makers[root.id] = made(origin)
            return makers[root.id]
        return "new" if path.startswith(_MAKING) else _COPYING.get(path, "unknown")

    return kind


def _after_the_class(made: Kind) -> Kind:
    """What a call gives that is handed the class before what the class is handed."""
    return Maker(("", *made.parameters), made.parts, made.defaults) if isinstance(made, Maker) else made
