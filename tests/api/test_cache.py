"""What is compiled when, and what is used again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api.halvings import BATCH, fresh


def value(tensor):
    return np.asarray(tensor).tolist()


def test_equal_shapes_compile_nothing():
    halvings = fresh()
    assert halvings.stats() == pcbatch.function.cache.Stats(0, 0, 0.0, 0.0)
    assert value(halvings(BATCH)) == [1, 2, 2, 2]
    first = halvings.stats()
    assert (first.compilations, first.cache_entries) == (1, 1)
    assert first.trace_seconds > 0
    assert value(halvings(BATCH + 8)) == [3, 3, 3, 3]
    assert halvings.stats() == first


def test_another_number_of_lanes_compiles_the_machine_only():
    """The types of one example are inferred once, whatever the batch."""
    halvings = fresh()
    halvings(BATCH)
    halvings(np.tile(BATCH, 2))
    halvings(np.tile(BATCH, 2))
    halvings(BATCH)
    assert (halvings.stats().compilations, halvings.stats().cache_entries) == (2, 1)


def test_another_type_of_example_is_another_program():
    halvings = fresh()
    halvings(BATCH)
    halvings(BATCH.astype(np.int64))
    assert (halvings.stats().compilations, halvings.stats().cache_entries) == (2, 2)


def test_check_compiles_what_a_call_then_uses():
    halvings = fresh()
    halvings.check(BATCH)
    assert halvings.stats().compilations == 1
    halvings(BATCH)
    assert halvings.stats().compilations == 1


def test_a_run_and_a_call_share_their_program():
    halvings = fresh()
    assert value(halvings.run(BATCH).value) == value(halvings(BATCH))
    assert halvings.stats().compilations == 1


def test_other_options_are_another_function():
    halvings = fresh()
    halvings(BATCH)
    earliest = halvings.options(schedule="earliest")
    assert earliest.stats().compilations == 0
    assert value(earliest(BATCH)) == value(halvings(BATCH))
    assert (earliest.stats().compilations, halvings.stats().compilations) == (1, 1)


def test_the_same_options_are_the_same_function():
    """So that `f.options(..)(x)` in a loop compiles once."""
    halvings = fresh()
    earliest = halvings.options(schedule="earliest", in_axes={"n": 0})
    assert halvings.options(schedule="earliest", in_axes={"n": 0}) is earliest
    assert earliest.options(schedule="auto", in_axes=0) is halvings
    assert halvings.options() is halvings


def test_a_tf_function_traces_its_own_copy():
    halvings = fresh()
    outer = tf.function(lambda n: halvings(n) + 1, autograph=False)
    assert value(outer(BATCH)) == [2, 3, 3, 3]
    assert value(outer(BATCH + 8)) == [4, 4, 4, 4]
    assert halvings.stats().cache_entries == 1


def test_two_threads_at_once():
    halvings = fresh()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda shift: value(halvings(BATCH + shift)), [0, 8, 0, 8]))
    assert results == [[1, 2, 2, 2], [3, 3, 3, 3]] * 2
    assert halvings.stats().cache_entries == 1


def test_a_refused_call_leaves_nothing_behind():
    """A fault of types for one signature says nothing about the next."""
    halvings = fresh()
    for _ in range(2):
        with pytest.raises(pcbatch.CompileError, match="PCB302"):
            halvings(np.ones((2, 3), np.int32))
    assert halvings.stats().cache_entries == 0
    assert value(halvings(BATCH)) == [1, 2, 2, 2]
