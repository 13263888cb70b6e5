"""The command line: static answers, typed ones, modules written ahead of time, runs, and its exit codes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pcbatch.cli import main
from pcbatch.ir.printer import print_program

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
NAMES = sorted(path.stem for path in CORPUS.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", NAMES)
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
        "import sys; from pcbatch.cli import main; code = main(sys.argv[1:]);"
        "assert 'tensorflow' not in sys.modules and 'numpy' not in sys.modules; sys.exit(code)"
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
        (["compile", str(CORPUS / "parity.py"), "--dump-ir"], "choose one with --entry"),
        (["compile", str(CORPUS / "gcd.py")], "give example arguments with --args"),
        (["compile", str(CORPUS / "gcd.py"), "--args", "[1,"], "--args is not JSON"),
        (["run", "gcd.py"], "not of the form FILE.py:NAME"),
        (["run", f"{CORPUS / 'gcd.py'}:gcd", "[1, 2]", "[1, 2, 3]"], "disagree on the number of lanes"),
    ],
)
def test_bad_usage(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


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
