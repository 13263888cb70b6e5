"""Keys and noise that chains start with."""

import numpy as np
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.running import starts


def test_keys_are_those_of_each_chain_for_any_number_of_chains(caplog):
    """And TensorFlow does not complain of a graph for each number of chains or of parameters."""
    tf.get_logger().addHandler(caplog.handler)
    try:
        for chains in range(1, 9):
            pairs = starts._key_pairs(chains)(random.key(7)).numpy()
            for chain, key in enumerate(random.keys(7, chains)):
                np.testing.assert_array_equal(pairs[chain], random.split(key))
            noise = starts._uniform(chains, "float32")(pairs[:, 0]).numpy()
            np.testing.assert_array_equal(noise[-1], random.uniform(pairs[-1, 0], (chains,)))
    finally:
        tf.get_logger().removeHandler(caplog.handler)
    assert "retracing" not in caplog.text
