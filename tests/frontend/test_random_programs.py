"""Random functions: the "cfg" program means what Python means, down to which exception comes first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pcbatch.ir.verifier import verify
from pcbatch.reading.static_module import read_file
from tests.frontend.helpers import load_live
from tests.frontend.random_programs import Generator
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret

COUNT = 60
# In how many of the programs a construct must occur at least.
FLOORS = {"if ": 40, "elif ": 8, "else:": 40, "for ": 40, "while ": 25, "break": 5, "continue": 4, "raise ": 8}
FLOORS |= {" and ": 50, " or ": 50, "not ": 40, " if ": 50, ":= ": 40, "near(": 50, "mixed(": 50, "assert ": 8}
FLOORS |= {"match ": 25, "case ": 25, "enumerate": 8, "zip": 8, " in (": 40, "*rest": 10}
FLOORS |= {"xs[": 50, "//": 40, "%": 50, "return ": 60}


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow) if seed % 2 else seed for seed in range(COUNT)]
)
def test_meaning(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(Generator(seed).module(), encoding="utf-8")
    program = read_file(path, "program").program
    verify(program)
    namespace = load_live(path)
    evaluate = python_evaluate({function.name: namespace for function in program.functions})
    draw = random.Random(seed)
    for _ in range(5):
        a, b, c, *xs = (draw.randint(-5, 9) for _ in range(6))
        outcome = interpret(program, (a, b, c, [*xs]), evaluate, copy_store)
        found = repr(outcome.value) if outcome.status == "OK" else outcome.message
        assert found == plain(namespace["program"], a, b, c, xs)


def plain(function: Callable[..., Any], *arguments: Any) -> str:
    """The value that a function returns or the exception that it raises, as text."""
    try:
        return repr(function(*arguments))
    except (AssertionError, ValueError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"


def test_the_generator_covers_the_language() -> None:
    texts = [Generator(seed).module() for seed in range(COUNT)]
    seen = Counter({word: sum(word in text.partition("def program")[2] for text in texts) for word in FLOORS})
    assert {word: count for word, count in seen.items() if count < FLOORS[word]} == {}
