"""Operations of pieces as HLO: the text of one module for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type, leaves
from pcbatch.runtime.backends.pieces import Hlo, Linear, Signature
from pcbatch.runtime.backends.protocol import Explanation
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, private
from pcbatch.runtime.backends.tensorflow.pieces import run_one
from pcbatch.runtime.backends.tensorflow.traces import remembering, trace

# -- refusals ----------------------------------------------------------------------------------------------------------
# Errors of TensorFlow or XLA while a whole program is compiled or run: the reason, and the block.

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


# -- hlo ---------------------------------------------------------------------------------------------------------------


def module(pieces: Sequence[tuple[Piece, Signature]], linear: Sequence[Linear | None] = ()) -> Hlo | None:
    """See `pieces.Pieces.hlo`: the text is XLA's input, before any optimisation."""
    derivatives = [*linear] or [None for _ in pieces]
    back = [(each, signature) for each, (_, signature) in zip(derivatives, pieces, strict=True) if each is not None]
    types = [leaf for _, signature in pieces for leaf in _leaves([*signature.reads, *signature.shared])]
    for each, signature in back:
        types += [*each.residuals, *_leaves(signature.shared), *each.seeds_of]
    specs = [tf.TensorSpec(type_.shape, type_.dtype) for type_ in types]

    for_all: list[str] = []

    def every(*arrays: Any) -> list[Any]:
        remaining = iter(arrays)
        found: list[Any] = []
        for piece, signature in pieces:
            for_all.extend(custom_vectorised_ops.batched_forms(trace(piece, signature.reads, signature.shared).graph))
        if for_all:
            return found
        for (piece, signature), each in zip(pieces, derivatives, strict=True):
            reads, shared = _grouped(remaining, signature.reads), _grouped(remaining, signature.shared)
            if each is None:
                outputs, site = run_one(piece, signature, reads, shared)
                kept: list[Any] = []
            else:
                outputs, site, kept = each.forward(reads, shared, None)
            found += [leaf for group in outputs for leaf in group]
            found += [*([] if site is None else [site]), *kept]
        for each, signature in back:
            residuals = [next(remaining) for _ in each.residuals]
            shared = _grouped(remaining, signature.shared)
            gradients = each.backward(residuals, shared, [[next(remaining) for _ in each.seeds_of]], None)
            by_leaf = [leaf for group in gradients.reads for leaf in group]
            found += [by_leaf[number] for number in each.reads_of]
            found += [leaf for indices, gradient in gradients.elements for leaf in (*indices, gradient)]
            found += gradients.parts
        return [tf.identity(leaf) for leaf in found]

    traced = tf.function(lambda *arrays: remembering(every, *arrays), jit_compile=True, autograph=False)
    captured = traced.get_concrete_function(*specs).captured_inputs
    # What is for all lanes at once is not for one; and a variable may have another value at each call.
    if for_all or any(each.dtype == tf.resource for each in captured):
        return None
    try:
        with tf.init_scope():  # it makes operations of its own, a random draw among them
            compiler_ir = private.compiler_ir(traced, specs)
            text: str = compiler_ir("hlo")
            text = _whole(text, compiler_ir) if _LEFT_OUT in text else text
    except (tf.errors.OpError, ValueError) as error:
        if isinstance(error, ValueError) and explain(error) is None:
            raise
        return None  # XLA has no code for an operation
    return Hlo(text, [np.asarray(each) for each in captured])


def _leaves(types: Sequence[Type]) -> list[TensorType]:
    return [leaf for type_ in types for leaf in leaves(type_)]


def _grouped(remaining: Iterator[Any], types: Sequence[Type]) -> list[list[Any]]:
    return [[next(remaining) for _ in leaves(type_)] for type_ in types]


_LEFT_OUT = "constant({...})"
"""Printed by XLA in place of a constant of many numbers."""
_CONSTANT = re.compile(r"%(\S+) = [^=]*" + re.escape(_LEFT_OUT))


def _whole(text: str, compiler_ir: Callable[[str], Any]) -> str:
    """The text with all numbers of all constants, as far as they can be read."""
    constants = private.hlo_constants(compiler_ir("hlo_serialized")) or {}

    def written_out(found: re.Match[str]) -> str:
        numbers = constants.get(found[1])
        if numbers is None:
            return found[0]
        elements = ", ".join(str(number).lower() for number in numbers.tolist())
        return found[0].replace(_LEFT_OUT, f"constant({{{elements}}})")

    return _CONSTANT.sub(written_out, text)
