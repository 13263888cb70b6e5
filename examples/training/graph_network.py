"""A gated graph network: is there a way from one node to another? Graphs differ in nodes, edges and turns.

Li, Tarlow, Brockschmidt, Zemel, "Gated graph sequence neural networks", ICLR 2016, which pfor's paper times. A graph is
a row of edges; states go along them as often as the graph has nodes.

    python examples/training/graph_network.py [--steps 200]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import running
import tensorflow as tf

import pcbatch

NODES = 8


def examples(random: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Edges (from, to) of each graph, how many nodes it has, and whether a way leads from node 0 to node 1."""
    nodes = random.integers(3, NODES + 1, count, dtype=np.int32)
    edges = [random.integers(size, size=(random.integers(1, size + 2), 2)).astype(np.int32) for size in nodes]
    labels = []
    for each in edges:
        reached = {0}
        for _ in range(NODES):
            reached |= {int(end) for start, end in each if start in reached}
        labels.append(1 in reached)
    return pcbatch.ragged(edges), nodes, np.array(labels, np.float32)


def model(width: int) -> tuple[Any, list[tf.Variable]]:
    """The loss of one graph, batched, and the weights."""
    first, message, gates, update, output = variables = running.weights(
        [NODES, width], [width, width], [2 * width, 2 * width], [width, 2 * width], [1, width]
    )

    @pcbatch.autobatch
    def loss(edges, nodes, label):
        h = tf.tanh(tf.convert_to_tensor(first))
        for _ in range(nodes):
            coming = np.zeros((NODES, width), np.float32)
            for edge in edges:
                coming[edge[1]] += tf.linalg.matvec(message, h[edge[0]])
            both = tf.concat([coming, h], 1)
            r, z = tf.split(tf.sigmoid(both @ tf.transpose(gates)), 2, axis=1)
            new = tf.tanh(tf.concat([coming, r * h], 1) @ tf.transpose(update))
            h = (1.0 - z) * h + z * new
        return tf.nn.sigmoid_cross_entropy_with_logits(label, tf.linalg.matvec(output, h[1])[0])

    return loss, variables


if __name__ == "__main__":
    running.main("graph_network", model, examples)
