"""A function of one example, run for all lanes as a piece is."""

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, rules


def for_all_lanes(function, columns):
    """`function(*row)`, a list of tensors, for every row of `columns`: traced for one, vectorised. Graphs only."""
    columns = [tf.convert_to_tensor(column) for column in columns]
    graph = private.new_graph("one")
    with graph.as_default():
        row = [tf.compat.v1.placeholder(column.dtype, column.shape[1:]) for column in columns]
        outputs = [private.capture(graph, output) for output in function(*row)]
    return rules.vectorized(
        graph, outputs, [*zip(row, columns, strict=True)], [], [], columns[0].shape[0], rules.Lane()
    )
