"""Each step of the way back done wrong in one line: the gradients of a program of ours are other ones then.

That is what the tests beside would notice, which compare these gradients with those of one example after another.
"""

from __future__ import annotations

import pytest
import tensorflow as tf

from pcbatch.runtime.adjoint import backward_sweep, block_vjp, shared_operand_vjp
from pcbatch.runtime.adjoint import tape as tapes
from pcbatch.runtime.backends.tensorflow import control, gradients, linearize
from pcbatch.runtime.machine.values import Rows
from tests.adjoint.programs import CASES
from tests.adjoint.test_refusals_of_gradients import HALVED_X, second
from tests.adjoint.truth import TINY, assert_alike, batched

slow = pytest.mark.slow


def junk_rows_count(patch):
    """Rows that are of no account take part."""
    patch.setattr(backward_sweep, "Rows", lambda backend, lanes, mask: Rows(backend, lanes, mask == mask))


def runs_in_their_order(patch):
    """The log is undone from its beginning."""
    last = backward_sweep.Replay._last

    def first(self, tape, logged):
        turned = tape[tapes.LOGGED] - logged + 1
        return {**last(self, tape, self.backend.where(logged > 0, turned, logged * 0))}

    patch.setattr(backward_sweep.Replay, "_last", first)


def segments_in_their_order(patch):
    """What was put aside first comes back first."""
    popped = control.popped

    def first(record, dtype, shape):
        rest, last = popped(record, dtype, shape)
        array = tf.raw_ops.TensorListGetItem(
            input_handle=record, index=0, element_shape=-1, element_dtype=tf.as_dtype(dtype)
        )
        return rest, tf.ensure_shape(array, last.shape)

    patch.setattr(control, "popped", first)


def what_is_popped_stays_on_top(patch):
    """A pop gives its gradient to the entry and keeps it, too."""
    put = block_vjp.BlockVjp.put

    def kept(self, name, here):
        adjoint, popped = self.adjoints[name], self.names.popped[name]
        put(self, name, here)
        if popped:
            for key, value in zip(self.layout.tops(name), self.filled(name, adjoint), strict=True):
                self.state[key] = self.rows.put(self.state[key], here, value)

    patch.setattr(block_vjp.BlockVjp, "put", kept)


def pushes_are_forgotten(patch):
    """What was saved gets nothing of its entry."""
    patch.setattr(block_vjp.BlockVjp, "entries", lambda self: [])


def elements_are_written_over(patch):
    """An element that is read twice gets the gradient of one reading."""
    load = block_vjp.BlockVjp.element_read

    def written(self, array, indices, gradient, mask):
        key, at = self.of_array(array, indices)
        if key is None:
            load(self, array, indices, gradient, mask)
        else:
            self.state[key] = self.rows.store(self.state[key], at, mask, gradient)

    patch.setattr(block_vjp.BlockVjp, "element_read", written)


def stores_leave_the_element(patch):
    """What an element had before it was stored to gets what came after, too."""
    patch.setattr(block_vjp.BlockVjp, "_nothing", lambda self, array, element: element)


def sums_count_in_every_chunk(patch):
    """What runs have summed up is added with each of the chunks in which rows are pulled back."""
    over_rows = shared_operand_vjp.BatchedPullback._over_rows

    def again(self, each, tape, sound, arrays, carried, some):
        def counted(start, rows, arrays, before):
            return [*carried[: len(each.sums)], *some(start, rows, arrays, before)[len(each.sums) :]]

        return over_rows(self, each, tape, sound, arrays, carried, some if each.linear.is_late else counted)

    patch.setattr(shared_operand_vjp.BatchedPullback, "_over_rows", again)


def the_residual_of_another_row(patch):
    """Residuals are those of the row before."""
    forward = linearize.Linearized.forward

    def moved(self, *given):
        outputs, site, residuals = forward(self, *given)
        return outputs, site, [tf.roll(each, 1, 0) for each in residuals]

    patch.setattr(linearize.Linearized, "forward", moved)


ACTS = {
    junk_rows_count: "tree",
    runs_in_their_order: "tree",
    segments_in_their_order: "loop",
    what_is_popped_stays_on_top: "tree",
    pushes_are_forgotten: "deep",
    elements_are_written_over: "elements",
    stores_leave_the_element: "stores",
    sums_count_in_every_chunk: "loop",
    the_residual_of_another_row: "loop",
}
SMALL = tapes.Sizes(batches=8, rows=64)
LONG = (runs_in_their_order, sums_count_in_every_chunk)
"""Those that want segments of many runs."""
QUICK = (segments_in_their_order,)


@pytest.mark.parametrize("act", [pytest.param(act, marks=() if act in QUICK else slow) for act in ACTS])
def test_it_is_noticed(act, monkeypatch):
    function, arguments, variables = CASES[ACTS[act]]
    monkeypatch.setattr(tapes, "Sizes", lambda: SMALL if act in LONG else TINY)
    monkeypatch.setattr(
        shared_operand_vjp, "CPU", shared_operand_vjp.CPU.__class__(**{**vars(shared_operand_vjp.CPU), "pulled": 16})
    )
    right = batched(function.options(jit=False, name=f"{ACTS[act]}_before_{act.__name__}"), arguments, variables)
    act(monkeypatch)
    wrong = batched(function.options(jit=False, name=f"{ACTS[act]}_after_{act.__name__}"), arguments, variables)
    with pytest.raises(AssertionError):
        assert_alike(wrong, right)


def test_a_pullback_that_is_not_sealed(monkeypatch):
    """Second derivatives would be None, and nobody told."""

    def unsealed(pull_back, upstream, *others):
        return list(pull_back({place: each for place, each in upstream.items() if each is not None}))

    monkeypatch.setattr(gradients, "_pulled_back", unsealed)
    assert second(HALVED_X) is None
