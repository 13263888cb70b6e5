"""Features of XLA alone: detecting its compilation, slices with computed starts, modules of StableHLO."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup
from pcbatch.runtime.backends.tensorflow.private.graphs import add_function


def in_xla(graph: Any) -> bool | None:
    """Return whether XLA compiles the trace into `graph`; None where TensorFlow cannot be asked."""
    known = lookup.find(lookup.IN_XLA)
    if known is None:
        warnings.warn(f"{lookup.gone(lookup.IN_XLA)}: {_WITHOUT_IN_XLA}", RuntimeWarning, stacklevel=2)
        return None
    return bool(known(graph))


_WITHOUT_IN_XLA = (
    "everything is taken to run without XLA, so nothing is tuned to it, and a recursion or an assertion inside a "
    "function with jit_compile=True fails with a message of XLA's own"
)


def update_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, part, starts) -> array` with `part` at `starts`; None where there is none."""
    return lookup.find(lookup.UPDATE_SLICE)


def dynamic_slice() -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor] | None:
    """XLA's `(array, starts, sizes) -> part` at `starts`; None where there is none."""
    return lookup.find(lookup.SLICE)


def has_modules() -> bool:
    """Return whether `call_module` works."""
    return lookup.find(lookup.MODULE) is not None


def call_module(
    module: str | bytes,
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[tf.Tensor],
    function: Any = None,
    platform: str = "CPU",
) -> list[tf.Tensor]:
    """Call a module of StableHLO: return tensors like `outputs`. If it calls the number 0, that is `function`."""
    called = []
    if function is not None:
        add_function(tf.compat.v1.get_default_graph(), function)
        called.append(tf.compat.v1.NameAttrList(name=function.name))
    return list(
        lookup.needed(lookup.MODULE)(
            args=list(inputs),
            version=9,
            module=module,
            Tout=[output.dtype for output in outputs],
            Sout=[output.shape for output in outputs],
            platforms=[platform],
            function_list=called,
        )
    )


_LITERALS: dict[str, str] = {
    **{f"s{bits}s": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}s": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    "f16s": "<f2",
    "f32s": "<f4",
    "f64s": "<f8",
    "preds": "?",
}
"""The fields of a constant of HLO, each with the dtype of its numbers, as NumPy writes it."""


def hlo_constants(module: bytes) -> dict[str, np.ndarray] | None:
    """The numbers of each constant of a serialised HLO module, row by row; None where TensorFlow cannot read one."""
    kind = lookup.find(lookup.HLO)
    if kind is None:
        return None
    read = kind()
    read.ParseFromString(module)
    found = {}
    for instruction in (each for computation in read.computations for each in computation.instructions):
        for field, value in instruction.literal.ListFields() if instruction.opcode == "constant" else ():
            if field.name in _LITERALS:
                dtype = np.dtype(_LITERALS[field.name])
                numbers = np.frombuffer(value, dtype) if isinstance(value, bytes) else np.array(list(value), dtype)
                found[instruction.name] = numbers
    return found
