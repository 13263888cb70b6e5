"""Objects inside of others of their class: trees and linked lists, and the advice on those that grow by lane."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch


class Node:
    def __init__(self, key, left=None, right=None):
        self.key, self.left, self.right = key, left, right


def height(node):
    return 0 if node is None else 1 + max(height(node.left), height(node.right))


def insert(node, key):
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = insert(node.left, key)
    else:
        node.right = insert(node.right, key)
    return node


def search_tree(xs):
    root = None
    for x in xs:
        root = insert(root, x)
    return height(root)


def search_tree_by_a_loop(xs):
    root = Node(xs[0])
    for x in xs[1:]:
        node = root
        while True:
            if x < node.key:
                if node.left is None:
                    node.left = Node(x)
                    break
                node = node.left
            else:
                if node.right is None:
                    node.right = Node(x)
                    break
                node = node.right
    return height(root)


def full_tree(xs):
    def build(depth):
        return Node(depth) if depth <= 0 else Node(depth, build(depth - 1), build(depth - 1))

    return height(build(xs[0]))


def stack(xs):
    head = None
    for x in xs:
        if x > 0:
            head = Node(x, head)
    total = 0.0
    while head is not None:
        total = 2 * total + head.key
        head = head.left
    return total


def tall_stack(xs):
    head = None
    for i in range(int(xs[0])):
        head = Node(i, head)
    return head is None


XS = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("program", [search_tree, search_tree_by_a_loop, full_tree], ids=lambda each: each.__name__)
def test_trees_that_grow_by_lane_are_refused_with_advice(program):
    with pytest.raises(pcbatch.errors.CompileError) as caught:
        pcbatch.autobatch(program)(XS)
    (found, *_) = caught.value.diagnostics
    assert found.code in ("PCB301", "PCB404")
    assert "keep one list for each of its fields, and refer to a `Node` by its number" in found.help


def test_a_list_that_grows_in_a_loop_of_unknown_length_is_refused_with_advice():
    with pytest.raises(pcbatch.errors.CompileError, match="PCB304") as caught:
        pcbatch.autobatch(tall_stack)(XS)
    assert "of objects one list for each field" in caught.value.diagnostics[0].help


def test_a_list_that_may_grow_in_each_of_some_turns_is_read():
    found = pcbatch.autobatch(stack)(XS)
    np.testing.assert_allclose(found, [stack(x) for x in XS])
