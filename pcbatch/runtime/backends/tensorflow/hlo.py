"""What pieces are made of, as XLA's operations: the text of one module for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import marked, xla_cpu
from pcbatch.runtime.backends.tensorflow.pieces import run_one
from pcbatch.runtime.backends.tensorflow.traces import remembering, trace


def module(pieces: Sequence[tuple[Piece, Signature]]) -> str | None:
    """See `pieces.Pieces.hlo`: the text is of what XLA is given, before it optimises anything."""
    specs = [
        tf.TensorSpec(leaf.shape, leaf.dtype)
        for _, signature in pieces
        for type_ in (*signature.reads, *signature.shared)
        for leaf in leaves(type_)
    ]

    def every(*arrays: Any) -> list[Any]:
        remaining, found = iter(arrays), []
        for piece, signature in pieces:
            reads, shared = (
                [[next(remaining) for _ in leaves(type_)] for type_ in types]
                for types in (signature.reads, signature.shared)
            )
            outputs, site = run_one(piece, signature, reads, shared)
            found += [tf.identity(leaf) for group in outputs for leaf in group]
            found += [] if site is None else [tf.identity(site)]
        return found

    if any(marked.batched_forms(trace(piece, each.reads, each.shared).graph) for piece, each in pieces):
        return None  # what is for all lanes at once is not for one
    with xla_cpu.switched(False):
        traced = tf.function(lambda *arrays: remembering(every, *arrays), jit_compile=True, autograph=False)
        try:
            text: str = traced.experimental_get_compiler_ir(*specs)(stage="hlo")
        except tf.errors.OpError:  # XLA has no code for an operation
            return None
    return text
