"""A run of one example: arguments as values, the user's function in its surroundings, results as arrays again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pcbatch.ir import values
from pcbatch.runtime.backends.tensorflow import traced_float
from pcbatch.runtime.backends.tensorflow.traced_float import TracedFloat
from pcbatch.single.boundaries import OF
from pcbatch.single.surroundings import Surroundings
from pcbatch.single.values import TENSORS, Value, tensor


class Singly:
    """Runs the plain function of a batched one; see `Surroundings` for what it is given."""

    def __init__(
        self,
        function: FunctionType,
        plain_of: Callable[[Any], Any],
        empty: Callable[..., Any],
        surroundings: type[Surroundings] = Surroundings,
    ):
        self.around = surroundings(function, plain_of, empty)
        every = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._defaults = function if any(values.fields_of(e) or isinstance(e, (list, dict)) for e in every) else None
        """The function itself, if it may change what it has by default."""

    def __call__(
        self,
        receiver: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        divide: Literal["ignore", "raise"] = "ignore",
    ) -> Any:
        """Return the function's result for unshared arguments: tensors, Python's numbers, structures of these.

        `divide` says what a division by zero does that NumPy sees.
        """
        around, known = self.around, None
        while known != around.changes:  # what comes with an argument may change something, too
            known = around.changes
            around.refresh()
            given = [self._taken(each) for each in args]
            named = {name: self._taken(each) for name, each in kwargs.items()}
            if receiver is not None:
                given.insert(0, around.shadow(receiver))
            self._take_defaults()
        try:
            with np.errstate(all="ignore", divide=divide):
                found = around.function(*given, **named)
        finally:
            traced_float.forget()
        around.keep()
        return found

    def _take_defaults(self) -> None:
        known, copy = self._defaults, self.around.function
        if known is not None:
            copy.__defaults__ = tuple(self._taken(each) for each in known.__defaults__ or ()) or None
            named = {name: self._taken(each) for name, each in (known.__kwdefaults__ or {}).items()}
            copy.__kwdefaults__ = named or None

    def _taken(self, value: Any) -> Any:
        """An argument as the function sees it."""
        if isinstance(value, TENSORS):
            return self.around.argument(value)
        if isinstance(value, list):
            return [self._taken(each) for each in value]
        if isinstance(value, dict):
            return {key: self._taken(each) for key, each in value.items()}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self._taken(each) for each in value)
        fields = values.fields_of(value)
        if fields is None:
            return self.around.substitute(value) if callable(value) or values.is_record_class(type(value)) else value
        kind = self.around.class_of(type(value))
        return values.made(kind, {name: self._taken(each) for name, each in fields.items()})


def result(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A result in the user's classes, `leaf` of each number and array of ours."""
    known: dict[int, tuple[Any, Any]] = {}

    def part(each: Any) -> Any:
        if id(each) not in known:
            known[id(each)] = each, each
            known[id(each)] = each, again(each)
        return known[id(each)][1]

    def again(each: Any) -> Any:
        if isinstance(each, Value):
            return leaf(each)
        if isinstance(each, TracedFloat):
            return each.committed()
        if isinstance(each, np.bool_):
            return bool(each)  # as a comparison of numbers gives it
        if isinstance(each, (np.ndarray, np.generic)) and each.dtype.kind in "biufc":
            return leaf(each)
        if isinstance(each, list):
            return [part(one) for one in each]
        if isinstance(each, dict):
            return {key: part(one) for key, one in each.items()}
        if isinstance(each, tuple) and not hasattr(each, "_fields"):
            return tuple(part(one) for one in each)
        kind = vars(type(each)).get(OF) or type(each)
        fields = values.fields_of(each) if kind is type(each) else _fields(each)
        if fields is None:
            return each
        return values.made(kind, {name: part(one) for name, one in fields.items()})

    return part(value)


def _fields(value: Any) -> dict[str, Any]:
    return values.fields_of(value) or dict(vars(value))


def as_tensor(value: Any) -> tf.Tensor:
    """A number or an array as a tensor."""
    return tensor(value)
