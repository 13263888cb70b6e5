"""Sums over binary trees of different sizes and shapes, one tree per lane, by the recursion that everyone would write.

Look at: `pcbatch.pack` makes arrays of the trees. The recursion never changes them, so they are stored once and not
on a stack: a call saves nothing but the number of a node.
"""

import numpy as np

import pcbatch


class Node:
    """A node of a search tree."""

    def __init__(self, key, value):
        self.key, self.value = key, value
        self.left = self.right = None


@pcbatch.autobatch
def tree_sum(tree):
    """The sum of the values in a tree."""
    if tree.is_leaf:
        return tree.value if not tree.is_empty else 0.0
    return tree_sum(tree.left) + tree.value + tree_sum(tree.right)


def random_tree(generator, nodes):
    """A random search tree of `nodes` nodes."""
    root, *others = (Node(key, float(generator.integers(0, 10))) for key in generator.permutation(nodes))
    for new in others:
        node = root
        while node is not None:
            side, above = "left" if new.key < node.key else "right", node
            node = getattr(above, side)
        setattr(above, side, new)
    return root


def plain_sum(node):
    """The same in plain Python, on the objects."""
    return 0.0 if node is None else plain_sum(node.left) + node.value + plain_sum(node.right)


def main():
    """Eight trees of 1 to 100 nodes."""
    generator = np.random.default_rng(1)
    sizes = [1, 2, 5, 10, 20, 50, 80, 100]
    trees = [random_tree(generator, nodes) for nodes in sizes]
    run = tree_sum.run(pcbatch.pack(trees))
    print(f"{'nodes':>6} {'sum':>6} {'by Python':>10}")
    for nodes, found, tree in zip(sizes, run.value, trees, strict=True):
        print(f"{nodes:6} {found:6.0f} {plain_sum(tree):10.0f}")
    print(f"\n{run.block_runs} block runs, {run.utilization.overall:.0%} of the computed rows were of use")


if __name__ == "__main__":
    main()
