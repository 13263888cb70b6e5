"""The results of a run as its caller gets them: in the structure of the user's, as arrays of the library or of NumPy.

The option `output` says which. NumPy's arrays are made where numbers exist, and where no gradient is lost by it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.ir.machine import Program
from pcbatch.ir.types import StructType, TensorType, Type, records
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.protocol import Array, Backend

RESULT = "__result__"
"""The method of a record's class that returns a caller's form of it."""
Packer = Callable[[Sequence[Any]], Any]
"""A function from the leaves of a program's results to a caller's values."""


def packed(program: Program, leaves: Sequence[Any]) -> Any:
    """The leaves of a program's results in the user's structure."""
    if program.structure is not None:
        return _finished(program.structure, values.pack(program.structure, leaves))
    remaining, types = iter(leaves), [program.types[name] for name in program.results]
    results = [values.pack(type_, [next(remaining) for _ in leaf_types(type_)]) for type_ in types]
    return results[0] if len(results) == 1 else tuple(results)


def _finished(type_: Type, value: Any) -> Any:
    """Return a result with callers' forms of records that stand for something else: padded rows; see `Ragged`."""
    if not any(hasattr(each, RESULT) for each in records(type_)):
        return value
    assert isinstance(type_, StructType)
    made = getattr(type_.constructor, RESULT, None)
    if made is not None:
        return made(value)
    parts = values.parts(type_, value)
    return values.joined(type_, [_finished(*pair) for pair in zip(type_.items, parts, strict=True)])


def packer(program: Program, made: Callable[[Any], Any] | None = None) -> Packer:
    """Return the packer for many calls: every leaf as it is, or `made` of it."""
    if program.structure is not None or not all(
        isinstance(program.types[name], TensorType) for name in program.results
    ):
        return lambda leaves: packed(program, leaves if made is None else [*map(made, leaves)])
    if len(program.results) == 1:
        return operator.itemgetter(0) if made is None else lambda leaves: made(leaves[0])
    return tuple if made is None else lambda leaves: tuple(map(made, leaves))


def packers(program: Program, backend: Backend, *, is_numpys: bool, is_watched: bool) -> dict[str, Packer]:
    """The packers of many calls by `output`; leaves are NumPy's arrays then, or may be watched by a tape."""
    if is_watched:
        return {"tensors": packer(program), "numpy": lambda leaves: delivered(program, backend, leaves, "numpy")}
    if is_numpys:
        return {"tensors": packer(program, backend.adopted), "numpy": packer(program)}
    return {"tensors": packer(program), "numpy": packer(program, backend.numpy_of)}


def delivered(program: Program, backend: Backend, leaves: Sequence[Array], output: str) -> Any:
    """The leaves of a run in the user's structure, as arrays of the library or, for the output "numpy", of NumPy.

    UsageError PCB538 where a gradient tape watches them: it would lose sight of NumPy's.
    """
    return packed(program, as_numpy(program.name, backend, leaves) if output == "numpy" else leaves)


def as_numpy(name: str, backend: Backend, leaves: Sequence[Array]) -> list[np.ndarray]:
    """The leaves of a run of the program of this `name` in memory of their own; UsageError PCB538, see `delivered`."""
    if backend.is_watched(leaves):
        raise UsageError(
            "PCB538",
            f"a gradient tape watches the results of {name}, and would lose sight of them as NumPy's arrays; under the "
            f"tape call {name}.options(output='tensors'), or call {name} outside of it",
        )
    return [backend.numpy_of(leaf) for leaf in leaves]


def require_numbers(name: str, backend: Backend, output: str) -> None:
    """Refuse NumPy's arrays inside a graph, where there are no numbers yet: UsageError PCB538."""
    if output == "numpy" and not backend.runs_now():
        raise UsageError(
            "PCB538",
            f"{name} has output='numpy', and inside a {backend.spelling('function')} there are no numbers yet that "
            f"NumPy's arrays could hold; there call {name}.options(output='tensors')",
        )
