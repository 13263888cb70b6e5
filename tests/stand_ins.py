"""Plain Python for what generated programs use: arrays that fail as Python's do, and what they call of TensorFlow.

With these in the place of pcbatch, TensorFlow and NumPy a program's text is a program of plain Python, whose answer is
the truth. Arrays are objects there: what is stored under one name is seen under the others.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

INT32 = range(-(2**31), 2**31)


class Array:
    """A lane array of plain Python numbers, which divide by zero and index out of range as Python's do.

    A slice is a view. It has a fixed length: one that leaves the array is an IndexError, unless such slices `are_cut`,
    as Python cuts them.
    """

    are_cut = False

    def __init__(self, numbers: Iterable[int], dtype: object = None):
        self._elements = [int(number) for number in numbers]
        self._own: Sequence[int] = range(len(self._elements))

    def __len__(self) -> int:
        return len(self._own)

    @property
    def numbers(self) -> list[int]:
        """The numbers as they are now."""
        return [self._elements[place] for place in self._own]

    def _places(self, index: Any) -> list[int]:
        """The positions that a slice or a vector of positions has."""
        if not isinstance(index, slice):
            return [int(position) for position in index]
        places = list(range(len(self)))[index]
        if not self.are_cut and None not in (index.start, index.stop) and len(places) != index.stop - index.start:
            raise IndexError("the slice leaves the array")
        return places

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            view = Array([])
            view._elements, view._own = self._elements, [self._own[place] for place in self._places(index)]
            return view
        return self._elements[self._own[index]]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            (index,) = index
        if isinstance(index, int):
            self._elements[self._own[index]] = int(value)
            return
        places = self._places(index)
        values = list(value) if isinstance(value, Iterable) else [value] * len(places)
        for place, number in zip(places, map(int, values), strict=True):
            self._elements[self._own[place]] = number

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __add__(self, other: Any) -> Array:
        others = list(other) if isinstance(other, Iterable) else [other] * len(self)
        return Array(number + each for number, each in zip(self.numbers, others, strict=True))

    def __mod__(self, other: int) -> Array:
        return Array(number % other for number in self.numbers)

    def copy(self) -> Array:
        return Array(self.numbers)


class Other:
    """An array of another library: it hands over its elements as a whole, by the protocols that arrays share.

    Whoever takes them one by one, as from a sequence, is counted in `taken`; that is what TensorFlow does by itself.
    """

    taken = 0

    def __init__(self, elements: Any):
        self.elements = elements
        self.shape = tuple(elements.shape)
        self.dtype = f"other.{elements.dtype}"

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        return self.elements

    def __dlpack__(self, **options: object) -> Any:
        return self.elements.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        type(self).taken += 1
        return Other(self.elements[index])


class Unknown(Other):
    """One of a dtype that NumPy has not."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        raise TypeError("Got unsupported ScalarType")


class Recorded(Other):
    """One whose library takes gradients, which it says."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        raise RuntimeError("Can't call numpy() on an array that requires grad. Use detach()")


def by_value(function: Callable[..., Any] | None = None, static_argnames: str = "") -> Callable[..., Any]:
    """What stands for `pcbatch.autobatch` when Python runs a program: arrays are values, so a callee gets copies."""
    if function is None:
        return by_value

    def copied(value: Any) -> Any:
        return value.copy() if isinstance(value, Array) else value

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(copied, args), **{name: copied(value) for name, value in kwargs.items()})

    return call


def to_int(number: Any) -> int:
    """`int`, of what int32 can hold."""
    result = int(number)
    if result not in INT32:
        raise OverflowError("cannot convert float to an int of 32 bits")
    return result


def rounded(number: Any) -> int:
    """`round`, to what int32 can hold."""
    return to_int(round(number))


def _value(value: Any, dtype: object = None) -> Any:
    return Array(value) if isinstance(value, list) else value


MODULES: dict[str, Any] = {
    "pcbatch": SimpleNamespace(autobatch=by_value, sync=lambda: None, debug=lambda text, *values: None),
    "numpy": SimpleNamespace(array=Array, int32=int),
    "tensorflow": SimpleNamespace(
        Variable=_value,
        name_scope=contextlib.nullcontext,
        identity=lambda value: value.copy(),
        add_n=sum,
        vectorized_map=lambda function, array: Array(map(function, array)),
    ),
}
"""What stands for each module that is not Python's own."""


def _import(name: str, *rest: Any) -> Any:
    return MODULES[name] if name in MODULES else __import__(name, *rest)


def plain_module(code: CodeType) -> dict[str, Any]:
    """The names of a generated module that is run as plain Python."""
    namespace = {"__builtins__": {**vars(builtins), "__import__": _import}, "int": to_int, "round": rounded}
    exec(code, namespace)
    return namespace


def plain_functions(module: ModuleType) -> dict[str, Any]:
    """The names of a module whose batched functions are plain ones, which get copies of arrays."""

    def by_value(function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
        if function is None:
            return by_value

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*map(copied, args), **{name: copied(value) for name, value in kwargs.items()})

        return call

    def copied(value: Any) -> Any:
        return value.copy() if hasattr(value, "dtype") else value

    plain = SimpleNamespace(**{**vars(importlib.import_module("pcbatch")), "autobatch": by_value})

    def imported(name: str, *rest: Any) -> Any:
        return plain if name == "pcbatch" else __import__(name, *rest)

    assert module.__file__ is not None
    source = Path(module.__file__).read_text()
    namespace = {"__builtins__": {**vars(builtins), "__import__": imported}, "__name__": module.__name__}
    exec(compile(source, module.__file__, "exec"), namespace)
    return namespace
