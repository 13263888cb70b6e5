"""Plain functions that a batched one calls, as `f.single` runs them: helped as it is itself, where they need that.

A helper that cannot be traced is part of the program, and then its `round(x)` is that of a lane's number. So it is in
`f.single`, where TensorFlow's tensors do not know what Python's `round` asks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import gast

from pcbatch.errors import CompileError
from pcbatch.frontend import FunctionSource, read_function
from pcbatch.frontend.source.nodes import dotted
from pcbatch.frontend.translate.plain import plain_function
from pcbatch.function.mapped import counted
from pcbatch.installed import OWN, is_installed
from pcbatch.lowering.captures.captured import Namespace
from pcbatch.runtime.backends.protocol import Backend


class Plainly:
    """Makes the plain functions of one batched function; each once.

    `called(callee)` is what they call for a callee that is `batched`.
    """

    def __init__(self, backend: Backend, called: Callable[[Any], Any], batched: type):
        self._backend, self._called, self._batched = backend, called, batched
        self._known: dict[Any, Callable[..., Any] | None] = {}
        """What stands for a function; None while that is found out."""

    def function(
        self, function: FunctionType, source: FunctionSource, namespace: Namespace, values: Collection[str] = ()
    ) -> Callable[..., Any]:
        """`function` itself if nothing in it needs help, else a copy of it that is helped.

        The parameters `values` it gets copied, but for arrays.
        """
        backend = self._backend
        helpers = {path: partial(self._call, namespace.reader(path)) for path in self._helped(source, namespace)}
        return plain_function(
            function,
            source,
            backend.is_array,
            backend.plain_builtins.get("store", backend.store_element),
            backend.plain_builtins,
            self._callee,
            self._batched,
            values,
            helpers,
            partial(counted, backend),
        )

    def _call(self, read: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        """Call what a name means now."""
        return self._standing_for(read())(*args, **kwargs)

    def _callee(self, callee: Any) -> Any:
        """What is called for a value that is only known then; functions within others have got their help there."""
        called = self._called(callee)
        if called is not callee or (isinstance(callee, FunctionType) and "<locals>" in callee.__qualname__):
            return called
        return self._standing_for(callee)

    def _helped(self, source: FunctionSource, namespace: Namespace) -> list[str]:
        """The paths of the functions called in `source` that need help."""
        calls = (node for node in gast.walk(source.tree) if isinstance(node, gast.Call))
        paths = {path for node in calls if (path := dotted(node.func)) is not None}
        found = []
        for path in sorted(path for path in paths if path.partition(".")[0] not in source.locals):
            try:
                value = namespace.path(path)
            except (KeyError, AttributeError):
                continue
            if self._standing_for(value) is not value:
                found.append(path)
        return found

    def _standing_for(self, value: Any) -> Callable[..., Any]:
        """What is called in place of `value`."""
        with suppress(TypeError):  # what cannot be hashed is not among them
            if value in self._backend.plain_functions:
                return self._backend.plain_functions[value]
        plain = value.__func__ if isinstance(value, MethodType) else value
        if not isinstance(plain, FunctionType) or is_installed(plain.__code__.co_filename):
            return value
        if plain.__code__.co_filename.startswith(OWN) or plain.__code__.co_filename.startswith("<"):
            return value
        key = plain, plain.__code__  # which can be set
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._made(plain)
        made = self._known[key]
        if made is None:  # it calls itself
            return partial(self._call, lambda: value)
        return value if made is plain else MethodType(made, value.__self__) if plain is not value else made

    def _made(self, plain: FunctionType) -> Callable[..., Any]:
        """The copy of a method is for all objects: what it calls of its own is looked up there."""
        try:
            source = read_function(plain)
        except CompileError:
            return plain
        return self.function(plain, source, Namespace(plain))
