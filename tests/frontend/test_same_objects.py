"""One object at two places of a structure: a change of one is seen at the other, as in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcbatch.errors import CompileError
from pcbatch.reading.static_module import read_file
from tests.frontend.helpers import fresh, load_live
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret

HEADER = """
import copy
import dataclasses

import pcbatch


@dataclasses.dataclass
class Body:
    pos: float


SHARED = Body(1.0)


def given(q):
    return [q, q]


def made(b):
    q = Body(b[0])
    return [q] * 3


@pcbatch.autobatch
def each_made(b):
    return [Body(b[0]) for _ in range(3)]


@pcbatch.autobatch
def f(b):
    q, r = Body(b[0]), Body(b[1])
"""

SAME = {
    "times": "xs = [q] * 2\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "times of a new one": "xs = [[b[0]]] * 2\nxs[0][0] = 5.0\nreturn xs[1][0]",
    "times of a new dict": "xs = [{'a': b[0]}] * 2\nxs[0]['a'] = 5.0\nreturn xs[1]['a']",
    "times of a copy": "zs = [b[0]]\nxs = [list(zs)] * 2\nxs[0][0] = 5.0\nreturn xs[1][0]",
    "plus": "xs = [q] + [q]\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "append": "xs = [q]\nxs.append(q)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "append of an element": "xs = [q, r]\nxs.append(xs[0])\nxs[0].pos = 5.0\nreturn xs[2].pos",
    "insert": "xs = []\nxs.insert(0, q)\nxs.insert(0, q)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "extend": "xs = []\nxs.extend([q, q])\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "itself": "xs = [[b[0]]]\nxs += xs\nxs[0][0] = 5.0\nreturn xs[1][0]",
    "name": "ys = [q, q]\nxs = ys\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "list": "ys = [q, q]\nxs = list(ys)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "star": "ys = [q, q]\nxs = [*ys]\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "stars": "d = {'a': q, 'b': q}\ne = {**d}\ne['a'].pos = 5.0\nreturn e['b'].pos",
    "copy": "ys = [q, q]\nxs = copy.copy(ys)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "method copy": "ys = [q, q]\nxs = ys.copy()\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "keywords": "d = dict(a=q, b=q)\nd['a'].pos = 5.0\nreturn d['b'].pos",
    "slice": "ys = [q, r]\nxs = ys[1:]\nxs[0].pos = 5.0\nreturn r.pos",
    "each turn": "xs = [q for _ in (1, 2)]\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "each turn of one inside": "xs = [[y for y in (q,)] for _ in (1, 2)]\nxs[0][0].pos = 5.0\nreturn xs[1][0].pos",
    "turns inside": "xs = [z for y in [q] for z in (y, y)]\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "twice in a turn": "xs = [[p, p] for p in [q]]\nxs[0][0].pos = 5.0\nreturn xs[0][1].pos",
    "dict of turns": "d = {k: q for k in ('a', 'b')}\nd['a'].pos = 5.0\nreturn d['b'].pos",
    "elements of twins": "xs = [y for y in [q] * 2]\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "elements": "ys = [q, r]\nxs = [y for y in ys]\nxs[0].pos = 5.0\nreturn ys[0].pos",
    "numbered elements": "ys = [q, r]\nxs = [(i, y) for i, y in enumerate(ys)]\nxs[0][1].pos = 5.0\nreturn ys[0].pos",
    "call": "xs = given(q)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "call that makes one": "xs = made(b)\nxs[0].pos = 5.0\nreturn xs[1].pos",
}
APART = {
    "new in each turn": "xs = [Body(b[i]) for i in range(2)]\nxs[0].pos += 1.0\nreturn xs[0].pos + xs[1].pos + b[0]",
    "lists": "m = [[b[i], 0.0] for i in range(2)]\nm[0][1] = 3.0\nreturn m[0][1] + m[1][1] + b[0]",
    "dicts": "d = {k: Body(b[0]) for k in ('a', 'b')}\nd['a'].pos = 4.0\nreturn d['a'].pos + d['b'].pos",
    "unknown lists": "xs = [list(b) for _ in range(2)]\nxs[0][1] = 5.0\nreturn xs[0][1] + xs[1][1]",
    "numbers": "xs = [b[0]] * 3\nxs[0] = 4.0\nreturn xs[0] + xs[1]",
    "keywords": "d = dict(a=Body(b[0]), b=Body(b[1]))\nd['a'].pos = 4.0\nreturn d['b'].pos",
    "copies": "xs = [copy.copy(q) for _ in range(2)]\nxs[0].pos = 4.0\nreturn xs[1].pos",
    "call": "xs = each_made(b)\nxs[0].pos = 5.0\nreturn xs[1].pos",
    "swap": "xs = [q, r]\nxs[0].pos = 2.0\nxs[0], xs[1] = xs[1], xs[0]\nxs[0].pos = 3.0\nreturn xs[1].pos",
}


def file_of(folder: Path, body: str) -> Path:
    path = folder / "program.py"
    path.write_text(HEADER + "".join(f"    {line}\n" for line in body.split("\n")), encoding="utf-8")
    return path


@pytest.mark.parametrize("body", [*SAME.values(), *APART.values()], ids=[*SAME, *(f"{name}, apart" for name in APART)])
def test_meaning_is_pythons(tmp_path: Path, body: str) -> None:
    path = file_of(tmp_path, body)
    program, names = read_file(path, "f").program, load_live(path)
    evaluate = python_evaluate({function.name: names for function in program.functions})
    example = ([1.0, 2.0],)
    assert interpret(program, fresh(example), evaluate, copy_store).value == names["f"](*fresh(example))


def test_an_object_of_the_module_is_not_changed(tmp_path: Path) -> None:
    path = file_of(tmp_path, "xs = [SHARED for _ in (1, 2)]\nxs[0].pos = 5.0\nreturn xs[0].pos")
    with pytest.raises(CompileError, match="PCB204"):
        read_file(path, "f")
