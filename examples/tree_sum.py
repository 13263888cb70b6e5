"""Sums over binary trees of different sizes and shapes, one tree per lane, by the recursion that everyone would write.

Look at: a tree is three arrays (left child, right child, value; -1 for no child). The arrays go unchanged through the
whole recursion, so they are stored once and not on a stack. Reading `left[node]` costs one element, not the array.
"""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def below(left, right, value, node):
    """The sum of the values in the tree under `node`."""
    if node < 0:
        return 0.0
    return below(left, right, value, left[node]) + value[node] + below(left, right, value, right[node])


@pcbatch.autobatch
def tree_sum(left, right, value):
    """The sum of a whole tree, whose root is node 0."""
    return below(left, right, value, 0)


def random_tree(generator, nodes, room):
    """A random search tree of `nodes` nodes in arrays of length `room`: arrays of one batch have one shape."""
    left, right = np.full(room, -1, np.int32), np.full(room, -1, np.int32)
    order = generator.permutation(nodes)
    for new in range(1, nodes):
        node = 0
        while True:
            children = left if order[new] < order[node] else right
            if children[node] < 0:
                children[node] = new
                break
            node = children[node]
    value = np.where(np.arange(room) < nodes, generator.integers(0, 10, room), 1000)  # what is no node must not count
    return left, right, value.astype(np.float32)


def main():
    """Eight trees of 1 to 100 nodes."""
    generator = np.random.default_rng(1)
    sizes = [1, 2, 5, 10, 20, 50, 80, 100]
    left, right, value = (
        np.stack(arrays) for arrays in zip(*(random_tree(generator, n, 100) for n in sizes), strict=True)
    )
    run = tree_sum.run(tf.constant(left), tf.constant(right), tf.constant(value))
    print(f"{'nodes':>6} {'sum':>6} {'by NumPy':>9}")
    for lane, nodes in enumerate(sizes):
        print(f"{nodes:6} {run.value[lane]:6.0f} {value[lane, :nodes].sum():9.0f}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
