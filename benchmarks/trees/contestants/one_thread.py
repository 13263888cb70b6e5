"""TensorFlow on one thread, as DyNet is, or on as many as BENCHMARK_CORES says."""

import os

import tensorflow as tf

CORES = int(os.environ.get("BENCHMARK_CORES", "1"))


def keep() -> None:
    """Keep TensorFlow on them; before it does anything."""
    tf.config.threading.set_intra_op_parallelism_threads(CORES)
    tf.config.threading.set_inter_op_parallelism_threads(1)
