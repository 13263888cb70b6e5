"""Trees as data: nested tuples, objects, Newick and CoNLL-U texts as arrays that a recursion walks, node by node.

The nodes of a tree are numbered level by level, so that the children of one are numbered one after the other. A tree is
the arrays of all its nodes, and the number of the one at which it begins: a subtree is the same with another number.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError

LEAST_ROOM = 8
"""The room of the smallest trees; that of others is the next power of two."""


@dataclasses.dataclass
class Tree:
    """A tree in a batched function, or outside of it a batch of trees that `pcbatch.pack` has made.

    `first` and `count` say for each node the number of its first child and how many it has; `values` has its value, in
    arrays or structures of these, and `node` is the root. A batch has an axis of lanes before.
    """

    first: Any
    count: Any
    values: Any
    node: Any

    @property
    def value(self) -> Any:
        """The value of the root."""
        return self.values[self.node]

    @property
    def is_leaf(self) -> Any:
        """True if it has no children."""
        return self.count[self.node] <= 0

    @property
    def is_empty(self) -> Any:
        """True if it stands for a child that is not there: a None among children."""
        return self.count[self.node] < 0

    @property
    def children(self) -> Children:
        """Its subtrees, to be counted, indexed and gone through."""
        return Children(self)

    @property
    def left(self) -> Tree:
        """The first child."""
        return self.child(0)

    @property
    def right(self) -> Tree:
        """The second child."""
        return self.child(1)

    def child(self, place: Any) -> Tree:
        """The child at a place; IndexError where there is none."""
        count = self.count[self.node]
        at = place + count if place < 0 else place
        if at < 0 or at >= count:
            raise IndexError("a node has no such child")
        return self.at(self.first[self.node] + at)

    def of_lane(self, lane: int) -> Tree:
        """Return one tree of a batch, as `f.single` takes it."""
        values = self.values
        own = {key: each[lane] for key, each in values.items()} if isinstance(values, dict) else values[lane]
        return type(self)(self.first[lane], self.count[lane], own, self.node[lane])

    def at(self, node: Any) -> Tree:
        """The subtree at a node, by its number."""
        return Tree(self.first, self.count, self.values, node)


@dataclasses.dataclass
class TreeOfParts(Tree):
    """A tree of which the value of each node is a dict."""

    @property
    def value(self) -> Any:
        """The value of the root."""
        return {key: each[self.node] for key, each in self.values.items()}

    def at(self, node: Any) -> Tree:
        """The subtree at a node, by its number."""
        return TreeOfParts(self.first, self.count, self.values, node)


@dataclasses.dataclass
class Children:
    """The children of the root of a tree."""

    tree: Tree

    def __len__(self) -> int:
        return max(self.tree.count[self.tree.node], 0)

    def __getitem__(self, place: Any) -> Tree:
        return self.tree.child(place)

    def __iter__(self) -> Iterator[Tree]:
        for place in range(len(self)):
            yield self.tree.child(place)


class Parsed:
    """A node of a tree that was a text: its `children`, and its properties in the text.

    Of Newick that is `name` and `length`; of CoNLL-U `id`, `form`, `lemma`, `upos`, `xpos`, `feats`, `deprel`.
    """

    def __init__(self, **fields: Any):
        self.children: list[Parsed] = []
        vars(self).update(fields)


def pack(trees: Any, children: Any = None, value: Any = None) -> Tree:
    """Trees as one argument of a batched function, whose lanes are the trees.

        @pcbatch.autobatch
        def total(tree):
            return tree.value if tree.is_leaf else total(tree.left) + total(tree.right)

        total(pcbatch.pack([(1.0, (2.0, 3.0)), (4.0, 5.0)]))

    In the function a tree has `value`, `children` (with a length, an index and a loop), `left` and `right`, the first
    two of them, `is_leaf`, and `node`, the number of its root. The arrays have room for a power of two of nodes, so
    that other trees seldom compile anew.

    Arguments:
        trees: a list of trees: nested tuples or lists, `nltk.Tree`s, objects with `children`, or with `left` and
            `right`; texts in Newick; or one text of Newick trees or CoNLL-U sentences.
        children: a function of a node that gives its children, or the attribute that has them. A child that is None
            is a tree with `is_empty`.
        value: a function of a node that gives its value, a number, an array or a dict of these, or the attribute that
            has it; None from it stands for zeros. If it is not given, that of a number is the number.

    Returns:
        A `Tree`, whose arrays have an axis of trees before.

    Raises:
        UsageError: PCB511 for what is no tree.
    """
    given = _parsed(trees) if isinstance(trees, str) else [tree for each in trees for tree in _parsed(each)]
    if not given:
        raise UsageError("PCB511", "there are no trees to pack: a batch has one at least")
    rows = [_level_by_level(tree, _function(children, _children)) for tree in given]
    room = max(LEAST_ROOM, 1 << (max(len(nodes) for nodes, _, _ in rows) - 1).bit_length())
    first, count = (np.zeros((len(rows), room), np.int32) for _ in range(2))
    for lane, (nodes, firsts, counts) in enumerate(rows):
        first[lane, : len(nodes)], count[lane, : len(nodes)] = firsts, counts
    of_node = _function(value, _value)
    found = [[None if node is None else of_node(node) for node in nodes] for nodes, _, _ in rows]
    some = next((each for row in found for each in row if each is not None), None)
    roots = np.zeros(len(rows), np.int32)
    if isinstance(some, dict):
        parts = {key: [[each and each[key] for each in row] for row in found] for key in some}
        return TreeOfParts(first, count, {key: _array(rows, room) for key, rows in parts.items()}, roots)
    return Tree(first, count, _array(found, room), roots)


def unpack(trees: Tree, results: Any) -> list[Any]:
    """Return results by node as trees: for each tree nested tuples `(result, [subtrees])`, as packed.

    `results` is `[trees, nodes, ..]`, in the order of `Tree.node`: what a function gives that stores its result for
    each node. A child that is None is None here, too.
    """
    array, first, count = np.asarray(results), np.asarray(trees.first), np.asarray(trees.count)
    if array.ndim < 2 or array.shape[:2] != first.shape:
        raise UsageError("PCB511", f"results by node have the shape {list(first.shape)} and more, not {[*array.shape]}")
    found = []
    for lane, row in enumerate(array):
        made: dict[int, Any] = {}
        last = _nodes(first[lane], count[lane])
        for node in reversed(range(last)):
            below = range(first[lane, node], first[lane, node] + max(count[lane, node], 0))
            made[node] = None if count[lane, node] < 0 else (row[node], [made[each] for each in below])
        found.append(made[0])
    return found


def _nodes(first: np.ndarray, count: np.ndarray) -> int:
    """The number of nodes that a tree has in its arrays."""
    return 1 + int(np.maximum(count, 0).sum())


def _level_by_level(tree: Any, children: Callable[[Any], Any]) -> tuple[list[Any], list[int], list[int]]:
    """The nodes of a tree, and for each the number of its first child and how many it has; -1 for one that is None."""
    nodes, firsts, counts = [tree], [], []
    around: set[int] = set()
    for node in nodes:  # which grows
        below = [] if node is None else [*children(node)]
        if below and not isinstance(node, (str, tuple)):
            if id(node) in around:
                raise UsageError("PCB511", f"a node is its own child, or the child of two: {type(node).__name__}")
            around.add(id(node))
        firsts.append(len(nodes) if below else 0)
        counts.append(-1 if node is None else len(below))
        nodes += below
    return nodes, firsts, counts


def _function(given: Any, default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if given is None:
        return default
    if isinstance(given, str):
        return lambda node: getattr(node, given, None)
    if not callable(given):
        raise UsageError("PCB511", f"children and value are functions of a node, or names of attributes, not {given!r}")
    return given


def _children(node: Any) -> Sequence[Any]:
    if isinstance(node, (tuple, list)) and not hasattr(node, "_fields"):
        return node
    if hasattr(node, "children"):
        found: Sequence[Any] = node.children() if callable(node.children) else node.children
        return found
    if hasattr(node, "left") and hasattr(node, "right"):
        return () if node.left is None and node.right is None else (node.left, node.right)
    return ()


def _value(node: Any) -> Any:
    if isinstance(node, (bool, int, float, np.generic, np.ndarray)):
        return node
    if isinstance(node, (tuple, list)) and not hasattr(node, "_fields"):
        return None
    if isinstance(node, Parsed) and hasattr(node, "length"):
        return node.length
    if hasattr(node, "value"):
        return node.value
    raise UsageError(
        "PCB511",
        f"what is the value of {node!r}? Say it by a function: pcbatch.pack(trees, value=lambda node: ..)",
    )


def _array(rows: Sequence[Sequence[Any]], room: int) -> np.ndarray:
    """Values by node as one array; zeros where there are none."""
    some = [np.asarray(each) for row in rows for each in row if each is not None]
    if len({each.shape for each in some}) > 1 or any(each.dtype.kind not in "biufc" for each in some):
        raise UsageError("PCB511", "the values of all nodes are numbers, or arrays of one shape")
    own = all(isinstance(each, (bool, int, float)) for row in rows for each in row if each is not None)
    dtype = np.result_type(*some) if some else np.dtype(np.float32)
    if own:
        dtype = {"i": np.dtype(np.int32), "f": np.dtype(np.float32)}.get(dtype.kind, dtype)
    found = np.zeros((len(rows), room, *(some[0].shape if some else ())), dtype)
    for lane, row in enumerate(rows):
        for place, each in enumerate(row):
            if each is not None:
                found[lane, place] = each
    return found


# -- texts -------------------------------------------------------------------------------------------------------------


def _parsed(given: Any) -> list[Any]:
    if not isinstance(given, str):
        return [given]
    if "\t" in given:
        return [_dependencies(block) for block in given.split("\n\n") if block.strip()]
    if ";" in given:
        return [_newick(each) for each in re.findall(r"(?:'[^']*'|\[[^]]*\]|[^;'\[])+", given) if each.strip()]
    raise UsageError("PCB511", "a text of trees is Newick, `(a:1,b:2);`, or CoNLL-U, with tabs between its fields")


def _dependencies(block: str) -> Parsed:
    """A sentence of CoNLL-U: its root, with the words that depend on it below."""
    names = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")
    lines = [line.split("\t") for line in block.splitlines() if line.strip() and not line.startswith("#")]
    words = {fields[0]: Parsed(**dict(zip(names, fields, strict=False))) for fields in lines if fields[0].isdigit()}
    roots: list[Parsed] = []
    for word in words.values():
        fields = vars(word)
        if fields.get("head") not in ("0", *words):
            raise UsageError("PCB511", f"a word of CoNLL-U has no head: {fields.get('form')!r}")
        (roots if fields["head"] == "0" else words[fields["head"]].children).append(word)
    if len(roots) != 1:
        raise UsageError("PCB511", f"a sentence of CoNLL-U has one root, and this one has {len(roots)}")
    return roots[0]


def _newick(text: str) -> Parsed:
    """A tree of Newick: names and lengths of branches, 0 where none is said."""
    root = node = Parsed(name="", length=0.0)
    above: list[Parsed] = []
    for token in re.findall(r"\[[^]]*\]|'(?:[^']|'')*'|[(),:]|[^(),:\[\s']+", text):
        if token == "(":
            above.append(node)
            node = _below(node)
        elif token == ",":
            if not above:
                raise UsageError("PCB511", f"a comma outside of brackets: {text.strip()!r}")
            node = _below(above[-1])
        elif token == ")":
            if not above:
                raise UsageError("PCB511", f"a bracket is closed that was not opened: {text.strip()!r}")
            node = above.pop()
        elif token != ":" and not token.startswith("["):
            _told(node, token, text)
        node.follows_colon = token == ":"  # type: ignore[attr-defined]
    if above:
        raise UsageError("PCB511", f"a bracket is not closed: {text.strip()!r}")
    return root


def _below(node: Parsed) -> Parsed:
    found = Parsed(name="", length=0.0)
    node.children.append(found)
    return found


def _told(node: Parsed, token: str, text: str) -> None:
    """Take a token for a node's name or, behind a colon, for the length of its branch."""
    fields = vars(node)
    if not fields.get("follows_colon"):
        fields["name"] = token[1:-1].replace("''", "'") if token.startswith("'") else token
        return
    try:
        fields["length"] = float(token)
    except ValueError:
        raise UsageError("PCB511", f"a branch has the length {token!r}: {text.strip()!r}") from None
