"""Integers beyond int32 where it is written which dtype they have: constants of hashes and of generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

NUMBERS = np.array([0, 255, 70000, 123456789], np.int32)


@pcbatch.autobatch
def fnv32(n):
    h = np.uint32(2166136261)
    while n > 0:
        h = (h ^ np.uint32(n & 0xFF)) * np.uint32(16777619)
        n >>= 8
    return h


@pcbatch.autobatch
def fnv64(n):
    h = np.uint64(0xCBF29CE484222325)
    while n > 0:
        h = (h ^ np.uint64(n & 0xFF)) * np.uint64(0x100000001B3)
        n >>= 8
    return h


@pcbatch.autobatch
def generator(n):
    x = np.int64(n)
    for _ in range(3):
        x = (x * np.int64(6364136223846793005) + np.int64(1442695040888963407)) % np.int64(4611686018427387904)
    return x


@pcbatch.autobatch
def of_tensorflow(n):
    return (
        tf.constant(6364136223846793005, tf.int64) + tf.cast(n, tf.int64),
        tf.constant(4294967295, dtype=tf.uint32) + tf.cast(n, tf.uint32),
        tf.cast(5000000000, tf.int64),
        np.int64(-9223372036854775808) + np.int64(n),
        np.float64(5000000000) + np.float64(n),
    )


@pcbatch.autobatch
def without_dtype(n):
    return tf.cast(tf.constant(5000000000), tf.int32) + n


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}, {"backend": "reference"}], ids=str)
@pytest.mark.parametrize("function", [fnv32, fnv64, generator, of_tensorflow, without_dtype])
def test_each_lane_is_what_numpy_computes(function: Any, options: dict[str, Any]) -> None:
    values = tf.nest.flatten(function.options(**options)(NUMBERS))
    for lane, number in enumerate(NUMBERS):
        for value, wanted in zip(values, tf.nest.flatten(function.single(number)), strict=True):
            assert np.asarray(value).dtype == np.asarray(wanted).dtype
            assert np.asarray(value)[lane] == np.asarray(wanted)


def of_int32(n):
    return np.int32(5000000000) + n


def further(n):
    return np.int64(n, 5000000000)


def of_another_name(n):
    np = {"int64": float}
    return np.int64(5000000000) + n


def in_an_operator(n):
    return 5000000000 + n


def by_a_variable(n):
    k = 5000000000
    return n * k


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (of_int32, "PCB401: OverflowError: Python integer 5000000000 out of bounds for int32"),
        (further, "PCB401"),
        (of_another_name, "PCB423: a dict has no `int64`"),
        (in_an_operator, "PCB117: the integer 5000000000 does not fit in int32"),
        (by_a_variable, "PCB117: the integer 5000000000 does not fit in int32"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_others_would_be_cut_off(function: Any, told: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=told):
        pcbatch.autobatch(function).check(NUMBERS)
