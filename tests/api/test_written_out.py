"""Which loops are written out, turn by turn: those that must be, since that takes long to compile."""

from __future__ import annotations

import numpy as np

import pcbatch


@pcbatch.autobatch
def first_free(durations, workers):
    free_at = [0.0] * 5
    for duration in durations:
        worker = min(range(workers), key=lambda k: free_at[k])
        free_at[worker] += duration
    return max(free_at)


def test_the_loop_around_a_smallest_by_key_stays_a_loop():
    texts = [first_free.ir("cfg", np.ones((1, turns), np.float32), np.array([3])) for turns in (3, 12)]
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    np.testing.assert_array_equal(first_free(np.ones((2, 12), np.float32), np.array([3, 5])), [4.0, 3.0])
