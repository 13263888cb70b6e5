"""Modules read without importing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pcbatch.errors import CompileError
from pcbatch.frontend.module import ModuleSource, read_module
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.reading.static_module import read_file


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], ModuleSource]:
    """Reads text as a module."""

    def read_text(text: str) -> ModuleSource:
        path = tmp_path / "module.py"
        path.write_text(text, encoding="utf-8")
        return read_module(path)

    return read_text


Read = Callable[[str], ModuleSource]


def program_of(module: ModuleSource, name: str) -> Program:
    """The program of a function of a module."""
    return read_file(module.file, name).program


@pytest.mark.parametrize(
    ("imports", "decorator"),
    [
        ("import pcbatch", "pcbatch.autobatch"),
        ("import pcbatch", "pcbatch.autobatch()"),
        ("import pcbatch", 'pcbatch.autobatch(schedule="sweep", max_depth=3)'),
        ("import pcbatch as pb", "pb.autobatch"),
        ("import pcbatch.random", "pcbatch.autobatch"),
        ("from pcbatch import autobatch", "autobatch"),
        ("from pcbatch import autobatch as ab", "ab(jit=False)"),
        ("if True:\n    from pcbatch import random, autobatch", "autobatch"),
        ("try:\n    import pcbatch as p\nexcept ImportError:\n    raise", "p.autobatch"),
    ],
)
def test_spellings_of_the_decorator(read: Read, imports: str, decorator: str) -> None:
    module = read(f"{imports}\n\n@{decorator}\ndef f(n):\n    return n\n\n@other\ndef g(n):\n    yield n\n")
    assert list(module.functions) == ["f"]
    assert module.default_entry == "f"


@pytest.mark.parametrize("decorator", ["autobatch", "pcbatch.other", "pcbatch", "tools.autobatch"])
def test_other_decorators(read: Read, decorator: str) -> None:
    assert read(f"import pcbatch, tools\n\n@{decorator}\ndef f(n):\n    yield n\n").functions == {}


def test_functions_batched_by_a_call(read: Read) -> None:
    module = read(
        "import pcbatch\n\n"
        "def slow(n):\n    return 1 if n == 0 else slow(n - 1) + helper(n)\n\n"
        "def helper(n):\n    return n\n\n"
        'fast = pcbatch.autobatch(slow, schedule="sweep")\n'
        "again = pcbatch.autobatch(jit=False)(slow)\n"
    )
    assert list(module.functions) == ["fast", "again"]
    fast = module.functions["fast"]
    assert module.resolve(fast, "slow") is fast
    assert module.resolve(fast, "fast") is fast
    assert module.resolve(fast, "helper") is None
    text = print_program(program_of(module, "fast"))
    assert "function slow(n) -> result\n" in text
    assert text.count("function ") == 1
    assert "= call slow(t" in text


def test_methods(read: Read) -> None:
    module = read(
        "import pcbatch\n\n"
        "class Model:\n    rate = 2\n\n"
        "    @pcbatch.autobatch\n    def total(self, n):\n        return self.one(n) + Model.two(n) * self.rate\n\n"
        "    @pcbatch.autobatch\n    def one(self, n):\n        return n\n\n"
        "    @pcbatch.autobatch\n    @staticmethod\n    def two(n):\n        return n\n"
    )
    assert list(module.functions) == ["Model.total", "Model.one", "Model.two"]
    assert module.default_entry == "Model.total"
    program = program_of(module, "Model.total")
    assert [function.name for function in program.functions] == ["total", "one", "two"]
    assert [function.parameters for function in program.functions] == [("n",)] * 3
    assert program.entry.externs == ("self",)
    assert "* self.rate" in print_program(program)


def test_functions_of_one_name(read: Read) -> None:
    module = read(
        "import pcbatch\n\n"
        "class A:\n    @pcbatch.autobatch\n    def f(self, n):\n        return n\n\n"
        "class B:\n    @pcbatch.autobatch\n    @staticmethod\n    def f(n):\n        return n\n\n"
        "@pcbatch.autobatch\ndef f(n):\n    return B.f(n)\n"
    )
    found = read_file(module.file, "f")
    assert [function.name for function in found.program.functions] == ["f", "f_1"]
    assert [source.qualname for source in found.sources] == ["f", "B.f"]


def test_the_last_definition_counts(read: Read) -> None:
    text = "import pcbatch\n@pcbatch.autobatch\ndef f(n):\n    return 1\n@pcbatch.autobatch\ndef f(n):\n    return 2\n"
    module = read(text)
    assert "result = constant: 2" in print_program(program_of(module, "f"))
    assert read(text + "def f(n):\n    return 3\n").functions == {}


def test_default_entry(read: Read) -> None:
    text = "import pcbatch\n" + "".join(
        f"@pcbatch.autobatch\ndef {name}(n):\n    return {calls}\n"
        for name, calls in (("leaf", "n"), ("twin", "leaf(n)"), ("top", "twin(top(n))"))
    )
    assert read(text).default_entry == "top"
    assert read(text + "@pcbatch.autobatch\ndef apart(n):\n    return n\n").default_entry is None
    assert read(text + "@pcbatch.autobatch\ndef circle(n):\n    return top(circle(n))\n").default_entry == "circle"
    assert read("x = 1\n").default_entry is None


def test_names_from_star_imports_are_taken_for_granted(read: Read) -> None:
    text = "{}\nimport pcbatch\n@pcbatch.autobatch\ndef f(n):\n    return sin(n)\n"
    module = read(text.format("from math import *"))
    assert program_of(module, "f").entry.externs == ("sin",)
    module = read(text.format("from math import cos"))
    with pytest.raises(CompileError, match="`sin` is not defined"):
        program_of(module, "f")


def test_every_name_that_a_module_may_assign_is_known(read: Read) -> None:
    module = read(
        "import pcbatch, os.path\n"
        "for a in (1, 2):\n    b = a\n"
        "with open('x') as c:\n    d: int = 1\n"
        "try:\n    import e\nexcept ImportError as g:\n    h = None\n"
        "if (i := 1):\n    j, (k, *l) = 1, (2, 3)\n"
        "def m():\n    global o\n    o = 1\n"
        "class p:\n    q = 1\n"
        "@pcbatch.autobatch\ndef f(n):\n    return (a, b, c, d, e, g, h, i, j, k, l, m, o, p, os, __name__)\n"
    )
    (block,) = program_of(module, "f").entry.blocks
    assert len(block.ops) == 1
    module = read("import pcbatch\nclass p:\n    q = 1\n@pcbatch.autobatch\ndef f(n):\n    return q\n")
    with pytest.raises(CompileError, match="`q` is not defined"):
        program_of(module, "f")


def test_refusals_of_all_functions_come_together(read: Read) -> None:
    with pytest.raises(CompileError) as caught:
        read(
            "import pcbatch\n@pcbatch.autobatch\ndef f(n):\n    yield n\n"
            "@pcbatch.autobatch\ndef g(n):\n    global x\ndef h(n):\n    yield n\n"
        )
    assert [(d.code, d.span and d.span.line) for d in caught.value.diagnostics] == [("PCB105", 4), ("PCB103", 7)]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_module(tmp_path / "missing.py")


def test_a_file_that_is_not_python(read: Read) -> None:
    with pytest.raises(CompileError) as caught:
        read("def f(n:\n    return n\n")
    assert caught.value.diagnostics[0].code == "PCB152"
    assert isinstance(caught.value, SyntaxError)
