"""The command line: static answers, typed ones, modules written ahead of time, runs, and its exit codes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

import pcbatch
from pcbatch import UsageError, installed
from pcbatch.commands.cli import EXAMPLES, main
from pcbatch.commands.loading import can_bind
from pcbatch.commands.module_writer import compiled_module
from pcbatch.ir.printer import print_program
from pcbatch.runtime.report.run import LEGEND

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
NAMES = sorted(path.stem for path in CORPUS.glob("*.py") if path.stem != "__init__")


THROUGH_OBJECTS = {"method_calls": "NET", "optional_values": "SCALED", "inheritance": "KEPT"}
"""Programs that ask an object of the module for its attributes: what they are only the imported module knows."""
COMPUTED = ("computed_defaults", "static_arguments")
"""Programs with defaults that Python computes."""
TYPED = ("generator_functions",)
"""Programs that are read for types of arguments only: the extreme of a generator that hands on another one's items."""


@pytest.mark.parametrize(("name", "owner"), THROUGH_OBJECTS.items())
def test_static_ir_leaves_objects_to_be_found(name, owner, capsys):
    assert main(["compile", str(CORPUS / f"{name}.py"), "--entry", name, "--dump-ir=cfg"]) == 0
    assert re.search(rf"  extern (.*, )?{owner}\n", capsys.readouterr().out)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {*THROUGH_OBJECTS, *COMPUTED, *TYPED}])
def test_static_ir_equals_the_live_one(name, capsys):
    """`--dump-ir=cfg` reads the text alone; `f.ir("cfg")` resolves the names of the imported module."""
    path = CORPUS / f"{name}.py"
    assert main(["compile", str(path), "--entry", name, "--dump-ir=cfg"]) == 0
    live = getattr(importlib.import_module(f"tests.corpus.{name}"), name)
    assert capsys.readouterr().out == live.ir("cfg")
    assert print_program(live.program("cfg")) == live.ir("cfg")


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_static_ir_imports_neither_the_file_nor_tensorflow(tmp_path):
    path = tmp_path / "loud.py"
    path.write_text("import pcbatch\nprint('imported')\n\n@pcbatch.autobatch\ndef f(x):\n    return x + 1\n")
    code = (
        "import sys; from pcbatch.commands.cli import main; code = main(sys.argv[1:]);"
        "assert 'tensorflow' not in sys.modules; sys.exit(code)"
    )
    for stage in ("cfg", "stack", "optimized"):
        done = run_python(code, "compile", f"--dump-ir={stage}", str(path))
        assert done.returncode == 0, done.stderr
        assert "imported" not in done.stdout
        assert done.stdout.startswith("program ")


@pytest.mark.parametrize("order", [["FILE", "--dump-ir", "--entry", "gcd"], ["--entry", "gcd", "--dump-ir", "FILE"]])
def test_options_before_and_after_the_file(order, capsys):
    arguments = [str(CORPUS / "gcd.py") if word == "FILE" else word for word in order]
    assert main(["compile", *arguments]) == 0
    assert capsys.readouterr().out.startswith("program cfg\n\nfunction gcd(")


def test_the_stage_may_stand_behind_a_space(capsys):
    """A word that is neither an option nor a file is a stage, if a misspelt one."""
    file = str(CORPUS / "gcd.py")
    for words in (["--dump-ir", "stack", file], [file, "--dump-ir", "stack"]):
        assert main(["compile", *words]) == 0
        assert capsys.readouterr().out.startswith("program stack\n")
    assert main(["compile", file, "--dump-ir", "stak"]) == 2
    assert "invalid choice: 'stak'" in capsys.readouterr().err


def test_names_that_no_file_binds_are_told_without_tensorflow(tmp_path):
    path = tmp_path / "named.py"
    path.write_text(RUNNABLE + "\nfor later in ():\n    pass\n")
    code = (
        "import sys; from pcbatch.commands.cli import main; code = main(sys.argv[1:]);"
        "assert ('tensorflow' in sys.modules) == (sys.argv[1:2] == ['run'] and 'later' in sys.argv[2]); sys.exit(code)"
    )
    for name, said in (("rato", "ratio?"), ("Model.shift", "Model.shifted?"), ("later", "no batched function 'later'")):
        done = run_python(code, "run", f"{path}:{name}", "[1]")
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("text", "name", "can"),
    [
        ("f = g = 1", "g", True),
        ("from m import f as g, h", "g", True),
        ("from m import f as g, h", "f", False),
        ("import a.b", "a", True),
        ("from m import *", "anything", True),
        ("def f():\n    global g\n    h = 1", "g", True),
        ("def f():\n    global g\n    h = 1", "h", False),
        ("globals()['f'] = 1", "f", True),
        ("try:\n    pass\nexcept E as e:\n    with x as (y, *z): f = lambda q: (r := q)", "z", True),
        ("f = lambda q: (r := q)", "r", False),
        ("if (f := 1): pass", "f", True),
        ("class A:\n    def f(): pass", "A.f", True),
        ("class A:\n    def f(): pass", "A.g", False),
        ("class A(B):\n    pass", "A.g", True),
        ("class A:\n    pass\nA.g = 1", "A.g", True),
        ("@made\nclass A:\n    pass", "A.g", True),
        ("class A:\n    class B: pass", "A.B.c", True),
        ("a = thing()", "a.b", True),
    ],
)
def test_what_a_text_can_bind(text, name, can):
    assert can_bind(text.encode(), name) is can


def test_what_is_refused_whatever_the_arguments_is_said_before_asking_for_them(tmp_path, capsys):
    path = tmp_path / "refused.py"
    path.write_text("import pcbatch\n\n@pcbatch.autobatch\ndef f(x):\n    y = nowhere(x)\n    return y\n")
    assert main(["compile", str(path)]) == 1
    assert "PCB208" in capsys.readouterr().err
    path.write_text("import pcbatch\n\n@pcbatch.autobatch\ndef f(x):\n    yield x\n")
    assert main(["compile", str(path), "-o", str(tmp_path / "out.py")]) == 1
    assert "PCB105" in capsys.readouterr().err


PROGRAM = '''"""A module."""

import tensorflow as tf

import pcbatch

SCALE = tf.constant([1.0, 2.0, 4.0])
LIMIT = 3


@pcbatch.autobatch
def weight(i):
    return tf.reduce_sum(SCALE) * float(i)


@pcbatch.autobatch(max_depth=9)
def total(n, start):
    """A recursion with a captured array, a captured number, a callee and an assertion."""
    assert n <= LIMIT + 5, f"too many: {n}"
    if n == 0:
        return start
    return weight(n) + total(n - 1, start)


def after(values):
    return total(values, tf.zeros([len(values)]))
'''


def test_a_written_module_runs_without_the_frontend(tmp_path):
    source, written = tmp_path / "program.py", tmp_path / "written.py"
    source.write_text(PROGRAM)
    args = json.dumps([[1, 2], [0.0, 0.0]])
    assert main(["compile", str(source), "--entry", "total", "--args", args, "-o", str(written)]) == 0
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import written, json;"
        "print(json.dumps(written.after([0, 1, 3]).numpy().tolist()));"
        "run = written.total.run([2, 9], [0.5, 0.5]);"
        "print(json.dumps([int(s) for s in run.status])); print(run.errors[0].message);"
        "ours = {n: m for n, m in sys.modules.items() if n.partition('.')[0] in ('pcbatch', 'written')};"
        "bad = [n for n, m in ours.items() if n.startswith('pcbatch.frontend') or hasattr(m, 'gast')];"
        "assert not bad, bad"  # TensorFlow itself imports gast, so its absence altogether cannot be asked for
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    values, status, message = done.stdout.splitlines()
    assert json.loads(values) == [0.0, 7.0, 42.0]
    assert json.loads(status) == [0, 1]
    assert message == "AssertionError: too many: 9"


STRUCTURED = """
import dataclasses
import pcbatch

@dataclasses.dataclass
class Point:
    x: float
    y: float

@pcbatch.autobatch(jit=False)
def moved(point, parts, n=2):
    return Point(point.x + parts["a"][0], point.y * n), {"n": n}
"""


def test_a_written_module_takes_and_gives_structures(tmp_path):
    path = tmp_path / "structured.py"
    path.write_text(STRUCTURED)
    module, written = run_module(path), tmp_path / "structured_written.py"
    batch = (module.Point(np.ones(2, np.float32), 2.0), {"a": [np.arange(2, dtype=np.float32)]})
    written.write_text(compiled_module(path, module.moved, batch))
    compiled = run_module(written)
    given = compiled.Point(np.ones(2, np.float32), 2.0), batch[1], 2
    point, rest = compiled.moved(*given)
    assert isinstance(point, compiled.Point)
    assert (point.x.numpy().tolist(), point.y.numpy().tolist()) == ([1.0, 2.0], [4.0, 4.0])
    assert rest["n"].numpy().tolist() == [2, 2]
    with pytest.raises(UsageError, match="PCB515: moved was compiled for parts"):
        compiled.moved(given[0], {"b": batch[1]["a"]}, 2)


def run_module(path):
    """A module of a file, under the file's name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_source_is_what_is_printed(capsys):
    assert main(["compile", str(CORPUS / "gcd.py"), "--args", "[[12], [8]]"]) == 0
    printed = capsys.readouterr().out
    assert "def gcd_b0(" in printed
    assert "PROGRAM = _pcb.Program(" in printed


def test_run_prints_each_lane_and_the_exit_code_tells_of_faults(capsys):
    assert main(["run", f"{CORPUS / 'gcd.py'}:gcd", "[12, 18]", "[8, 12]"]) == 0
    good = capsys.readouterr().out
    assert "4" in good
    assert "6" in good
    assert main(["run", f"{CORPUS / 'division_by_zero.py'}:division_by_zero", "[4, 5]", "[0, 2]"]) == 1
    bad = capsys.readouterr().out
    assert "ZeroDivisionError" in bad
    assert "division_by_zero.py" in bad


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compile", "nowhere.py", "--dump-ir"], "there is no file nowhere.py"),
        (["compile", str(CORPUS / "gcd.py"), "--dump-ir", "--entry", "lcm"], "no batched function 'lcm'"),
        (["compile", str(CORPUS / "parity.py"), "--dump-ir"], "PCB523"),
        (["compile", str(CORPUS / "gcd.py")], "give example arguments with --args"),
        (["compile", str(CORPUS / "gcd.py"), "--args", "[1,"], "--args is not JSON"),
        (["run", "gcd.py"], "not of the form FILE.py:NAME"),
        (["run", f"{CORPUS / 'gcd.py'}:gcd", "[1, 2]", "[1, 2, 3]"], "disagree on the number of lanes"),
    ],
)
def test_bad_usage(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


RUNNABLE = """
import pcbatch


@pcbatch.autobatch(backend="reference", in_axes=None)
def double(x):
    return x * 2


@pcbatch.autobatch(backend="reference")
def ratio(a, b):
    return a // b, {"twice": a * 2}


class Model:
    @staticmethod
    @pcbatch.autobatch(backend="reference")
    def shifted(x):
        return x + 1


plain = len
"""


@pytest.fixture
def runnable(tmp_path, monkeypatch):
    """A file with functions to run, in the folder that the commands run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runnable.py").write_text(RUNNABLE)
    return "runnable.py"


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["FILE:double", "-3", "--lanes", "2"], ["lane 0: -6", "lane 1: -6"]),
        (["--lanes=1", "FILE:double", "--", "-3"], ["lane 0: -6"]),
        (["FILE:double", "--lanes", "1", "-1.5e1"], ["lane 0: -30.0"]),
        (["FILE:double", "--lanes", "1", "-0.5"], ["lane 0: -1.0"]),
        (["FILE:double", "--lanes", "1", "[1,-2]"], ["lane 0: [ 2 -4]"]),
        (["FILE:Model.shifted", "[1,-2]"], ["lane 0: 2", "lane 1: -1"]),
        (["./FILE:Model.shifted", "[1]"], ["lane 0: 2"]),
    ],
)
def test_arguments_of_a_run(words, lines, runnable, capsys):
    """Options anywhere, negative numbers as they are."""
    assert main(["run", *[word.replace("FILE", runnable) for word in words]]) == 0
    assert capsys.readouterr().out.splitlines()[: -1 - len(LEGEND.splitlines())] == lines


def test_each_lane_and_then_the_faults(runnable, capsys):
    assert main(["run", f"{runnable}:ratio", "[7, 1, 9]", "[2, 0, 3]"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "lane 0: (3, {'twice': 14})",
        "lane 1: ARITHMETIC",
        "lane 2: (3, {'twice': 18})",
        "lane 1 (ARITHMETIC): ZeroDivisionError: integer division or modulo by zero",
        f"  --> {Path(runnable).resolve()}:12:12",
        "      |",
        '   12 |     return a // b, {"twice": a * 2}',
        "      |            ^^^^^^",
        "1 of 3 lanes failed, 0 trips, 3 block runs, 100% of the rows of use",
        *LEGEND.splitlines(),
    ]


def test_a_run_as_json(runnable, capsys):
    assert main(["run", f"{runnable}:ratio", "--json", "[7, 1]", "[2, 0]"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["lanes"][0] == {"status": "OK", "value": [3, {"twice": 14}]}
    assert (printed["lanes"][1]["status"], printed["lanes"][1]["line"]) == ("ARITHMETIC", 12)


BROKEN = {
    "raises.py": "import pcbatch\n\ndef helper():\n    return 1 // 0\n\nhelper()\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "syntax.py": "import pcbatch\n\ndef f(:\n    pass\n",
    "imports.py": "import syntax\n",
    "bytes.py": b"# \xff\n",
    "several.py": RUNNABLE,
    "text.txt": "x = 1\n",
}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "raises.py:helper"], 2, ["PCB525", "raises.py", "line 6", "helper()", "line 4", "ZeroDivisionError"]),
        (["run", "exits.py:sys"], 2, ["PCB525", "SystemExit: 3"]),
        (["run", "syntax.py:f"], 1, ["PCB152", "syntax.py:3:7", "def f(:"]),
        (["compile", "syntax.py", "--dump-ir"], 1, ["PCB152", "syntax.py:3:7", "def f(:"]),
        (["run", "imports.py:syntax"], 2, ["PCB525", "imports.py", "line 1", "syntax.py", "SyntaxError"]),
        (["compile", "bytes.py", "--dump-ir"], 2, ["PCB572", "bytes.py cannot be read"]),
        (["compile", ".", "--dump-ir"], 2, ["PCB527: . is a folder"]),
        (["run", "text.txt:f"], 2, ["PCB527: text.txt is not a Python file"]),
        (["run", "nowhere.py:f"], 2, ["PCB527: there is no file nowhere.py"]),
        (["run", "several.py:rati", "[1]"], 2, ["PCB523", "did you mean ratio?"]),
        (["run", "several.py:plain", "[1]"], 2, ["PCB523: 'plain' in several.py is not batched; it has double, ratio"]),
        (["run", "several.py:ratio", "[1]"], 2, ["PCB510", "'b'", "(a, b)"]),
        (["run", "several.py:ratio", "[1]", "[2]", "[3]"], 2, ["PCB510", "too many positional arguments"]),
        (["run", "several.py:ratio", "[1]", "two"], 2, ["PCB521: argument 2 is not JSON"]),
        (["run", "several.py:ratio", "--quickly", "[1]", "[2]"], 2, ["unrecognized arguments: --quickly"]),
        (["run", "several.py:double", "1", "--lanes", "two"], 2, ["invalid int value: 'two'"]),
        (["compile", "several.py", "--entry", "ratoi", "--dump-ast"], 2, ["PCB523", "did you mean ratio?"]),
        (
            ["compile", "several.py", "--entry", "ratio", "--args", '{"a": 1}'],
            2,
            ["PCB521: --args must be a JSON list"],
        ),
        (["compile", "several.py", "--entry", "ratio", "--args", "[[1]]"], 2, ["PCB510"]),
        (["compile", "several.py", "--dump-ir=ssa"], 2, ["--dump-ir: invalid choice: 'ssa'"]),
        (["compile", "several.py", "--args", "[]", "-o", "several.py"], 2, ["PCB573"]),
        (["compile", "several.py:ratoi", "--dump-ast"], 2, ["PCB523", "did you mean ratio?"]),
        (["compile", "several.py:ratio", "--entry", "double", "--dump-ir"], 2, ["PCB523", "--entry double"]),
        (["compile", "nowhere.py:f", "--dump-ir"], 2, ["PCB527: there is no file nowhere.py"]),
        (["compile", "several.py", "--dump-ir"], 2, ["PCB523", "several.py:NAME", "double, ratio"]),
        (["run", "several.py:double", "--steps", "three", "1", "--lanes", "1"], 2, ["PCB521"]),
        (["run", "several.py:double", "--steps", "0", "1", "--lanes", "1"], 2, ["PCB563"]),
        (["explain", "several.py:double", "--steps", "3", "1"], 2, ["unrecognized arguments"]),
        (["help", "PCB1011"], 2, ["PCB578", "PCB101"]),
        (["help", "nothing"], 2, ["PCB578"]),
        (["translate"], 2, ["invalid choice: 'translate'"]),
        ([], 2, ["the following arguments are required: COMMAND"]),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else value,
)
def test_every_mistake_is_told(words, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in BROKEN.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(words) == code
    printed = capsys.readouterr()
    assert [text for text in said if text not in printed.err] == [], printed.err
    assert "importlib" not in printed.err
    assert printed.out == ""


def test_what_is_imported_for_a_run_leaves_no_path_behind(runnable, capsys):
    before = list(sys.path)
    main(["run", f"{runnable}:Model.shifted", "[1]"])
    assert sys.path == before
    assert "runnable" not in before


def test_a_file_named_like_a_module_of_python(tmp_path, monkeypatch, capsys):
    """It is imported beside it, not in its place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random.py").write_text(RUNNABLE)
    before = sys.modules.get("random")
    assert main(["run", "random.py:Model.shifted", "[1]"]) == 0
    assert sys.modules.get("random") is before


@pytest.mark.parametrize("order", [["FILE", "--dump-ast", "--entry", "odd"], ["--entry=odd", "--dump-ast", "FILE"]])
def test_syntax_trees(order, capsys):
    """Of the function and of what it calls, as gast has them."""
    arguments = [str(CORPUS / "parity.py") if word == "FILE" else word for word in order]
    assert main(["compile", *arguments]) == 0
    printed = capsys.readouterr().out
    assert printed.count("FunctionDef(") == 2
    assert ": odd\nFunctionDef(" in printed
    assert "ctx=Param()" in printed  # gast's way with parameters


def test_trees_then_ir_then_a_module(tmp_path, capsys):
    """One command may show several things."""
    written = tmp_path / "written.py"
    words = ["--dump-ir=stack", "--args", "[[12], [8]]", "-o", str(written), "--dump-ast"]
    assert main(["compile", *words, str(CORPUS / "gcd.py")]) == 0
    printed, said = capsys.readouterr()
    assert printed.index("FunctionDef(") < printed.index("program stack")
    assert "int32[]" in printed
    assert said == f"pcbatch: wrote {written}: gcd compiled for (a: int32[], b: int32[])\n"
    assert "_Precompiled(PROGRAM" in written.read_text()


def test_a_function_is_named_behind_its_file(tmp_path, capsys):
    """`compile` takes FILE.py:NAME as the other commands do, wherever the stage stands."""
    path = tmp_path / "runnable.py"
    path.write_text(RUNNABLE)
    shown = []
    for words in (["--entry", "ratio", "--dump-ir"], [":ratio", "--dump-ir"], ["--dump-ir", "cfg", ":ratio"]):
        arguments = [f"{path}{word}" if word.startswith(":") else word for word in words]
        assert main(["compile", *arguments, *([] if ":" in "".join(words) else [str(path)])]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0].startswith("program cfg\n\nfunction ratio(")
    assert len(set(shown)) == 1


def test_a_file_whose_name_has_a_colon(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:name").write_text(RUNNABLE)
    assert main(["compile", "odd:name", "--entry", "ratio", "--dump-ir"]) == 0
    assert capsys.readouterr().out.startswith("program cfg")


@pytest.mark.parametrize(
    ("words", "blocks"), [(["--steps", "1"], 1), (["--steps=1"], 1), (["--steps"], 3), (["--steps", "2"], 2)], ids=str
)
def test_a_count_may_stand_behind_a_space(words, blocks, runnable, capsys):
    target, *values = [f"{runnable}:ratio", "[7, 1]", "[2, 1]"]
    for arguments in ([target, *values, *words], [*words, target, *values], [target, *words, *values]):
        assert main(["run", *arguments]) == 0
        assert "(program counter)" in capsys.readouterr().out


def test_a_trace_of_so_many_trips(tmp_path, capsys):
    path = tmp_path / "turns.py"
    path.write_text(COLLATZ.replace("autobatch", "autobatch(schedule='earliest', jit=False)"))
    for words in (["--trace", "2"], ["--trace=2"]):
        assert main(["profile", f"{path}:collatz", "[3, 7]", *words]) == 0
        printed = capsys.readouterr().out
        assert "more trips" in printed
    assert main(["profile", f"{path}:collatz", "[3, 7]", "--trace"]) == 0
    assert "more trips" not in capsys.readouterr().out


COLLATZ = """
import pcbatch


@pcbatch.autobatch
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
"""


LOUD = """
import os
import sys

import pcbatch

print("printed")
sys.__stdout__.write("past print")
os.system("echo from a shell")
os.write(1, b"past Python")


@pcbatch.autobatch(backend="reference")
def double(x):
    pcbatch.debug("a lane {}", x)
    return x * 2
"""


def test_what_a_file_prints_is_no_json(tmp_path, capfd):
    path = tmp_path / "loud.py"
    path.write_text(LOUD)
    assert main(["run", f"{path}:double", "[1, 2]", "--json"]) == 0
    printed, said = capfd.readouterr()
    assert [lane["value"] for lane in json.loads(printed)["lanes"]] == [2, 4]
    for text in ("printed", "past print", "from a shell", "past Python", "a lane 1", "a lane 2"):
        assert said.count(text) == 1
    assert main(["compile", f"{path}:double", "--args", "[[1, 2]]"]) == 0
    printed, said = capfd.readouterr()
    compile(printed, "generated", "exec")
    assert "printed" in said


RECORDS = """
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import pcbatch


class Box(NamedTuple):
    low: float
    high: float = 10.0


@dataclass
class Point:
    x: float
    y: float = 1.0
    box: Box | None = None
    twice: float = field(init=False)

    def __post_init__(self):
        if self.x is None:
            raise ValueError("no x")
        self.twice = [2 * each for each in self.x]


@pcbatch.autobatch(backend="reference")
def inside(point: Point, others: list[Point], pair: tuple[Box, int]):
    return point.box.low < point.x and others[0].x > 0, point.twice + pair[0].high


@pcbatch.autobatch(backend="reference")
def plain(table, scale=2):
    return table["a"] * scale


@pcbatch.autobatch(backend="reference")
def unknown(table: Nowhere):
    return table["a"]


Number = TypeVar("Number")


@dataclass
class Pair(Generic[Number]):
    left: Number
    right: Number


@pcbatch.autobatch(backend="reference")
def summed(pair: Pair[float], table: Nowhere, several: dict[str, Box] | None = None):
    return pair.left + pair.right + table["a"] + several["b"].low
"""


def test_records_are_made_of_objects(tmp_path, capsys):
    path = tmp_path / "records.py"
    path.write_text(RECORDS)
    point = '{"x": [1.0, 2.0], "y": [1.0, 1.0], "box": {"low": [1.5, 1.5], "high": [3.0, 3.0]}}'
    other = '[{"x": [1.0, 1.0], "y": [0.0, 0.0]}]'
    pair = '[{"low": [0.0, 0.0], "high": [5.0, 6.0]}, [1, 1]]'
    assert main(["run", f"{path}:inside", point, other, pair]) == 0, capsys.readouterr()
    assert capsys.readouterr().out.splitlines()[:2] == ["lane 0: (False, 7.0)", "lane 1: (True, 10.0)"]
    for name in ("plain", "unknown"):
        assert main(["run", f"{path}:{name}", '{"a": [1, 2]}']) == 0, "an object is a dict otherwise"
    capsys.readouterr()
    pair_of_numbers, boxes = '{"left": [1, 2], "right": [3, 4]}', '{"b": {"low": [1, 1], "high": [2, 2]}}'
    assert main(["run", f"{path}:summed", pair_of_numbers, '{"a": [1, 2]}', boxes]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["lane 0: 6", "lane 1: 9"]
    for text, said in (
        ('{"z": [1.0]}', "argument 1: Point has no field 'z'; it has x, y, box"),
        ('{"x": null}', "ValueError: no x"),
        ("{}", "TypeError"),
        ('{"x": [1.0], "box": {"low": [1.0], "deep": 2}}', "argument 1.box: Box has no field 'deep'"),
    ):
        assert main(["run", f"{path}:inside", text, other, pair]) == 2
        printed = capsys.readouterr().err
        assert "PCB521" in printed
        assert said in printed
    args = f"[{point}, {other}, {pair}]"
    assert main(["compile", f"{path}:inside", "--args", args, "--dump-ir"]) == 0
    assert "function inside(point, point_1, " in capsys.readouterr().out


def test_help_on_a_code(capsys):
    for words in (["PCB112"], ["pcb112"], ["112"]):
        assert main(["help", *words]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("PCB112: ")
        assert "\n    seen.assign_add(len(squared([1, 2, 3])))\n" in printed
        assert "```" not in printed
        assert "PCB113" not in printed


def test_the_page_is_in_the_package_where_that_is_installed():
    settings = (ROOT / "pyproject.toml").read_text()
    assert '[tool.hatch.build.targets.wheel.force-include]\n"docs/errors.md" = "pcbatch/errors.md"\n' in settings


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_examples_of_help_texts_run(command, tmp_path, monkeypatch, capsys):
    assert main([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert main(["help", command]) == 0
    assert capsys.readouterr().out == printed
    monkeypatch.chdir(tmp_path)
    (tmp_path / "collatz.py").write_text(COLLATZ)
    for example in EXAMPLES[command]:
        assert f"  {example}\n" in printed
        program, *words = shlex.split(example)
        assert (program, words[0], main(words)) == ("pcbatch", command, 0)
        capsys.readouterr()


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"pcbatch {pcbatch.__version__} (Python {sys.version_info.major}.")
    assert main(["run", "--help"]) == 0
    assert "FILE.py:NAME" in capsys.readouterr().out


@pytest.mark.parametrize("there", ["tensorflow", "tensorflow-cpu", "tf-nightly", None])
def test_version_of_every_package_that_brings_tensorflow(there, monkeypatch, capsys):
    def version(name):
        if name != there:
            raise PackageNotFoundError(name)
        return "2.21.7"

    monkeypatch.setattr(installed, "version", version)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f"TensorFlow {'none' if there is None else '2.21.7'})\n")


def test_as_a_module_of_python():
    done = subprocess.run(
        [sys.executable, "-m", "pcbatch", "--version"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "pcbatch", "")


def test_a_reader_that_has_enough():
    """`pcbatch .. | head -1` ends without a traceback."""
    command = f"{sys.executable} -m pcbatch compile tests/corpus/gcd.py --dump-ast --dump-ir | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.endswith("gcd\n")
    assert done.stderr == ""


def test_a_refusal_exits_with_one(tmp_path, capsys):
    path = tmp_path / "refused.py"
    path.write_text(
        "import pcbatch\n\n@pcbatch.autobatch\ndef f(x):\n"
        "    try:\n        return x\n    except ValueError:\n        return 0\n"
    )
    assert main(["compile", str(path), "--dump-ir"]) == 1
    said = capsys.readouterr().err
    assert "PCB101" in said
    assert f"{path}:5:5" in said
