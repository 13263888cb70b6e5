"""Who needs whose results, on ways through hand-written programs, and what batching on the fly makes of it."""

from collections import Counter

from pcbatch.ir.analysis.provenance import Node, nodes
from pcbatch.ir.text.machine_parser import parse_machine
from pcbatch.runtime.report.on_the_fly import launches_by_agenda, launches_by_depth

TREE = """
program machine encode(left, right, at) -> h
  var left: int32[9]  register
  var right: int32[9]  register
  var at: int32[]  cached stack
  var h: float32[4]  register
  var h1: float32[4]  cached stack
  site 0: INDEX "out of range"
  site 1: MAX_DEPTH "too deep"
  site 2: MAX_STEPS "too many"
  extern encode: cell, leaf

function encode
b0:
  piece (left, at) -> t0:
    check 0: t0 = left[at] < 0
  branch t0 b1 b2
b1:
  piece (at) -> h:
    h = leaf(at)
  return
b2:
  piece (left, at) -> at:
    check 0: at = left[at]
  push at
  pushjump b0, back to b3, site 1  steps 2
b3:
  pop at
  piece (h, right, at) -> h1, at:
    h1 = copy h
    check 0: at = right[at]
  push h1  saved h1
  pushjump b0, back to b4, site 1  steps 2
b4:
  pop h1
  piece (h1, h) -> h:
    h = cell(h1, h)
  return
"""

LEAF, NODE = 1, 4


def way(tree):
    """The blocks that an example runs whose tree is a pair of trees, or None for a leaf."""
    if tree is None:
        return [0, LEAF]
    left, right = tree
    return [0, 2, *way(left), 3, *way(right), NODE]


def height(tree):
    return 0 if tree is None else 1 + max(map(height, tree))


def program():
    text = TREE.strip() + "\n"
    lines = text.replace("  var h1:", "  var t0: bool[]  temporary\n  var h1:").splitlines()
    return parse_machine("\n".join(lines) + "\n")


SMALL = (None, (None, None))
LEFT = ((((None, None), None), None), None)


def test_a_node_needs_its_children():
    found = nodes(program(), way(SMALL), {LEAF, NODE})
    leaf = Node(LEAF, frozenset())
    assert found == [leaf, leaf, leaf, Node(NODE, frozenset({1, 2})), Node(NODE, frozenset({0, 3}))]


def test_blocks_that_are_not_chosen_hand_on_what_they_were_given():
    assert nodes(program(), way(SMALL), {NODE}) == [Node(NODE, frozenset()), Node(NODE, frozenset({0}))]


def test_launches_are_those_of_the_trees_alone():
    trees = [SMALL, LEFT, None, ((None, None), (None, None))]
    batch = [nodes(program(), way(tree), {LEAF, NODE}) for tree in trees]
    highest = max(map(height, trees))
    assert launches_by_depth(batch) == Counter({LEAF: 1, NODE: highest})
    assert launches_by_agenda(batch) == Counter({LEAF: 1, NODE: highest})


def test_the_agenda_waits_where_depth_does_not():
    """Of two chains of cells behind another, one starts later: depth launches its cells twice as often."""
    first, second, other = 0, 1, 2
    short = [Node(first, frozenset()), Node(second, frozenset({0}))]
    long = [Node(first, frozenset()), Node(other, frozenset({0})), Node(second, frozenset({1}))]
    assert launches_by_depth([short, long])[second] == 2
    assert launches_by_agenda([short, long]) == Counter({first: 1, other: 1, second: 1})


def test_a_batch_of_nothing_launches_nothing():
    assert launches_by_agenda([]) == launches_by_depth([[]]) == Counter()
