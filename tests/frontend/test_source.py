"""Capturing functions: where their source is found, and where it says that things stand."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcbatch.errors import CompileError, Diagnostic, Span
from pcbatch.frontend import read_function
from pcbatch.ir.printer import print_program
from tests.frontend.helpers import program_of_live


@pytest.fixture
def define() -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs text as a cell of a notebook would: under a made-up file name that linecache knows."""
    files: list[str] = []

    def run(text: str, **names: Any) -> dict[str, Any]:
        file = f"<cell {len(files)}>"
        files.append(file)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        namespace = {"__name__": "cell", **names}
        exec(compile(text, file, "exec"), namespace)
        return namespace

    yield run
    for file in files:
        linecache.cache.pop(file, None)


def refusal(function: Any) -> Any:
    with pytest.raises(CompileError) as caught:
        read_function(function)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def marked(text: str) -> Any:
    """A decorator with an argument, as `autobatch` can be."""
    return lambda function: function


# -- what is captured --------------------------------------------------------------------------------------------------


def plain(a, b=-1, /, c=(1, 2.5), *, d, e=True):
    """A docstring."""
    local = a
    return local, len(b), c, d, e


def test_fields() -> None:
    source = read_function(plain)
    assert (source.name, source.qualname, source.file) == ("plain", "plain", __file__)
    assert [(p.name, p.kind, p.default is not None) for p in source.parameters] == [
        ("a", "positional", False),
        ("b", "positional", True),
        ("c", "either", True),
        ("d", "keyword", False),
        ("e", "keyword", True),
    ]
    assert source.locals == {"a", "b", "c", "d", "e", "local"}
    assert source.span.text.startswith("def plain")
    assert source.span.text[source.span.column : source.span.end_column] == "def plain"


def test_sources_are_compared_by_identity() -> None:
    first, second = read_function(plain), read_function(plain)
    assert first != second
    assert {first: 1, second: 2}[first] == 1


@marked(
    "the decorator spans several lines",
)
@marked("and there are two")
def decorated(n):
    return n + 1


def test_decorators_are_left_out() -> None:
    source = read_function(decorated)
    assert source.tree.decorator_list == []
    assert source.span.text == "def decorated(n):"


class Model:
    def method(self, x):
        return self.double(x) + 1

    @staticmethod
    def double(x):
        text = """
    a string that stands further left than the function's body"""
        return 2 * x + len(text)


def test_methods() -> None:
    unbound, bound = read_function(Model.method), read_function(Model().method)
    assert [p.name for p in unbound.parameters] == ["self", "x"]
    assert [p.name for p in bound.parameters] == ["x"]
    assert (bound.receiver, bound.qualname) == ("self", "Model.method")
    assert read_function(Model.__dict__["double"]).name == "double"


def test_bound_methods_call_each_other() -> None:
    assert print_program(program_of_live(Model().method)).startswith(
        "program cfg\n\nfunction method(x) -> result\nb0:\n  t0 = 2 * x\n"
    )


def made(k: int) -> list[Any]:
    functions = []
    for _ in range(2):

        def inner(n):
            return n + k

        functions.append(inner)
    return functions


def test_functions_made_in_loops_with_closures() -> None:
    first, second = made(3)
    assert read_function(first).span == read_function(second).span
    assert "t0 = n + 3\n" in print_program(program_of_live(first))


def test_definitions_of_one_name_are_told_apart() -> None:
    if made:

        def chosen(n):
            return n + 1

        earlier = chosen

        def chosen(n):
            return n + 2

    code = [print_program(program_of_live(each)) for each in (earlier, chosen)]
    assert ["n + 1" in code[0], "n + 2" in code[1]] == [True, True]


# -- where it stands ---------------------------------------------------------------------------------------------------


def test_columns_count_characters(define: Callable[..., Any]) -> None:
    text = 'if True:\n\tdef f(ä):\n\t\tπ = "日本"; yield π, ä\n'
    diagnostic = refusal(define(text)["f"])
    assert diagnostic.span == Span("<cell 0>", 3, 12, 3, 22)
    assert diagnostic.render().splitlines()[3:5] == [
        '   3 | \t\tπ = "日本"; yield π, ä',
        "     | \t\t            ^^^^^^^^^^ suspended here",  # two columns for each of 日 and 本
    ]


def test_spans_over_several_lines(define: Callable[..., Any]) -> None:
    diagnostic = refusal(define("def f(x):\n    y = (yield (x,\n        x))\n")["f"])
    assert diagnostic.span == Span("<cell 0>", 2, 9, 3, 10)
    assert diagnostic.render().splitlines()[4] == "     |          ^^^^^^^^^ suspended here"


def test_lines_of_files_that_are_not_from_the_start(define: Callable[..., Any]) -> None:
    (block,) = program_of_live(define("\n\n\ndef f(x):\n    return x\n")["f"]).entry.blocks
    assert str(block.ops[0].span) == "<cell 0>:5:12"


# -- what cannot be captured -------------------------------------------------------------------------------------------


def test_no_source() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x", "<no file>", "exec"), namespace)  # 3.13 keeps that of "<string>"
    diagnostic = refusal(namespace["f"])
    assert (diagnostic.code, diagnostic.span) == ("PCB100", None)
    assert "`f` cannot be read" in diagnostic.message
    assert diagnostic.help


def test_no_source_beside_that_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `exec` makes is of "<string>", and from Python 3.13 on so is the text that `python -c` runs."""
    text = "import sys\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(text), None, [text], "<string>"))
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return x", namespace)
    assert refusal(namespace["f"]).code == "PCB100"


class Called:
    __call__ = plain


async def coroutine(x):
    return x


def generator(x):
    yield x


NO_FUNCTIONS = {
    "built in": [len, [].append],
    "a class": [int, Model],
    "a functools.partial": [functools.partial(plain, 1)],
    "a property": [property(plain)],
    "an object with `__call__`": [Called()],
    "an int": [3],
    "a Model": [Model()],
}


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in NO_FUNCTIONS.items() for value in values]
)
def test_what_is_no_plain_function(kind: str, value: Any) -> None:
    diagnostic = refusal(value)
    assert diagnostic.code == "PCB150"
    assert f"is {kind}, not a plain Python function" in diagnostic.message
    assert diagnostic.help


@pytest.mark.parametrize("value", [coroutine, generator])
def test_functions_that_do_not_simply_return(value: Any) -> None:
    diagnostic = refusal(value)
    assert diagnostic.code == "PCB105"
    assert diagnostic.span.file == __file__


def test_changed_source(define: Callable[..., Any]) -> None:
    function = define("def f(x):\n    return x\n")["f"]
    linecache.cache["<cell 0>"] = (1, None, ["def g(x, y):\n", "    return y\n"], "<cell 0>")
    diagnostic = refusal(function)
    assert diagnostic.code == "PCB151"
    assert "cannot be found in <cell 0>: line 1 is another" in diagnostic.message


@pytest.mark.parametrize(
    ("text", "code", "columns"),
    [("return )", "PCB152", (11, 12)), ("print x", "PCB125", (4, 11)), ("exec 'x'", "PCB125", (4, 12))],
)
def test_text_that_is_not_python(text: str, code: str, columns: Any, define: Callable[..., Any]) -> None:
    function = define("def f(x):\n    return x\n")["f"]
    linecache.cache["<cell 0>"] = (1, None, ["def f(x):\n", f"    {text}\n"], "<cell 0>")
    diagnostic = refusal(function)
    assert (diagnostic.code, diagnostic.span.line) == (code, 2)
    assert (diagnostic.span.column, diagnostic.span.end_column) == columns


def test_text_with_a_null_byte(define: Callable[..., Any]) -> None:
    function = define("def f(x):\n    return x\n")["f"]
    linecache.cache["<cell 0>"] = (1, None, ["def f(x):\n", "    return '\0'\n"], "<cell 0>")
    assert refusal(function).code == "PCB152"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (f"    return {' + '.join(['x'] * 300)}\n", 2),
        ("    if x == 0:\n        return x\n" + "    elif x:\n        return -x\n" * 200, 300),
    ],
    ids=["operators", "elif"],
)
def test_text_that_is_nested_too_deep(body: str, line: int, define: Callable[..., Any]) -> None:
    function = define(f"def f(x):\n{body}")["f"]
    diagnostic = refusal(function)
    assert (diagnostic.code, diagnostic.span.line) == ("PCB152", line)
    assert "nested too deep" in diagnostic.message


# -- where text may come from ------------------------------------------------------------------------------------------


def executed(file: str, text: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


CELL = "def f(x):\n    return x + 1\n"


def test_a_cell_whose_text_is_made_when_it_is_asked_for(define: Callable[..., Any]) -> None:
    """Entries of one element are lazy: linecache calls them with nothing."""
    file = str(Path(__file__).parent / "no such file")
    linecache.cache[file] = (lambda: CELL,)
    assert read_function(executed(file, CELL)).span.line == 1
    del linecache.cache[file]


def test_a_cell_with_a_date(define: Callable[..., Any]) -> None:
    """Older IPythons date their entries, so `checkcache` drops them, and put them back by replacing that function."""
    file = "<ipython-input-1-0123456789ab>"
    linecache.cache[file] = (len(CELL), 1.5, CELL.splitlines(keepends=True), file)
    assert read_function(executed(file, CELL)).span.text == "def f(x):"
    assert read_function(executed(file, CELL)).span.text == "def f(x):"
    del linecache.cache[file]


def test_cells_that_define_the_same_name(define: Callable[..., Any]) -> None:
    """A cell that is run again has another file; the first function still has its own text."""
    first, second = (define(f"def f(x):\n    return x + {number}\n")["f"] for number in (1, 2))
    code = [print_program(program_of_live(each)) for each in (first, second)]
    assert ["x + 1" in code[0], "x + 2" in code[1]] == [True, True]


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(CELL)
    function = executed(str(file), CELL)
    assert read_function(function).span.line == 1
    file.write_text("# A line more.\n" + CELL)
    assert refusal(function).code == "PCB151"


@pytest.mark.parametrize(
    "line", ["x = 1", "é = 1", "日本 = 1", "e\u0301 = 1", "ñ, 日 = 1, 2", "\t日 = 1", "a\u200b = 1"]
)
def test_carets_stand_under_what_they_mean(line: str, define: Callable[..., Any]) -> None:
    """The marked text and the carets begin in the same column of a screen and are as wide."""
    text = f"{line}; y = 2"
    linecache.cache["<wide>"] = (1, None, [text + "\n"], "<wide>")
    column = text.index("y")
    drawn, carets = Diagnostic("PCB100", "", Span("<wide>", 1, column, 1, column + 5)).render().splitlines()[3:5]
    assert screen_columns(drawn[: drawn.index("y = 2")]) == screen_columns(carets[: carets.index("^")])
    assert carets.count("^") == 5
    whole = Diagnostic("PCB100", "", Span("<wide>", 1, 0, 1, column)).render().splitlines()[4]
    assert screen_columns(whole[7:]) == screen_columns(text[:column]) or "\t" in text
    del linecache.cache["<wide>"]


def screen_columns(text: str) -> int:
    """How wide `text` is, by a table of the characters used here."""
    width = 0
    for character in text:
        if character == "\t":
            width = width // 8 * 8 + 8
        else:
            width += {"日": 2, "本": 2, "\u0301": 0, "\u200b": 0}.get(character, 1)
    return width


def test_lambda() -> None:
    diagnostic = refusal(lambda x: x)
    assert diagnostic.code == "PCB124"
    assert diagnostic.span.text.strip() == "diagnostic = refusal(lambda x: x)"


def test_wrapped_function() -> None:
    @functools.wraps(plain)
    def wrapper(*args):
        return plain(*args)

    assert refusal(wrapper).code == "PCB122"


# -- names get their meaning when they are used ------------------------------------------------------------------------


def forbidden(function: Any) -> list[str]:
    with pytest.raises(CompileError) as caught:
        program_of_live(function)
    return [each.code for each in caught.value.diagnostics]


def test_imports_may_follow_the_definition(define: Callable[..., Any]) -> None:
    early = define("def f(x):\n    y = np.append(x, 1)\n    return np.random.normal() + y\n")
    assert forbidden(early["f"]) == ["PCB208", "PCB208"]
    early["np"] = np
    assert forbidden(early["f"]) == ["PCB118"]


@pytest.mark.parametrize("call", ["g(0, 1)", "r.random()"])
def test_hidden_state_under_any_name(define: Callable[..., Any], call: str) -> None:
    imports = "import random\nfrom random import gauss as g\nr = random.Random(1)\n"
    assert forbidden(define(f"{imports}def f(x):\n    return x + {call}\n")["f"]) == ["PCB118"]


def test_empty_cells_of_closures() -> None:
    def early(n):
        return late(n) + other

    with pytest.raises(CompileError, match="`late` is not assigned yet"):
        program_of_live(early)

    def late(n):
        return n

    other = 1
    assert "t0 = n + 1\n" in print_program(program_of_live(early))
