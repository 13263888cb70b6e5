"""Operations of pieces as HLO: the text of one module for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.pieces import Hlo, Signature
from pcbatch.runtime.backends.tensorflow import marked, private
from pcbatch.runtime.backends.tensorflow.pieces import run_one
from pcbatch.runtime.backends.tensorflow.traces import remembering, trace


def module(pieces: Sequence[tuple[Piece, Signature]]) -> Hlo | None:
    """See `pieces.Pieces.hlo`: the text is of what XLA is given, before it optimises anything."""
    specs = [
        tf.TensorSpec(leaf.shape, leaf.dtype)
        for _, signature in pieces
        for type_ in (*signature.reads, *signature.shared)
        for leaf in leaves(type_)
    ]

    for_all: list[str] = []

    def every(*arrays: Any) -> list[Any]:
        remaining, found = iter(arrays), []
        for piece, signature in pieces:
            for_all.extend(marked.batched_forms(trace(piece, signature.reads, signature.shared).graph))
        for piece, signature in pieces if not for_all else ():
            reads, shared = (
                [[next(remaining) for _ in leaves(type_)] for type_ in types]
                for types in (signature.reads, signature.shared)
            )
            outputs, site = run_one(piece, signature, reads, shared)
            found += [tf.identity(leaf) for group in outputs for leaf in group]
            found += [] if site is None else [tf.identity(site)]
        return found

    traced = tf.function(lambda *arrays: remembering(every, *arrays), jit_compile=True, autograph=False)
    captured = traced.get_concrete_function(*specs).captured_inputs
    # What is for all lanes at once is not for one; and a variable may have another value at each call.
    if for_all or any(each.dtype == tf.resource for each in captured):
        return None
    try:
        compiler_ir = traced.experimental_get_compiler_ir(*specs)
        text: str = compiler_ir(stage="hlo")
    except tf.errors.OpError:  # XLA has no code for an operation
        return None
    text = _whole(text, compiler_ir) if _LEFT_OUT in text else text
    return Hlo(text, [np.asarray(each) for each in captured])


_LEFT_OUT = "constant({...})"
"""Printed by XLA in place of a constant of many numbers."""
_CONSTANT = re.compile(r"%(\S+) = [^=]*" + re.escape(_LEFT_OUT))


def _whole(text: str, compiler_ir: Callable[..., Any]) -> str:
    """The text with all numbers of all constants, as far as they can be read."""
    constants = private.hlo_constants(compiler_ir(stage="hlo_serialized")) or {}

    def written_out(found: re.Match[str]) -> str:
        numbers = constants.get(found[1])
        if numbers is None:
            return found[0]
        elements = ", ".join(str(number).lower() for number in numbers.tolist())
        return found[0].replace(_LEFT_OUT, f"constant({{{elements}}})")

    return _CONSTANT.sub(written_out, text)
