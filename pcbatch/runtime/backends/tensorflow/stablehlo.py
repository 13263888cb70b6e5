"""Types as StableHLO writes them."""

from __future__ import annotations

import tensorflow as tf

_ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


def type_of(tensor: tf.Tensor | tf.TensorSpec) -> str:
    """The type of a tensor as StableHLO writes it."""
    sizes = "".join("?x" if size is None else f"{size}x" for size in tensor.shape)
    return f"tensor<{sizes}{_ELEMENTS[tensor.dtype.name]}>"


def layout_of(array: tf.Tensor | tf.TensorSpec) -> str:
    """The layout of an array that lies row by row."""
    rank = array.shape.rank
    return f"dense<{[*range(rank)][::-1] if rank else ''}> : tensor<{rank}xindex>"
