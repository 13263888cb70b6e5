"""What the calls in a function give, by the names of what is called: new objects, views, copies, records."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pcbatch.frontend.source.scope import Scope
from pcbatch.frontend.translate.constructors import made_by
from pcbatch.frontend.translate.references import Kind, KindOf
from pcbatch.frontend.translate.sequences import SEQUENCE
from pcbatch.ir.pseudo_builtins import PSEUDO_BUILTINS, ROW

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


def kind_of_calls(scope: Scope, is_variable: Callable[[str], bool]) -> KindOf:
    """What calls in a function with this scope and these variables give."""
    makers: dict[str, Kind] = {}

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
            if root.id not in makers:
                makers[root.id] = made_by(origin, kind_of_calls)
            return makers[root.id]
        return "new" if path.startswith(_MAKING) else _COPYING.get(path, "unknown")

    return kind
