"""`tape="replay"`: segments that run again when their turn comes give the same gradients to the bit, in less memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.runtime.adjoint import reverse
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.adjoint.checkpointing import Checkpoints
from pcbatch.runtime.machine.pool import Pool
from tests.adjoint import programs
from tests.adjoint.programs import CASES, COUNTS, VECTORS, B, W
from tests.adjoint.truth import TINY, batched

slow = pytest.mark.slow
SMALL = tapes.Sizes(batches=8, rows=0)
FEW = tapes.Sizes(batches=1, rows=0, bytes=1, log=5, beginnings=2)
"""Many segments, and never more than two beginnings of them on the way forward."""
QUICK = {("loop", True)}


@pytest.mark.parametrize(
    ("name", "jit"),
    [pytest.param(n, j, marks=() if (n, j) in QUICK else slow) for n in CASES for j in (False, True)],
)
def test_equal_to_the_bit(name, jit, monkeypatch):
    monkeypatch.setattr(tapes, "Sizes", lambda: FEW)
    function, arguments, variables = CASES[name]
    kept, again = (
        batched(function.options(jit=jit, tape=tape, name=f"{name}_{tape}"), arguments, variables)
        for tape in ("keep", "replay")
    )
    for ours, theirs in zip(again, kept, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs))


def _bytes_kept(monkeypatch, tape, turns):
    """How many segments a run of the loop has, and how many bytes are put aside of them."""
    found = []
    run = reverse.Reverse.run

    def seen(self, arrays, lanes):
        taped = run(self, arrays, lanes)
        keeps = tape == "keep"
        specs = [*self.tapes.specs(lanes).values()] if keeps else self.put_aside.specs(Pool.of(lanes))
        each = sum(tf.as_dtype(dtype).size * np.prod([1 if n is None else n for n in shape]) for dtype, shape in specs)
        found.append((int(taped.segments), int(taped.segments if keeps else taped.aside[1]) * each))
        return taped

    with monkeypatch.context() as patched:
        patched.setattr(reverse.Reverse, "run", seen)
        patched.setattr(tapes, "Sizes", lambda: SMALL)
        function = programs.loop.options(jit=False, tape=tape, name=f"loop_{tape}_{turns}")
        batched(function, (VECTORS, COUNTS * 0 + turns), (W, B))
    return found[0]


def test_little_is_put_aside(monkeypatch):
    segments, kept = _bytes_kept(monkeypatch, "keep", 80)
    assert segments > 5
    assert _bytes_kept(monkeypatch, "replay", 80)[1] < kept / 5


@slow
def test_what_is_put_aside_does_not_grow_with_the_run(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SMALL", tapes.Sizes(batches=1, rows=0, bytes=1))
    some, more = (_bytes_kept(monkeypatch, "replay", turns) for turns in (20, 320))
    assert more[0] > 10 * some[0]
    assert more[1] <= some[1]


@slow
def test_in_a_callers_graph(monkeypatch):
    monkeypatch.setattr(tapes, "Sizes", lambda: TINY)

    def slopes(tape):
        function = programs.deep.options(jit=False, tape=tape, name=f"deep_{tape}_inside")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float64), tf.TensorSpec([None], tf.int32)])
        def slope(x, n):
            with tf.GradientTape() as watching:
                watching.watch(x)
                value = tf.reduce_sum(function(x, n) ** 2)
            return watching.gradient(value, x)

        return slope(programs.NUMBERS, COUNTS)

    np.testing.assert_array_equal(slopes("replay"), slopes("keep"))


def test_an_option_of_two_values():
    with pytest.raises(UsageError, match="PCB501: tape must be 'keep' or 'replay'"):
        programs.loop.options(tape="disk")


def test_what_changes_in_a_segment_is_put_aside(monkeypatch):
    """Sabotage: floats are taken for what no segment changes."""
    changing = Checkpoints.changing.func

    def but_floats(self):
        held = [self.layout.arrays[key].type.dtype for key in self.layout.carried]
        others = [False] * (len(changing(self)) - len(held))
        floats = [dtype.startswith("float") for dtype in held] + others
        return [each and not is_float for each, is_float in zip(changing(self), floats, strict=True)]

    monkeypatch.setattr(Checkpoints, "changing", property(but_floats))
    monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    function, arguments, variables = CASES["loop"]
    kept, again = (
        batched(function.options(jit=False, tape=tape, name=f"loop_{tape}_sabotaged"), arguments, variables)
        for tape in ("keep", "replay")
    )
    assert not np.array_equal(again[1], kept[1])
