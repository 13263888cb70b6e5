"""`pcbatch.debug`: each lane that comes to it says its values, in every mode; no other lane does."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.commands.cli import main
from pcbatch.ir.machine_printer import print_machine
from tests.ir.machine_parser import parse_machine


@pcbatch.autobatch
def walked(n, a):
    i = 0
    while a[i] > 0:
        pcbatch.debug("i = {}, a = {:.2f}", i, a[i])
        i = i + 1
    assert n > 0
    pcbatch.debug("alive", n == 2, walked(n - 1, -a) if n == 3 else 0, a)
    return n // (n - 1)


N = np.array([5, 0, 1, 2, 3], np.int32)
A = np.array([[1, 2, 3], [1, -1, 0], [-1, 0, 0], [-1, 0, 0], [-1, 0, 0]], np.float32)
STATUS = "[INDEX ASSERTION ARITHMETIC OK OK]"
SAID = {
    0: ["i = 0, a = 1.00", "i = 1, a = 2.00", "i = 2, a = 3.00"],
    1: ["i = 0, a = 1.00"],
    2: ["alive False 0 [-1.  0.  0.]"],
    3: ["alive True 0 [-1.  0.  0.]"],
    4: ["i = 0, a = 1.00", "alive True 0 [ 1. -0. -0.]", "alive False 2 [-1.  0.  0.]"],
}
MODES = [
    {},
    {"form": "lockstep"},
    {"backend": "reference"},
    pytest.param({"strategy": "local"}, marks=pytest.mark.slow),
    {"strategy": "agenda"},
    pytest.param({"form": "native"}, marks=pytest.mark.slow),
    pytest.param({"strategy": "hybrid"}, marks=pytest.mark.slow),
    pytest.param({"schedule": "switch"}, marks=pytest.mark.slow),
    pytest.param({"schedule": "earliest"}, marks=pytest.mark.slow),
    pytest.param({"jit": False}, marks=pytest.mark.slow),
    pytest.param({"deterministic": True}, marks=pytest.mark.slow),
    pytest.param({"progress": True}, marks=pytest.mark.slow),
]


def said(text):
    """What each lane has said, by lane, and in which lines of the source."""
    found: dict[int, list[str]] = {}
    lines = set()
    for line in text.splitlines():
        lane, place, *rest = line.split(": ")
        number, _, where = lane.partition(", ")
        found.setdefault(int(number.removeprefix("lane ")), []).append(": ".join([place, *rest]))
        lines.add(int(where.rpartition(":")[2]))
    return found, lines


@pytest.mark.parametrize("options", MODES, ids=str)
def test_each_lane_says_what_it_comes_to(options, capsys):
    """Faults of the next block and of a later one, an assertion, a call among the values; twice, the same."""
    function = walked.options(**options)
    for _ in range(2):
        run = function.run(N, A)
        assert str(run.status) == STATUS
        found, lines = said(capsys.readouterr().out)
        assert found == SAID
        assert len(lines) == 2


def test_one_example_says_it_at_once(capsys):
    walked.single(3, tf.constant(A[4]))
    assert capsys.readouterr().out.splitlines() == SAID[4]


@pcbatch.autobatch(jit=False)
def kinds(x, d, b, c, v, m, h, u):
    pcbatch.debug("{} {} {} {}", x, d, b, c)
    pcbatch.debug("{}", v)
    pcbatch.debug("m", m)
    pcbatch.debug("{} {} {:.1f} {}", h, u, 2, 0.1)
    pcbatch.debug("{{}} of {:d}", d)
    return x


def test_values_of_every_kind(capsys):
    kinds(
        np.array([-1], np.int8),
        np.array([np.nan]),
        np.array([True]),
        np.array([1 + 2j], np.complex64),
        np.arange(100, dtype=np.float32)[None],
        np.arange(4).reshape(1, 2, 2) - 2**40,
        tf.constant([1.5], tf.bfloat16),
        np.array([2**63], np.uint64),
    )
    found = "\n".join(line.partition(": ")[2] or line for line in capsys.readouterr().out.splitlines())
    first, second, *third, fourth, fifth = found.splitlines()
    assert first == "-1 nan True (1+2j)"
    assert second.startswith("[0.0 1.0 2.0 ")
    assert second.endswith(" ..] of shape [100]")
    assert " ".join(third).split() == [
        "m",
        "[[-1099511627776",
        "-1099511627775]",
        "[-1099511627774",
        "-1099511627773]]",
    ]
    assert fourth == "1.5 9223372036854775808 2.0 0.1"
    assert fifth == "{{}} of {:d} nan"  # a format that does not fit the value: the value follows


@pcbatch.autobatch(jit=False)
def counted(n):
    for i in range(n):
        pcbatch.debug("i", i)
    return n


def test_the_first_and_the_last_of_many(capsys):
    counted([3, 70])
    lines = capsys.readouterr().out.splitlines()
    numbers = [int(line.split()[-1]) for line in lines if "not kept" not in line]
    assert numbers == [0, 1, 2, *range(32), *range(38, 70)]
    assert lines[35] == "lane 1: .. 6 more, which were not kept .."


def test_nothing_is_said_where_nothing_runs(capsys):
    """In a graph that is made, by a check, and of no lanes."""
    assert int(tf.function(lambda n: counted(n))(tf.constant([2]))[0]) == 2
    counted.check([2])
    counted(np.zeros([0], np.int32))
    assert capsys.readouterr().out == ""


def test_a_value_that_has_no_words_is_refused():
    @pcbatch.autobatch(jit=False)
    def named(x):
        pcbatch.debug("x", {"a": x})
        return x

    with pytest.raises(pcbatch.CompileError, match=r"PCB401: .*pcbatch.debug shows numbers and arrays, no dict"):
        named([1])


def test_programs_without_it_have_no_record():
    """And the record of one that has it is printed and read back."""
    plain = pcbatch.autobatch(counted_plainly)
    assert "debug_record" not in plain.ir("machine", [1])
    text = counted.ir("machine", [1])
    assert print_machine(parse_machine(text)) == text
    assert "debug_record" in text


def counted_plainly(n):
    for _i in range(n):
        pass
    return n


DEBUG_RECORD = debug_record = 7


@pcbatch.autobatch(jit=False)
def clashing(n):
    pcbatch.debug("n", n)
    debug_record_ = n * debug_record
    pcbatch.debug("then", debug_record_)
    return debug_record_


def test_the_users_own_names_stay_theirs(capsys):
    np.testing.assert_array_equal(clashing([2, 3]), [14, 21])
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "n 2",
        "then 14",
        "n 3",
        "then 21",
    ]


MODULE = """
import pcbatch

@pcbatch.autobatch(jit=False)
def f(x):
    pcbatch.debug("x = {}", x)
    return x + 1
"""


def test_modules_that_are_written_say_it_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "source_of_debug.py").write_text(MODULE)
    assert main(["compile", "source_of_debug.py", "--args", "[[1]]", "-o", "written_debug.py"]) == 0
    capsys.readouterr()
    assert main(["run", "--json", "source_of_debug.py:f", "[4]"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["lanes"][0]["value"], err.rpartition(": ")[2]) == (5, "x = 4\n")
    import written_debug

    np.testing.assert_array_equal(written_debug.f([4, 5]), [5, 6])
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["x = 4", "x = 5"]


@pcbatch.autobatch(max_steps=2)
def endless(n):
    while n > 0:
        n = n + 1
        pcbatch.debug("n", n)
    return n


@pytest.mark.parametrize("options", [{"form": "lockstep", "jit": False}, {"backend": "reference"}, {}], ids=str)
def test_the_step_that_is_one_too_many_comes_after_it(options, capsys):
    """The block ends at the entry: what fails right behind it does not undo it."""
    assert str(endless.options(**options).run([1, 0]).status) == "[MAX_STEPS OK]"
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == ["n 2", "n 3", "n 4"]
