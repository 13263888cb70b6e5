"""Trees as data: nested tuples, objects and texts that become arrays, judged by recursions on the trees themselves."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError, pack, unpack

TUPLES = [(1.0, (2.0, 3.0)), (4.0, 5.0), 7.0, ((1.0, 2.0), ((3.0, (4.0, 5.0)), 6.0))]
SENTENCES = """# text = The cat sat
1\tThe\tthe\tDET\t_\t_\t2\tdet
2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj
3\tsat\tsit\tVERB\t_\t_\t0\troot

1-2\tDon't\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\t_\t_\t3\taux
2\tn't\tnot\tPART\t_\t_\t3\tadvmod
2.1\tplease\t_\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\t_\t_\t0\troot
"""


class Node:
    """A node of a search tree."""

    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right


class Label(list):
    """A tree as `nltk.Tree` is one: a list of its children, with a label."""

    def __init__(self, name, children):
        super().__init__(children)
        self.name = name

    def label(self):
        return self.name


@pcbatch.autobatch
def leaves(tree):
    if tree.is_leaf:
        return tree.value
    return leaves(tree.left) + leaves(tree.right)


@pcbatch.autobatch
def total(tree):
    found = tree.value
    for child in tree.children:
        found += total(child)
    return found


@pcbatch.autobatch
def weighted(tree):
    found = tree.value
    for k in range(len(tree.children)):
        found += (k + 1.0) * weighted(tree.children[k]) + 0.1 * weighted(tree.children[k - len(tree.children)])
    return found


def of_tuple(tree):
    return sum(map(of_tuple, tree)) if isinstance(tree, tuple) else tree


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fork": True},
        {"strategy": "local"},
        {"strategy": "agenda"},
        pytest.param({"form": "lockstep"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_nested_tuples(options):
    want = [of_tuple(tree) for tree in TUPLES]
    trees = pack(TUPLES)
    assert leaves.options(**options)(trees).numpy().tolist() == want
    assert total.options(**options)(trees).numpy().tolist() == want


def test_a_tree_alone():
    trees = pack(TUPLES)
    for lane, found in enumerate(weighted(trees).numpy()):
        np.testing.assert_allclose(found, weighted.single(trees.of_lane(lane)), rtol=1e-6)


def test_other_trees_do_not_compile_anew():
    f = total.options(name="of_other_trees")
    for trees in (TUPLES[:2], TUPLES[1:3], [(1.0, 2.0, 3.0), (1.0, ())]):
        f(pack(trees))
    assert f.stats().compilations == 1


@pcbatch.autobatch
def sum_of_search_tree(tree):
    if tree.is_empty:
        return 0
    return tree.value + (0 if tree.is_leaf else sum_of_search_tree(tree.left) + sum_of_search_tree(tree.right))


def test_objects_with_children_that_are_none():
    trees = [Node(1, Node(2)), Node(3, None, Node(4, Node(5), Node(6))), Node(1)]
    assert sum_of_search_tree(pack(trees)).numpy().tolist() == [3, 18, 1]


def test_labels_and_words():
    tree = Label("S", [Label("NP", ["a", "cat"]), Label("VP", ["sits"])])
    number = {"a": 1, "cat": 2, "sits": 3}
    packed = pack([tree], value=lambda node: number.get(node) if isinstance(node, str) else 10)
    assert total(packed).numpy().tolist() == [36]


def test_newick():
    trees = pack("((a:1,b:2)c:3,'d (''e'')':4.5[note])r;\n(x:1e-1,y:2);", value="length")
    np.testing.assert_allclose(total(trees), [10.5, 2.1])
    assert total(pack("(a:1,'b;c':2);(x:3);", value="length")).numpy().tolist() == [3.0, 3.0]
    named = pack(["(a,(b,c)d)e;"], value=lambda node: ord(node.name))
    assert total(named).numpy().tolist() == [sum(map(ord, "abcde"))]


def test_sentences_of_conllu():
    trees = pack(SENTENCES, value=lambda word: {"letters": len(word.form), "place": int(word.id)})
    assert products(trees).numpy().tolist() == [3 * 1 + 3 * 2 + 3 * 3, 2 * 1 + 3 * 2 + 2 * 3]


@pcbatch.autobatch
def products(tree):
    value = tree.value
    found = value["letters"] * value["place"]
    for child in tree.children:
        found += products(child)
    return found


@pcbatch.autobatch
def in_order(tree):
    """A number in which the place of every node counts."""
    found, weight = tree.value, 1.0
    for child in tree.children:
        weight *= 0.7
        found += weight * in_order(child)
    return found


def random_tree(random, nodes):
    """A value and subtrees, at random."""
    below, left = [], nodes - 1
    while left:
        size = int(random.integers(1, left + 1))
        below.append(random_tree(random, size))
        left -= size
    return float(random.integers(1, 9)), below


def walked(tree):
    value, below = tree
    return value + sum(0.7 ** (k + 1) * walked(each) for k, each in enumerate(below))


def as_tuples(tree):
    """Nested tuples, of which only leaves have values: that of another node is its first leaf."""
    value, below = tree
    return (value, *map(as_tuples, below)) if below else value


def walked_as_tuples(tree):
    return (
        tree if not isinstance(tree, tuple) else sum(0.7 ** (k + 1) * walked_as_tuples(e) for k, e in enumerate(tree))
    )


def as_labels(tree, made=Label):
    value, below = tree
    return made(str(value), [as_labels(each, made) for each in below])


def as_newick(tree):
    value, below = tree
    return (f"({','.join(map(as_newick, below))})" if below else "") + f"'it''s; {value}':{value}"


def as_conllu(tree):
    """A sentence in which some of the words that depend on one stand before it."""
    lines = []

    def put(tree):
        value, below = tree
        before = [put(each) for each in below[: len(below) // 2]]
        line = [len(lines) + 1, str(value), "_", "X", "_", "_", 0, "dep"]
        lines.append(line)
        for each in (*before, *map(put, below[len(below) // 2 :])):
            each[6] = line[0]
        return line

    put(tree)
    return "\n".join("\t".join(map(str, line)) for line in lines)


def test_fifty_random_trees_of_each_form():
    random = np.random.default_rng(0)
    trees = [random_tree(random, int(random.integers(1, 30))) for _ in range(50)]
    trees[0] = random_tree(random, 30)
    forms = {
        "Newick": pack("".join(f"{as_newick(each)};" for each in trees)),
        "CoNLL-U": pack("\n\n".join(map(as_conllu, trees)), value=lambda word: float(word.form)),
        "labels": pack([as_labels(each) for each in trees], value=lambda node: float(node.label())),
    }
    for name, packed in forms.items():
        np.testing.assert_allclose(in_order(packed), [walked(each) for each in trees], rtol=1e-5, err_msg=name)
    tuples = [as_tuples(each) for each in trees]
    np.testing.assert_allclose(in_order(pack(tuples)), [walked_as_tuples(each) for each in tuples], rtol=1e-5)


def test_trees_of_nltk():
    nltk = pytest.importorskip("nltk", reason="NLTK is not installed")
    random = np.random.default_rng(1)
    trees = [random_tree(random, int(random.integers(1, 30))) for _ in range(50)]
    packed = pack([as_labels(each, nltk.Tree) for each in trees], value=lambda node: float(node.label()))
    np.testing.assert_allclose(in_order(packed), [walked(each) for each in trees], rtol=1e-5)


def filled(tree, out):
    found = tree.value
    for child in tree.children:
        found += filled(child, out)
    out[tree.node] = found
    return found


@pcbatch.autobatch
def sums(tree):
    out = np.zeros(len(tree.count), np.float32)
    filled(tree, out)
    return out


def test_results_by_node():
    trees = pack([*TUPLES[:1], (4.0, (None, 5.0))])
    first, second = unpack(trees, sums.options(name="with_none")(pack([TUPLES[0], (4.0, (0.0, 5.0))])))
    assert first == (6.0, [(1.0, []), (5.0, [(2.0, []), (3.0, [])])])
    assert second == (9.0, [(4.0, []), (5.0, [None, (5.0, [])])])


def test_gradients_through_a_packed_tree():
    weight = tf.Variable(0.5)

    @pcbatch.autobatch
    def folded(tree):
        if tree.is_leaf:
            return tree.value
        return tf.tanh(weight * folded(tree.left) + folded(tree.right))

    def by_hand(tree):
        return tf.tanh(weight * by_hand(tree[0]) + by_hand(tree[1])) if isinstance(tree, tuple) else tf.constant(tree)

    with tf.GradientTape(persistent=True) as tape:
        ours, theirs = tf.reduce_sum(folded(pack(TUPLES))), tf.add_n([by_hand(tree) for tree in TUPLES])
    np.testing.assert_allclose(tape.gradient(ours, weight), tape.gradient(theirs, weight), rtol=1e-5)


def test_a_child_that_is_not_there():
    run = leaves.run(pack([(1.0, (2.0,)), (1.0, 2.0)]))
    assert [error.lane for error in run.errors] == [0]
    assert "IndexError: a node has no such child" in str(run.errors[0])


def _own_child():
    node = Node(1)
    node.left = node
    return node


@pytest.mark.parametrize(
    ("trees", "why"),
    [
        ([], "no trees to pack"),
        (["(a,b"], "Newick"),
        ("((a,b);", "not closed"),
        ("(a,b));", "not opened"),
        ("(a:x,b);", "length 'x'"),
        ("1\ta\t_\tX\t_\t_\t7\tdet", "no head"),
        ("1\ta\t_\tX\t_\t_\t0\troot\n2\tb\t_\tX\t_\t_\t0\troot", "one root, and this one has 2"),
        ([("a", "b")], "what is the value of 'a'"),
        ([(np.ones(2), np.ones(3))], "arrays of one shape"),
        ([_own_child()], "its own child"),
    ],
    ids=lambda each: each if isinstance(each, str) and "\t" not in each else "",
)
def test_what_is_no_tree(trees, why):
    given = {"value": "name"} if isinstance(trees, str) and ";" in trees else {}
    with pytest.raises(UsageError, match=f"PCB511: .*{why}"):
        pack(trees, **given)


def test_results_of_other_trees():
    with pytest.raises(UsageError, match="PCB511: results by node"):
        unpack(pack(TUPLES), np.zeros((2, 3)))
