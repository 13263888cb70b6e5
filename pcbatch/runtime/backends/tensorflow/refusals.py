"""Errors that TensorFlow or XLA raise while a whole program is compiled or run, and which block they come from."""

from __future__ import annotations

import re

import tensorflow as tf

_NODE = re.compile(r"\{\{(?:function_)?node ([^}]*)\}\}")


def explain(error: Exception) -> tuple[str, tuple[str, ...]] | None:
    """The gist of `error` in one line and the name scopes of the operations that it names; None for other errors."""
    if not isinstance(error, tf.errors.InvalidArgumentError | tf.errors.UnimplementedError | tf.errors.InternalError):
        return None
    scopes = [scope for node in _NODE.findall(error.message) for scope in node.split("/")]
    gist = _NODE.sub("", error.message).strip().splitlines()[0] if error.message.strip() else type(error).__name__
    return gist.strip(), tuple(scopes)
