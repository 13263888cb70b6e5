"""A loop over what is no sequence is refused once, at what it goes over."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)
LETTERS = {"a": np.float32(1.0), "b": np.float32(2.0)}


@pcbatch.autobatch
def no_sequences(x):
    total = 0.0
    for y in x:
        total = total + y
    for i in 10:
        total = total + i
    for i, y in enumerate(x * 2.0):
        total = total + y * i
    for y, z in zip((x, x), x, strict=True):
        total = total + y + z
    for _, value in {"a": x, "b": 2.0 * x}.items():
        total = total + value
    for value in {"a": x, "b": 2.0 * x}.values():
        total = total + value
    for y in map(tf.exp, (x, x)):
        total = total + y
    for y in (2.0 * y for y in (x, x)):
        total = total + y
    for _ in "ab":
        total = total + x
    for y, z in (x, x):
        total = total + y + z
    for y in (x, tf.stack([x, x])):
        total = total + tf.reduce_sum(y)
    for key in LETTERS:
        total = total + LETTERS[key]
    return total
