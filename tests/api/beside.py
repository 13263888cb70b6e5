"""TensorFlow programs of someone else's, and what they find in TensorFlow: run as a script, tells of them as JSON.

`python beside.py alone` runs them without pcbatch, `python beside.py beside` after batched calls that need rules of
pcbatch's own. Before, both tell what the state is after the imports.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops, tensor_conversion_registry
from tensorflow.python.ops.parallel_for import pfor

if sys.argv[1] == "beside":
    import pcbatch
tf.config.threading.set_inter_op_parallelism_threads(2)  # raises where an operation has run already

X = tf.constant([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
MATRIX = tf.constant([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0], [1.0, 0.0, 4.0]])
VARIABLE = tf.Variable([2.0, 3.0, 4.0])
KEYS = tf.constant([2, 0, 1])


def hessian(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.sin(x * VARIABLE) * tf.nn.softplus(x))
        slope = inner.gradient(y, x)
    return outer.jacobian(slope, x)


def powers(row):
    return tf.while_loop(lambda i, total: total < 50.0, lambda i, total: (i + 1, total * 2.0), (0, row[1] ** 2))


def each(function):
    return lambda: tf.vectorized_map(function, X)


def compiled(function):
    return lambda: tf.function(function, jit_compile=True)()


def retraced():
    traced = []

    @tf.function
    def doubled(x):
        traced.append(x.dtype.name)
        return x + x

    doubled(tf.constant(1.0))
    doubled(tf.constant(2.0))
    doubled(tf.constant(2))
    return len(traced)


def drawn():
    tf.random.set_seed(7)
    return tf.random.uniform([3])


PROGRAMS = {
    "hessian": lambda: hessian(X[0]),
    "hessian, graph": lambda: tf.function(hessian)(X[0]),
    "hessian, XLA": lambda: tf.function(hessian, jit_compile=True)(X[0]),
    "softplus": compiled(each(tf.nn.softplus)),
    "QR": each(lambda row: tf.linalg.qr(row[:, None] * MATRIX).r),
    "QR, XLA": compiled(each(lambda row: tf.linalg.qr(row[:, None] * MATRIX).r)),
    "QR, no fallback": lambda: tf.vectorized_map(
        lambda row: tf.linalg.qr(row[:, None] * MATRIX).r, X, fallback_to_while_loop=False
    ),
    "scatter": each(lambda row: tf.scatter_nd(KEYS[:, None], row, [4])),
    "scatter, XLA": compiled(each(lambda row: tf.tensor_scatter_nd_add(VARIABLE * 1.0, KEYS[:, None], row))),
    "one matrix": each(lambda row: tf.linalg.matvec(MATRIX, row)),
    "rows of a variable": each(lambda row: tf.gather(VARIABLE, tf.cast(row > 0.0, tf.int32))),
    "pad": each(lambda row: tf.pad(row, [[1, 1]], constant_values=7.0)),
    "sort": each(lambda row: tf.sort(row) + tf.cast(tf.argsort(row), tf.float32)),
    "loop": each(powers),
    "loop, XLA": compiled(each(powers)),
    "tf.function inside": each(tf.function(lambda row: tf.reduce_sum(row * VARIABLE))),
    "lists": lambda: tf.stack([tf.constant(1.0), 2, np.float32(3.0)]) + tf.constant([[1, 2, 3], [4, 5, 6]], tf.float32),
    "ragged list": lambda: tf.constant([[1, 2], [3]]),
    "a list in itself": lambda: tf.convert_to_tensor(CYCLE),
    "a bad operand": lambda: tf.constant(1.0) + "text",
    "retracing": retraced,
    "random": drawn,
}
CYCLE: list[object] = []
CYCLE.append(CYCLE)


def outcome(program):
    """The numbers that a program gives, or the type of the error that it raises."""
    try:
        return [np.asarray(leaf).astype(np.float64).round(4).tolist() for leaf in tf.nest.flatten(program())]
    except Exception as error:
        return type(error).__name__


def state():
    """What can be seen of TensorFlow's state, and of Python's that it depends on."""
    converters = pfor._pfor_converter_registry
    log = tf.get_logger()
    return {
        "rules": {name: repr(converters[name]).partition(" at 0x")[0] for name in sorted(converters)},
        "pfor": [
            str(vars(pfor.PFor)[name]).partition(" at 0x")[0] for name in sorted(vars(pfor.PFor)) if name[1] != "_"
        ],
        "gradients": sorted(ops.gradient_registry.list()),
        "conversions": {
            kind.__name__: [function.__qualname__ for _, function in tensor_conversion_registry.get(kind)]
            for kind in (int, float, np.ndarray, dict, str, tf.Variable)
        },
        "operators": [
            f"{n}: {getattr(tf.Tensor, n).__qualname__}"
            for n in sorted(dir(tf.Tensor))
            if n[:2] == "__" and hasattr(getattr(tf.Tensor, n), "__qualname__")
        ],
        "log": [log.level, len(log.handlers), len(log.filters), log.propagate],
        "settings": [
            tf.config.functions_run_eagerly(),
            tf.config.optimizer.get_jit(),
            tf.config.get_soft_device_placement(),
            tf.config.threading.get_inter_op_parallelism_threads(),
            tf.executing_eagerly(),
            tf.random.get_seed(1) if hasattr(tf.random, "get_seed") else None,
            repr(np.geterr()),
            repr(warnings.filters[:5]),
            sys.getrecursionlimit(),
        ],
        "environment": dict(sorted(os.environ.items())),
        "threads": sum(not thread.name.startswith("pcbatch-") for thread in threading.enumerate()),
    }


def batched_calls():
    """Calls that need rules and corrections of pcbatch's own."""

    @pcbatch.autobatch
    def everything(x, key):
        n = 0
        while n < 3 and x[0] < 40.0:
            x = tf.nn.softplus(tf.linalg.matvec(MATRIX, x)) + tf.linalg.qr(x[:, None] * MATRIX).r[0]
            x = x + tf.scatter_nd(KEYS[:, None], x, [3]) + tf.pad(x, [[0, 0]], constant_values=1.0) + tf.sort(x)
            x = x + pcbatch.random.normal(key, [3]) + tf.cast(tf.stack([n, 1, n]), tf.float32)
            n += 1
        return x

    for options in ({}, {"jit": False}, {"backend": "reference"}):
        everything.options(**options)(X, pcbatch.random.keys(1, lanes=2))


def report():
    return {"outcomes": {name: outcome(program) for name, program in PROGRAMS.items()}, "state": state()}


if __name__ == "__main__":
    reports = [{"state": state()}]
    if sys.argv[1] == "beside":
        batched_calls()
    reports.append(report())
    print(json.dumps(reports))
