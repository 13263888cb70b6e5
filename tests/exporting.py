"""Exported programs run where there is no JAX: TensorFlow runs the very text that JAX gets."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.ir.types import leaves
from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.export import file, stablehlo

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed: the extra `jax`")


def run_text(contents: file.Contents, leaves_given: list[Any], lanes: int, room: int, depth: int) -> list[np.ndarray]:
    """The results of the text for `cpu` for arguments with these leaves, in a program of so much room.

    In parts, where the text is not for as many lanes.
    """
    most, own = contents.lanes[1], {each.leaf: len(each.shape) for each in contents.inputs if each.lanes}
    if room > most:
        parts = []
        for start in range(0, lanes, most):
            stop = min(start + most, lanes)
            part = [leaf[start:stop] if np.ndim(leaf) > own.get(i, 99) else leaf for i, leaf in enumerate(leaves_given)]
            parts.append(run_text(contents, part, stop - start, most, depth))
        return [np.concatenate(each) for each in zip(*parts, strict=True)]
    operands = iter(contents.operands)
    arrays: list[Any] = [np.arange(room) < lanes]
    for each in contents.inputs:
        array = np.asarray(next(operands) if each.leaf is None else leaves_given[each.leaf], each.dtype)
        if each.lanes:
            array = np.broadcast_to(array, (lanes, *each.shape)) if array.ndim == len(each.shape) else array
            array = np.concatenate([array, np.zeros((room - lanes, *each.shape), each.dtype)])
        arrays.append(array)
    program = contents.program
    shown = dict.fromkeys(name for site in program.faults for name in site.arguments)
    results = [leaf for name in program.results for leaf in leaves(program.types[name])]
    specs = [tf.TensorSpec([room, *leaf.shape], leaf.returned) for leaf in results]
    specs += [tf.TensorSpec([room], tf.int32)] * 4
    specs += [tf.TensorSpec([room, *leaf.shape], leaf.dtype) for n in shown for leaf in leaves(program.types[n])]
    text = stablehlo.filled(contents.texts["cpu"], room, depth)
    inputs = [tf.constant(each) for each in (*arrays, *contents.captured["cpu"])]
    run = tf.function(lambda *given: private.call_module(text, given, specs), jit_compile=True, autograph=False)
    return [np.asarray(each)[:lanes] for each in run(*inputs)]
