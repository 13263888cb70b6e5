"""Keys and noise that chains start with."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.running.starts import key_pairs
from pcbatch.random import host


@pytest.mark.parametrize("seed", [7, 2**40 + 3, 2**64 - 1])
def test_keys_are_those_of_each_chain_for_any_number_of_chains(seed: int) -> None:
    for chains in (1, 2, 9):
        pairs = key_pairs(seed, chains)
        assert pairs.shape == (chains, 2, 2)
        for pair, key in zip(pairs, random.keys(seed, chains), strict=True):
            np.testing.assert_array_equal(pair, random.split(key))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_draws_on_the_host_are_the_same_bits(dtype: tf.DType) -> None:
    keys = key_pairs(3, 4)
    drawn = host.uniforms(keys, (5, 3), dtype)
    assert drawn.shape == (4, 2, 5, 3)
    for place in np.ndindex(4, 2):
        expected = random.uniform(keys[place], (5, 3), dtype).numpy()
        assert drawn[place].tobytes() == expected.tobytes()
    assert host.uniforms(keys, (0,), dtype).shape == (4, 2, 0)
