"""Programs without types: they mean what Python means, refuse what no type makes right, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pcbatch.errors import CompileError
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Branch, Program
from pcbatch.ir.verifier import verify
from pcbatch.reading.static_module import read_file
from tests.frontend.helpers import fresh, load_live
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret

HEADER = """
import contextlib
import copy
import dataclasses
import enum
from typing import NamedTuple

import pcbatch

SIZES = {"a": 2, "b": 3}
LOG = []


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: float
    y: float = 0.0

    def moved(self, by):
        return self._replace(x=self.x + by)


@dataclasses.dataclass
class Body:
    mass: float
    log: list = dataclasses.field(default_factory=list)

    @property
    def weight(self):
        return 10 * self.mass

    @weight.setter
    def weight(self, value):
        self.mass = value / 10

    @classmethod
    def heavy(cls, mass):
        return cls(100 + mass)

    def __add__(self, other):
        return Body(self.mass + other.mass, [*self.log, *other.log])


class Counted(Body):
    def grown(self, by):
        self.mass += by
        return super().weight


SHARED = Body(1)


def double(x):
    return 2 * x


def several(x, *rest, factor=2, **named):
    for each in rest:
        x = x * factor + each
    return x + len(named)


@pcbatch.autobatch
def half(x):
    return x / 2


@pcbatch.autobatch
def steps(n):
    return 0 if n <= 0 else 1 + steps(n - 2)


"""

MEANINGS: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "a flag that is asked twice": (
        "x, flag=None",
        "if flag:\n    y = 2\nif flag:\n    return x + y\nreturn x",
        [(1, True), (1, False)],
    ),
    "no value yet behind a loop": ("xs", "for x in xs:\n    y = x\nreturn y", [([1, 2],), ([3],)]),
    "a list that grows": ("n", "xs = []\nfor k in range(n):\n    xs.append(k * n)\nreturn xs, len(xs)", [(0,), (3,)]),
    "a list that grows in known turns": ("n", "xs = []\nfor k in range(3):\n    xs.append(k * n)\nreturn xs", [(2,)]),
    "a list that shrinks": (
        "xs",
        "ys = [*xs, 1]\ntotal = 0\nwhile ys:\n    total += ys.pop()\nreturn total",
        [([1, 2],), ([],)],
    ),
    "two names of a list": (
        "x, n",
        "a = b = [x]\nwhile n > 0:\n    a.append(n)\n    n -= 1\nreturn b",
        [(1, 3), (1, 0)],
    ),
    "lists of several lengths": ("x", "xs = [x, x] if x > 1 else [x]\nxs.append(0)\nreturn xs", [(1,), (2,)]),
    "an unknown key": ("x, k", "d = {'a': x}\nd[k] = 3\nreturn d, d[k], k in d", [(1, "a"), (1, "b")]),
    "a key of a dict of the module": ("k", "return SIZES[k] + 1", [("a",), ("b",)]),
    "a list that is repeated": ("x, n", "return [x, 0] * n", [(1, 2)]),
    "a slice": ("xs, i", "return xs[i : i + 2], xs[:i], xs[-1:]", [([1, 2, 3, 4], 1)]),
    "stars": ("xs", "a, *b = xs\nreturn several(*xs), several(*xs, k=1, factor=3), [*xs, a], b", [([1, 2, 3],)]),
    "a function by a flag": ("x, way", "f = double if way == 'up' else abs\nreturn f(x)", [(-3, "up"), (-3, "down")]),
    "a lambda of a list": (
        "xs, n",
        "return sorted(xs, key=lambda x: abs(x - n)), [x * n for x in xs if x > n]",
        [([1, 5, 2], 2)],
    ),
    "names of comprehensions": ("x, xs", "y = [x for x in xs]\nn = x\nreturn [n + x for x in y], x", [(5, [1, 2])]),
    "calls in a comprehension": ("xs", "return [steps(x) for x in xs], sum(half(x) for x in xs)", [([1, 4, 7],)]),
    "the class of a value": ("x", "return (1 if isinstance(x, int) else 2), str(x)", [(3,), (1.5,)]),
    "None": ("x, y", "if y is None:\n    return x\nreturn x + y", [(1, None), (1, 2)]),
    "a member of an enumeration": (
        "color",
        "match color:\n    case 1:\n        return 1\n    case 2 | 3:\n        return 2\nreturn Color.RED.value",
        [(1,), (2,), (5,)],
    ),
    "a sequence that is matched": (
        "x",
        "match x:\n    case [0, *rest]:\n        return rest\n    case [a, [b, _]]:\n        return a + b\nreturn -1",
        [([0, 1],), ([1, [2, 3]],), ([4],)],
    ),
    "named tuples": ("x", "p = Point(x).moved(2)\nreturn p.x, p.y, p[0]", [(1,)]),
    "objects": (
        "x",
        "b = Body(x) + Body.heavy(x)\nb.weight = b.weight + 10\nb.log.append(x)\nreturn b.mass, b.weight, b.log",
        [(1,)],
    ),
    "methods of a class above": ("x", "c = Counted(x)\nw = c.grown(2)\nreturn w, c.mass", [(1,)]),
    "attributes of an unknown object": ("d", "d['a'][0] += 5\nreturn d['a'], d", [({"a": [1, 2]},)]),
    "methods of an unknown object": (
        "xs, n",
        "xs.append(n)\nxs.sort()\ny = xs.pop(0)\nxs[0], xs[-1] = xs[-1], xs[0]\nreturn xs, y, xs.index(n)",
        [([3, 1, 2], 5)],
    ),
    "what may fail where it does not count": (
        "xs, k",
        "y = xs[k] if k < len(xs) else 0\nreturn y, k < len(xs) and xs[k] > 1, 1 / k if k else 0",
        [([1, 2], 1), ([1, 2], 5), ([1], 0)],
    ),
    "copies": (
        "xs",
        "ys = copy.copy(xs)\nys[0] = 5\nown = copy.deepcopy(SHARED)\nown.mass = 2\nreturn xs, ys, own.mass",
        [([1, 2],)],
    ),
    "zip, enumerate, reversed": (
        "xs, n",
        "t = 0\nfor i, (x, y) in enumerate(zip(xs, reversed(xs)), n):\n    t += i * x - y\nreturn t",
        [([1, 2, 3], 4)],
    ),
    "an argument that is a structure": ("x", "return half(steps(half((x, x)[1]) * 4)), several(x, x)", [(2.0,)]),
}
"""Parameters, a body and arguments."""

REFUSED = {
    "PCB201": "if x > 1:\n    y = 2\nreturn x + y",
    "PCB202": "return half(x, x)",
    "PCB203": "if x > 1:\n    return 1",
    "PCB204": "SIZES['a'] = x\nreturn x",
    "PCB208": "for k in range(3):\n    x = x + nowhere\nreturn x",
    "PCB303": "return f(x - 1)",
    "PCB119": "print(x)\nreturn x",
    "PCB129": "t = 0\nfor a, b in reversed(zip(range(1, 4), x)):\n    t += a * b\nreturn t",
    "PCB131": "pcbatch.debug('{} and {}', x)\nreturn x",
}
"""By code, what is wrong whatever the types are."""


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., tuple[Path, Program]]:
    """Reads a function that stands behind the header."""

    def read_body(parameters: str, body: str, decorator: str = "@pcbatch.autobatch") -> tuple[Path, Program]:
        path = tmp_path / "program.py"
        lines = "".join(f"    {line}\n" for line in body.split("\n"))
        path.write_text(f"{HEADER}{decorator}\ndef f({parameters}):\n{lines}", encoding="utf-8")
        program = read_file(path, "f").program
        verify(program)
        return path, program

    return read_body


@pytest.mark.parametrize("name", MEANINGS)
def test_meaning_is_pythons(name: str, read: Callable[..., tuple[Path, Program]]) -> None:
    parameters, body, examples = MEANINGS[name]
    path, program = read(parameters, body)
    names = load_live(path)
    evaluate = python_evaluate({function.name: names for function in program.functions})
    for example in examples:
        outcome = interpret(program, fresh(example), evaluate, copy_store)
        assert (outcome.status, outcome.value) == ("OK", names["f"](*fresh(example)))


@pytest.mark.parametrize("code", REFUSED)
def test_what_no_type_makes_right_is_refused(code: str, read: Callable[..., tuple[Path, Program]]) -> None:
    with pytest.raises(CompileError) as caught:
        read("x", REFUSED[code])
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.span is not None


@pytest.mark.parametrize(
    ("parameters", "decorator"),
    [("x, mode", '@pcbatch.autobatch(static_argnames="mode")'), ("x, mode=None", "@pcbatch.autobatch")],
)
def test_a_variable_that_a_constant_may_leave_out(parameters: str, decorator: str, read: Any) -> None:
    """`mode` may be known when the program is compiled, and with it whether `y` is assigned."""
    read(parameters, "if mode:\n    y = 2\nreturn x + y", decorator)


def test_a_captured_list_stays_as_it_is(read: Any) -> None:
    with pytest.raises(CompileError, match="PCB204: `LOG` is captured"):
        read("x", "LOG.append(x)\nreturn x")


def test_a_known_range_in_an_unknown_zip(read: Any) -> None:
    _, program = read("xs", "return list(zip(range(1, 4), xs))")
    assert "zip(range(1, 4), xs)" in print_program(program)


def test_a_batched_call_inside_of_with(read: Any) -> None:
    with pytest.raises(CompileError, match="PCB107"):
        read("x", "with contextlib.nullcontext(x) as c:\n    y = half(x)\nreturn y")


def test_batched_functions_stay_calls(read: Any) -> None:
    _, program = read("xs, n", "return [steps(x) for x in xs], half((n, xs))")
    assert [function.name for function in program.functions] == ["f", "steps", "half"]
    text = print_program(program)
    assert "= call steps(" in text
    assert "= (n, xs)\n" in text


def test_a_loop_that_is_written_out_is_one_whose_turns_are_known(read: Any) -> None:
    _, program = read("x", "ys = []\nfor k in range(2):\n    ys.append(k * x)\nreturn ys")
    assert not any(isinstance(block.terminator, Branch) for block in program.blocks())
    _, program = read("x", "for k in range(2):\n    x = x + k\nreturn x")
    assert any(isinstance(block.terminator, Branch) for block in program.blocks())
