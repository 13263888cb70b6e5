"""The same keys and draws on the host, by NumPy, for many keys at once: no graph is traced for a few numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.random.draws import FRACTION
from pcbatch.random.keys import PARITY, ROTATIONS, halves


def key(seed: int) -> np.ndarray:
    """`key(seed)` of a Python integer, uint32 `[2]`."""
    return np.array(halves(seed, "seed"), np.uint32)


def splits(keys: np.ndarray, num: int) -> np.ndarray:
    """`split(key, num)` of each of `keys`, uint32 `[.., 2]`: uint32 `[.., num, 2]`."""
    return np.stack(_words(keys, num), axis=-1)


def uniforms(keys: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """`uniform(key, shape, dtype)` of each of `keys`, uint32 `[.., 2]`: `[.., *shape]`."""
    dtype = tf.as_dtype(dtype)
    high, low = _words(keys, math.prod(shape))
    drawn = high.astype(np.uint64) << np.uint64(32) | low if dtype == tf.float64 else high ^ low
    top = drawn >> drawn.dtype.type(8 * drawn.itemsize - FRACTION[dtype])
    unit = top.astype(dtype.as_numpy_dtype) / dtype.as_numpy_dtype(2.0 ** FRACTION[dtype])
    return unit.reshape(*keys.shape[:-1], *shape)


def _words(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The two words of counters 0 to `size` - 1 under each key, uint32 `[.., size]`: `keys.threefry2x32`."""
    keys = np.asarray(keys, np.uint32)
    key0, key1 = keys[..., :1], keys[..., 1:]
    schedule = (key0, key1, key0 ^ key1 ^ np.uint32(PARITY))
    x0, x1 = np.zeros(size, np.uint32) + key0, np.arange(size, dtype=np.uint32) + key1
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(distance) | x1 >> np.uint32(32 - distance)) ^ x0
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + (schedule[(group + 2) % 3] + np.uint32(group + 1))
    return x0, x1
