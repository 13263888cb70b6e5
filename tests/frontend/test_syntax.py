"""Trees are made by one thread at a time: see `syntax`."""

import ast
import re
import sys
from pathlib import Path

import pytest

import pcbatch
from pcbatch.threads import parse
from tests.threads import in_threads

TEXT = "\n".join(f"def f{i}(x):\n    return [x[{i}] + (y * {i} if y else -x) for y in range({i})]" for i in range(200))


class Garbage:
    """Collected while a tree is made, which lets another thread go on."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        sum(range(3))


@pytest.fixture
def often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_trees_in_threads(often):
    """`ast.parse` raises a SystemError here in Python 3.11."""

    def work():
        for _ in range(20):
            for _ in range(50):
                Garbage()
            tree = parse(TEXT)
        return ast.unparse(tree)

    assert set(in_threads(4, work)) == {ast.unparse(ast.parse(TEXT))}


def test_errors_are_those_of_python():
    with pytest.raises(SyntaxError, match="invalid syntax"):
        parse("x = = 1")
    assert isinstance(parse("x + 1", mode="eval"), ast.Expression)
    assert isinstance(parse(b"x = 1").body[0], ast.Assign)


def test_nobody_makes_trees_otherwise():
    own = Path(pcbatch.__file__).parent
    files = [file for file in own.rglob("*.py") if file.name != "threads.py"]
    assert len(files) > 250
    assert not [file for file in files if re.search(r"\bg?ast\.parse\(", file.read_text("utf-8"))]
