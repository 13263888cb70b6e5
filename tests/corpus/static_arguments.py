"""Static arguments: a size, a name that decides a branch (the other arm would not even have a type), a function."""

import math

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32")


@pcbatch.autobatch(static_argnames="exponent")
def power(x, exponent):
    if exponent == 0:
        return tf.ones_like(x)
    half = power(x, exponent // 2)
    return half * half * x if exponent % 2 == 1 else half * half


@pcbatch.autobatch(static_argnames=("size", "way", "function"))
def summed(x, size, way="up", *, function=tf.identity):
    terms = tf.zeros(size)
    for i in range(size):
        terms[i] = function(x) * i
    if way == "up":
        step = 1.0
    elif way == "down":
        step = -1.0
    else:
        step = "neither"
    assert x < 1e6, f"{x} is too much for {size} terms"
    return tf.reduce_sum(terms) * step


@pcbatch.autobatch
def static_arguments(x, n):
    total = 0.0
    for _ in range(n):
        total += summed(x, 2 + 1) + summed(x, 4, "down", function=tf.tanh)
    return total, power(x, 5)


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 4, lanes, dtype=np.int32)


def twin(x, n):
    return n * (3 * x - 6 * math.tanh(x)), x**5
