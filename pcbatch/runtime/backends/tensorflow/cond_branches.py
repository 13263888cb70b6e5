"""Conditionals of TensorFlow's under XLA of which lanes take different arms: both for all, and each lane's results.

pfor runs each arm for the lanes that take it, whose number is not known beforehand: XLA compiles little of that, and
none within a loop. So `Expansion` writes the arms out, as it does where a derivative is taken. A conditional that it
cannot write out is run lane after lane (`rules.loops.refuse_arms`): an arm may never end for a lane that does not take
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, flop_estimate, graphs, traces
from pcbatch.runtime.backends.tensorflow.function_inlining import CASES, CHOICES, Expansion
from pcbatch.runtime.backends.tensorflow.traces import Trace

Chosen = tuple[Trace, Sequence[tf.Tensor]]
"""A trace, and the tensors that a piece computes in it: the leaves of its outputs, then the fault sites."""


def written_out(piece: Piece, signature: Signature, traced: Trace, outputs: Sequence[tf.Tensor]) -> Chosen:
    """`traced` and `outputs`, or where they have a conditional that is to be written out, those of a trace without."""
    kinds = CHOICES if graphs.in_outer_xla() else CASES
    if not any(each.type in kinds for each in flop_estimate.in_order(outputs)):
        return traced, outputs
    make = partial(_without, piece, signature)
    found: Chosen = traces.remembered("arms", piece, signature.reads, signature.shared, make)
    return found


def _without(piece: Piece, signature: Signature) -> Any:
    traced = traces.anew(piece, signature.reads, signature.shared)
    outputs = [*traced.leaves(signature.writes), *([traced.site] if piece.sites else [])]
    with traced.graph.as_default(), custom_vectorised_ops.tracing_lane():
        expansion = Expansion(traced.graph, traced.reads, outputs, arms_only=True)
    return traced, [*map(expansion.of, outputs)]
