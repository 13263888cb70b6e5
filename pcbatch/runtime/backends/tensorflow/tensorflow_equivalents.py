"""Equivalents of functions of TensorFlow that ask Python or NumPy about an argument, which is a tensor in a batch.

Or is none there though it is one in eager code: in a graph some take no bool, and none the tensor of a constant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.arithmetic import loses
from pcbatch.runtime.backends.tensorflow.weak import Weak, WeakTypeError, commit, is_lane_value


def _varies(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_varies(item) for item in value)
    return is_lane_value(value)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> tf.Tensor:
    """`tf.constant`; of a tensor, or a list of tensors, its value: of another dtype where it is the same number there.

    A scalar fills the `shape`, as there.
    """
    if not _varies(value):
        return tf.constant(value, dtype, shape, name)
    wanted = None if dtype is None else tf.as_dtype(dtype)
    found = tf.convert_to_tensor(value, wanted) if isinstance(value, Weak) else tf.convert_to_tensor(value)
    if wanted is not None and wanted != found.dtype:
        if loses(found.dtype, wanted):
            raise WeakTypeError(
                f"tf.constant of {found.dtype.name} is none of {wanted.name}, and nothing is cast by itself; "
                f"write tf.cast(.., tf.{wanted.name})"
            )
        found = tf.cast(found, wanted)
    if shape is None:
        return tf.identity(found)
    return tf.broadcast_to(found, shape) if found.shape.rank == 0 else tf.reshape(found, shape)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None) -> Any:
    """`tf.cond`; of a Python bool one of the functions, as in eager code: in a graph it is refused."""
    if isinstance(pred, (bool, np.bool_)):
        return true_fn() if pred else false_fn()
    return tf.cond(pred, true_fn, false_fn, name)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> tf.Tensor:
    """`tf.pad`, which asks NumPy whether a number is 0."""
    if isinstance(constant_values, Weak):
        tensor = tf.convert_to_tensor(tensor)
        constant_values = commit(constant_values, tensor.dtype)
    return tf.pad(tensor, paddings, mode, constant_values, name)


Sampler = Callable[[Any, tf.DType], tf.Tensor]
"""A function of shape and dtype that draws uniform numbers."""

_sampler: ContextVar[Sampler | None] = ContextVar("sampler", default=None)


@contextlib.contextmanager
def drawing(sampler: Sampler) -> Iterator[None]:
    """Let `dropout` draw by this function inside."""
    token = _sampler.set(sampler)
    try:
        yield
    finally:
        _sampler.reset(token)


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> tf.Tensor:
    """`tf.nn.dropout`, which draws from hidden state; `drawing` says from where else, whatever the `seed`."""
    sampler = _sampler.get()
    if sampler is None:
        return tf.nn.dropout(x, rate, noise_shape, seed, name)
    x = tf.convert_to_tensor(x)
    rate = commit(rate, x.dtype) if isinstance(rate, Weak) else rate
    return tf.nn.experimental.general_dropout(x, rate, sampler, noise_shape, name)


EQUIVALENTS: dict[str, Callable[..., Any]] = {"cond": cond, "constant": constant, "nn.dropout": dropout, "pad": pad}
NAMES = {path: function.__name__ for path, function in EQUIVALENTS.items()}
"""Path in `tensorflow` to attribute of this module."""
