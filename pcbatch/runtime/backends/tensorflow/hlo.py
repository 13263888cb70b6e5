"""What pieces are made of, as XLA's operations: the text of one module for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import xla_cpu
from pcbatch.runtime.backends.tensorflow.pieces import run_one
from pcbatch.runtime.backends.tensorflow.traces import remembering


def module(pieces: Sequence[tuple[Piece, Signature]]) -> str:
    """The text of a module with the operations of `pieces`, before XLA optimises anything.

    Its entry takes the leaves of what every piece reads and shares, one piece after another, and gives the leaves of
    what each writes, then its site if it has any.
    """
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

    with xla_cpu.switched(False):
        traced = tf.function(lambda *arrays: remembering(every, *arrays), jit_compile=True, autograph=False)
        text: str = traced.experimental_get_compiler_ir(*specs)(stage="hlo")
    return text
