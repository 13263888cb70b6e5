"""TensorFlow Fold's tables: a TreeLSTM on trees of 128 leaves, and the lines of code of the models.

    python -m benchmarks.figures.fold [--tables 1 3] [--small] [--repeats 5] [--folder docs/figures]

Looks, Herreshoff, Hutchins, Norvig, "Deep Learning with Dynamic Computation Graphs", ICLR 2017. Table 1: a TreeLSTM of
width 1,024 in batches of 1 to 1,024 trees of 128 leaves, all of the same shape or each of another; the program is the
same. Table 3: lines of code, counted in `examples/training`. Batches by hand are TensorFlow's, level by level; by depth
is Fold's own way, `strategy="depth"`. Writes fold.md and fold.png.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from benchmarks.figures import curves, pages
from benchmarks.figures.curves import ALONE, OURS, Cells, Task
from benchmarks.harness import Contestant, Timing, load
from benchmarks.trees.contestants import by_hand, one_thread, pcbatch_batched
from benchmarks.trees.networks import NETWORKS, WORDS, Arrays

NAME = "fold"
PAPER = (
    "Looks, Herreshoff, Hutchins, Norvig, [Deep Learning with Dynamic Computation Graphs]"
    "(https://arxiv.org/abs/1702.02181), ICLR 2017"
)
SAME, DIFFERENT = "same shape", "different shapes"
MODELS = {
    "feed-forward attention": "attention",
    "TreeLSTM": "child_sum",
    "graph convolutions (weave)": "weave",
    "tagger with characters": "rare_words",
    "transition parser": "transition_parser",
    "gated graph network": "graph_network",
    "calculator": "calculator",
}
"""Models of `examples/training`: the paper's three, and others."""


def batch(kind: str, leaves: int, examples: int) -> Arrays:
    """Trees of so many leaves: copies of one random shape, or as many shapes. Words are random."""
    random = np.random.RandomState(1)
    shapes = [shape(leaves, random) for _ in range(1 if kind == SAME else examples)]
    left, right = (np.stack([shapes[tree % len(shapes)][side] for tree in range(examples)]) for side in (0, 1))
    word = random.randint(WORDS, size=left.shape).astype(np.int32)
    return {"left": left, "right": right, "word": word}


def shape(leaves: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The children of the nodes of a random tree, int32; the root is node 0."""
    left, right = (np.full(2 * leaves - 1, -1, np.int32) for _ in range(2))
    used, waiting = 1, [(0, leaves)]
    while waiting:
        node, below = waiting.pop()
        if below > 1:
            first = random.randint(1, below)
            left[node], right[node] = used, used + 1
            waiting += [(used + 1, below - first), (used, first)]
            used += 2
    return left, right


def contestants(kind: str, leaves: int, width: int, examples: int) -> Mapping[str, Contestant | str]:
    """All of table 1's on a batch."""
    given = batch(kind, leaves, examples)
    weights = replace(NETWORKS["small trees"], width=width).weights()
    function = pcbatch_batched.binary({name: tf.constant(each) for name, each in weights.items()})
    level_by_level = by_hand.binary(weights)
    arrays = [*given.values()]
    return {
        OURS: lambda: np.asarray(function(*arrays)),
        "by hand": lambda: level_by_level(given),
        "by depth": lambda: np.asarray(function.options(strategy="depth")(*arrays)),
        ALONE: lambda: np.stack(curves.one_by_one(function, arrays, examples)),
    }


def tasks(small: bool) -> list[Task]:
    """Table 1: trees of the same shape, and of different ones."""
    leaves, width, sizes = (8, 16, (1, 8)) if small else (128, 1024, (1, 4, 16, 64, 256, 1024))
    said = f"A binary TreeLSTM of width {width:,} on trees of {leaves} leaves (table 1)."
    how = {SAME: "All trees have one shape.", DIFFERENT: "Each tree has a shape of its own."}
    return [
        Task(kind, f"{said} {each}", sizes, partial(contestants, kind, leaves, width), "trees")
        for kind, each in how.items()
    ]


# -- lines of code -----------------------------------------------------------------------------------------------------


def lines(path: Path, name: str | None = None) -> int:
    """Lines of code of a file, or of a function in it: neither empty, nor a comment, nor part of a docstring."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    root = next(each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name) if name else tree
    without = {line for each in ast.walk(tree) for line in _docstring(each)}
    first, last = (root.lineno, root.end_lineno or 0) if isinstance(root, ast.FunctionDef) else (1, len(text))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    with path.open("rb") as file:
        tokens = [
            token for token in tokenize.tokenize(file.readline) if token.type not in {*skipped, tokenize.ENCODING}
        ]
    used = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len({line for line in used - without if first <= line <= last})


def _docstring(node: ast.AST) -> range:
    """The lines of the docstring of a node, if it has one."""
    if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
        return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    return range(0)


def counted() -> dict[str, list[str]]:
    """Table 3: lines of each model, and of its whole example."""
    found = {}
    for name, example in MODELS.items():
        path = curves.ROOT / "examples" / "training" / f"{example}.py"
        row = f"{name} ([{example}](../../examples/training/{example}.py))"
        found[row] = [str(lines(path, "model")), str(lines(path))]
    return found


def page(
    found: Mapping[str, Cells], every: Sequence[Task], code: Mapping[str, Sequence[str]], measured: str
) -> list[str]:
    """The parts of the page."""
    parts = [
        "# A TreeLSTM on large trees, and lines of code",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: tables 1 and 3 of {PAPER}, measured anew. "
            '*By hand* is TensorFlow under XLA, level by level. *By depth* is Fold\'s way, `strategy="depth"`. '
            "*Sequential* is `f.single`, one tree after another. In brackets is pcbatch's speed over it: above 1 "
            "pcbatch is faster. All results are compared. All is on one thread."
        ),
        measured,
    ]
    if found:
        parts += [
            f"![Trees per second by number of trees in a batch]({NAME}.png)",
            *(part for task in every if task.name in found for part in curves.section(task, found[task.name])),
            *gains(found),
        ]
    if code:
        heads = ["the model", "with its data"]
        parts += [
            "## Lines of code",
            pages.paragraph(
                "Lines without comments, docstrings and empty ones (table 3), counted by this command. The model is "
                "the function `model` of the example: weights, cells, control flow and loss. The first three are the "
                "paper's."
            ),
            pages.table(heads, code, "example"),
        ]
    return parts


def gains(found: Mapping[str, Cells]) -> list[str]:
    """The gain by batching: trees per second in a batch over one at a time; and what different shapes cost."""
    rows: dict[str, list[str]] = {}
    rates: dict[str, dict[int, float]] = {}
    for kind, cells in found.items():
        rates[kind] = {n: n / t.median for n, cell in cells.items() if isinstance(t := cell.get(OURS), Timing)}
        if rates[kind]:
            first = next(iter(rates[kind].values()))
            rows[f"{kind}, over a batch of one"] = [f"{rate / first:.1f}" for rate in rates[kind].values()]
    if {SAME, DIFFERENT} <= rates.keys():
        both = zip(rates[DIFFERENT].values(), rates[SAME].values(), strict=False)
        rows["different over the same"] = [f"{one / other:.2f}" for one, other in both]
    heads = [f"{size:,}" for size in next(iter(rates.values()))]
    said = (
        "The gain of batching: pcbatch's speed over that on one tree, and on different shapes over that on one shape."
    )
    return ["## Speed by batching", said, pages.table(heads, rows, "trees")]


def main() -> None:
    """Measure, count, draw, write."""
    parser = curves.arguments(__doc__)
    parser.set_defaults(limit=120.0, repeats=3)
    parser.add_argument("--tables", nargs="+", type=int, choices=(1, 3), default=(1, 3))
    options = parser.parse_args()
    one_thread.keep()
    before, every = load(), tasks(options.small)
    found = {task.name: curves.measured(task, options) for task in every} if 1 in options.tables else {}
    code = counted() if 3 in options.tables else {}
    if found:
        path = options.folder / f"{NAME}.png"
        curves.save_panels(path, [curves.panel(task, found[task.name]) for task in every])
    measured = curves.standing(options, before)
    curves.write(NAME, options, page(found, every, code, measured), {"table 1": curves.plain(found), "table 3": code})


if __name__ == "__main__":
    main()
