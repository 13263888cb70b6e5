"""`python -m tools.gallery [NAMES]`: write docs/gallery.md, each example with the table that it prints or its picture.

With names of examples, such as `nuts/eight_schools`, only their tables are made anew.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "gallery.md"
LINES = 12
"""The most lines of a table."""

SMALL = (
    "attention", "child_sum", "node_labels", "calculator", "graph_network", "weave", "rare_words", "transition_parser",
    "private_gradients", "newton", "neural_ode",
)  # fmt: skip
"""Small models that train, whose curves are pictures."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Loops of different lengths": ("collatz", "gcd", "implied_volatility", "bisection", "rejection", "rk45", "rnn"),
    "Recursion": ("fibonacci", "stacks", "ackermann", "mutual_recursion", "adaptive_simpson", "tree_sum"),
    "Searches and tables": ("nqueens", "minimax", "quicksort", "edit_distance"),
    "Samplers": ("nuts/eight_schools", "nuts/trajectory_lengths", "nuts/breast_cancer"),
    "Models that train": ("training/tagger", "training/tree_sentiment", *(f"training/{name}" for name in SMALL)),
}
PICTURES = {
    "stacks": "figures/stacks_pc.png",
    "training/tagger": "figures/tagger.png",
    "training/tree_sentiment": "figures/tree_sentiment.png",
    **{f"training/{name}": f"figures/training/{name}.png" for name in SMALL},
}
"""Examples that make a picture, with it."""
HEAD = """# Gallery

Every example is a page of code, shown here with what to look at and the output. Run one from the repository's
root, such as `.venv/bin/python examples/collatz.py`, after `make demo` has made the environment.

`python -m tools.gallery` writes this page.
"""


def told(name: str) -> tuple[str, str]:
    """The first line of an example's docstring, and the rest up to where its method comes from."""
    text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))) or ""
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest.split("\n\n")[0]


def shown(output: str) -> list[str]:
    """The first table in what an example prints: its first paragraph of more than one line, or its only one."""
    paragraphs = [part.splitlines() for part in output.strip("\n").split("\n\n")]
    table = next((lines for lines in paragraphs if len(lines) > 1), paragraphs[0])
    return [line.rstrip() for line in table[:LINES]] + (["..."] if len(table) > LINES else [])


def printed(name: str) -> str:
    """The output of an example."""
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def entry(name: str, body: str) -> str:
    """The part of the page on an example."""
    title, look = told(name)
    return f"### [{name}](../examples/{name}.py)\n\n{title}\n\n{look}\n\n{body}\n"


def page(bodies: Iterable[tuple[str, str]]) -> str:
    """The page, of each example's table or picture."""
    found = dict(bodies)
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts += [f"## {group}\n", *(entry(name, found[name]) for name in names)]
    return "\n".join(parts)


def body(name: str) -> str:
    """An example's table or picture, in Markdown."""
    if name in PICTURES:
        return f"![{told(name)[0]}]({PICTURES[name]})"
    lines = "\n".join(shown(printed(name)))
    return f"```text\n{lines}\n```"


def bodies() -> dict[str, str]:
    """The tables and pictures of the page as it is, by example."""
    parts = re.split(r"^### \[([\w/]+)\]", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        name: re.search(r"^```text\n.*?^```$|^!\[[^\n]*", text, re.DOTALL | re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {name: match[0] for name, match in found.items() if match}


if __name__ == "__main__":
    every = [name for names in GROUPS.values() for name in names]
    kept = bodies() if sys.argv[1:] else {}
    PAGE.write_text(
        page((name, body(name) if name in (sys.argv[1:] or every) else kept[name]) for name in every), encoding="utf-8"
    )
