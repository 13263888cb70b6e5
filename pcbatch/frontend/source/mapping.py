"""`pcbatch.map(g, xs, ys)`: the results of `g` for each element of some arrays, as one array.

    pcbatch.map(g, xs, ys)           -->  pcbatch.map.stacked([g(x, y) for x, y in zip(xs, ys, strict=True)])
    pcbatch.map(g, xs, count=n)      -->  pcbatch.map.counted([g(x) for x in xs], n)

So the calls stand in a comprehension, which is written out as any other, or is a loop (`translate.mapped`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import gast

from pcbatch.frontend.source.hints import calls
from pcbatch.frontend.source.nodes import constant, load, store
from pcbatch.frontend.source.scope import Scope

MAP = ("pcbatch.map", "pcbatch.runtime.backends.tensorflow.mapping.map")
STACKED, COUNTED = "stacked", "counted"


def with_comprehensions(body: Sequence[Any], local_names: Set[str], names: Set[str], scope: Scope) -> list[Any]:
    """Statements of a function with these names, in which comprehensions stand for calls of `pcbatch.map`."""
    maps = _Maps(local_names, names, scope)
    return [maps.visit(statement) for statement in body]


def _own_names(function: Any) -> list[str]:
    """The parameters of a lambda, which can be those of a comprehension; none of another function."""
    if not isinstance(function, gast.Lambda):
        return []
    given = function.args
    others = (given.vararg, given.kwarg, *given.posonlyargs, *given.kwonlyargs, *given.defaults)
    return [] if any(each is not None for each in others) else [each.id for each in given.args]


class _Maps(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    def __init__(self, local_names: Set[str], names: Set[str], scope: Scope):
        self.local_names, self.scope, self.taken = local_names, scope, {*names}

    def visit_Call(self, node: Any) -> Any:
        """The comprehension that stands for a call of `pcbatch.map` of a function and arrays."""
        self.generic_visit(node)
        if not calls(node, self.local_names, self.scope, MAP) or not self._is_plain(node):
            return node
        function, *arrays = node.args
        own = _own_names(function)
        targets = own if len(own) == len(arrays) else [self._fresh() for _ in arrays]
        over, target = arrays[0], store(targets[0])
        if len(arrays) > 1:
            strict = gast.keyword("strict", constant(True))
            over = gast.Call(gast.Name("zip", gast.Load(), None, None), arrays, [strict])
            target = gast.Tuple([store(name) for name in targets], gast.Store())
        element = gast.Call(function, [load(name, node) for name in targets], [])
        if targets is own:
            element = function.body
        listed = gast.ListComp(element, [gast.comprehension(target, over, [], 0)])
        listed.is_written_out = True
        counts = [each.value for each in node.keywords]
        name = COUNTED if counts else STACKED
        found = gast.Call(gast.Attribute(node.func, name, gast.Load()), [listed, *counts], [])
        for each in gast.walk(found):
            if getattr(each, "lineno", None) is None:
                gast.copy_location(each, node)
        return found

    def _is_plain(self, node: Any) -> bool:
        """Whether the arguments are a function and arrays, by position, and maybe a count; others are refused."""
        starred = any(isinstance(each, gast.Starred) for each in node.args)
        named = [each.arg for each in node.keywords]
        return len(node.args) > 1 and named in ([], ["count"]) and not starred and "zip" not in self.taken

    def _fresh(self) -> str:
        number = 1
        while (name := f"each_{number}") in self.taken:
            number += 1
        self.taken.add(name)
        return name
