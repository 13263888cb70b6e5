"""The walks through the code in `docs/how-it-works.md`: their functions are entered in the order of the page."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8").partition("## 9. Walks")[2]
LINK = re.compile(r"\[`([\w.]+)`\]\(\.\./(pcbatch/[\w/]+\.py)\)")
WALKS = {
    title: LINK.findall("\n".join(line for line in steps.splitlines() if line.startswith("1. ")))
    for title, _, steps in (part.partition("\n") for part in PAGE.split("\n### ")[1:])
}


def defined(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """The names of functions, classes and methods."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name
            yield from defined(node, f"{prefix}{node.name}.") if isinstance(node, ast.ClassDef) else ()


@pytest.mark.parametrize(("name", "file"), LINK.findall(PAGE))
def test_functions_are_where_the_page_says(name, file):
    assert name in {*defined(ast.parse((ROOT / file).read_text(encoding="utf-8")))}


def entered(run: Callable[[], Any]) -> list[tuple[str, str]]:
    """The functions that are entered, each with its file, in the order of their first entries."""
    seen: dict[Any, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    start = f"{ROOT}/"
    return [(code.co_qualname, code.co_filename.removeprefix(start)) for code in seen]


X, N = np.array([1.0, 2.0, 0.5], np.float32), np.array([3, 1, 2], np.int32)


def scaled_by(scale: Any) -> Any:
    """A batched function."""

    @pcbatch.autobatch(form="lockstep")
    def scaled(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = tf.tanh(scale * x), n - 1
        return x

    return scaled


def called() -> None:
    """A first call."""
    scaled_by(0.9375)(X, N)


def differentiated() -> None:
    """A first gradient."""
    scale = tf.Variable(0.9375)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(scaled_by(scale)(X, N))
    assert tape.gradient(total, scale) is not None


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no qualified name there")
@pytest.mark.parametrize(
    ("run", "titles"),
    [
        (called, ["A function becomes a program", "An argument becomes a result"]),
        (differentiated, ["A gradient goes back"]),
    ],
    ids=["call", "gradient"],
)
def test_functions_are_entered_in_the_order_of_the_page(run, titles):
    found = entered(run)
    for title in titles:
        steps = WALKS[title]
        assert 10 <= len(steps) <= 15
        assert [step for step in steps if step not in found] == []
        assert sorted(steps, key=found.index) == steps


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no qualified name there")
def test_a_first_call_runs_so_much_code_and_no_more(monkeypatch):
    batched = pcbatch.autobatch(fibonacci, form="native")
    monkeypatch.setitem(globals(), "fibonacci", batched)
    found = entered(lambda: batched(np.arange(10, dtype=np.int32)))
    run = [(name, file) for name, file in found if file.startswith("pcbatch/")]
    named = [name for name, _ in run if not name.endswith(">")]  # a comprehension is part of its function
    assert 100 < len({file for _, file in run}) <= 184
    assert 500 < len(named) <= 1200
