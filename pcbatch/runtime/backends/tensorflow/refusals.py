"""Errors of TensorFlow or XLA while a whole program is compiled or run: the reason, and the block."""

from __future__ import annotations

import re

import tensorflow as tf

from pcbatch.runtime.backends.protocol import Explanation

_NODE = re.compile(r"\{\{(?:function_)?node ([^}]*)\}\}")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_AROUND = re.compile(r'Graph execution error:|Detected at node |File "|\(\d+\) |\d+ root error')
"""The beginnings of lines that give a place, and no reason."""
_NO_KERNEL = re.compile(r"No registered '(\w+)' OpKernel for XLA")
_NO_HANDLER = re.compile(r"No FFI handler registered for (\w+)")
_COMPILER_IR = "Failed getting HLO text: "
"""The beginning of XLA's refusal, a plain ValueError, when it is only asked to lower a program."""


def explain(error: Exception) -> Explanation | None:
    """Explain an error that comes from an operation of the program; return None for all other errors."""
    match error:
        case tf.errors.InvalidArgumentError() | tf.errors.UnimplementedError():
            text = error.message
        case tf.errors.NotFoundError() if _NO_HANDLER.search(error.message):
            text = error.message
        case ValueError() if str(error).startswith(_COMPILER_IR):
            text = str(error).removeprefix(_COMPILER_IR).strip("'")
        case _:
            return None
    scopes = tuple(scope for node in _NODE.findall(text) for scope in node.split("/"))
    frames = tuple((file, int(line)) for file, line in _FRAME.findall(text))
    handler = _NO_HANDLER.search(text)
    if handler:
        gist = f"TensorFlow has no `{handler[1]}`, which a function of JAX calls; write this part with TensorFlow"
        return Explanation(gist, scopes, frames)
    missing = _NO_KERNEL.search(text)
    if missing:
        return Explanation(f"it has no version of TensorFlow's {missing[1]}", scopes, frames)
    lines = (line.strip() for line in _NODE.sub("", text).splitlines())
    gist = next((line for line in lines if line and not _AROUND.match(line)), type(error).__name__)
    return Explanation(gist, scopes, frames)
