"""The interpreter's answers against plain Python, in both dialects: values, faults, limits, counts, depth."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcbatch.errors import Span
from tests.ir import programs
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import LaneFaultError, interpret
from tests.ir.parser import parse_program

PAIRS = [
    (programs.FIBONACCI_CFG, programs.FIBONACCI_STACK),
    (programs.PARITY_CFG, programs.PARITY_STACK),
    (programs.COUNT_CFG, programs.COUNT_STACK),
]
parsed = cache(parse_program)


def run(text, *arguments, evaluate=None, **limits):
    return interpret(parsed(text), arguments, evaluate or python_evaluate({}), copy_store, **limits)


def fibonacci(n):
    return 1 if n <= 1 else fibonacci(n - 2) + fibonacci(n - 1)


@pytest.mark.parametrize("text", [programs.FIBONACCI_CFG, programs.FIBONACCI_STACK], ids=["cfg", "stack"])
def test_fibonacci(text):
    assert [run(text, n).value for n in range(12)] == [fibonacci(n) for n in range(12)]


@given(a=st.integers(0, 10**6), b=st.integers(0, 10**6))
def test_gcd(a, b):
    outcome = run(programs.GCD, a, b)
    assert (outcome.status, outcome.value) == ("OK", math.gcd(a, b))
    assert outcome.steps == outcome.executions["b1"] == outcome.executions["b0"] - 1


@pytest.mark.parametrize("text", [programs.PARITY_CFG, programs.PARITY_STACK], ids=["cfg", "stack"])
def test_mutual_recursion(text):
    assert [run(text, n).value for n in range(6)] == [True, False, True, False, True, False]


def test_stores_leave_the_callers_array_alone():
    array = [9, 9, 9]
    assert run(programs.SQUARES, array, 3).value == [0, 1, 4]
    assert array == [9, 9, 9]
    vector = np.full(4, 9)
    assert run(programs.SQUARES, vector, 3).value.tolist() == [0, 1, 4, 9]
    assert vector.tolist() == [9, 9, 9, 9]


def test_stores_into_several_dimensions():
    rows = [[1, 2], [3, 4]]
    assert copy_store(rows, (1, -2), 7) == [[1, 2], [7, 4]]
    assert copy_store(np.array(rows), (1, -2), 7).tolist() == [[1, 2], [7, 4]]
    assert rows == [[1, 2], [3, 4]]
    with pytest.raises(LaneFaultError, match="out of range"):
        copy_store(rows, (1, 2), 7)


def test_several_results_come_as_a_tuple_and_none_as_an_empty_one():
    assert run("program cfg\n\nfunction f(x) -> y, z\nb0:\n  y, z = (x, x + 1)\n  return\n", 1).value == (1, 2)
    assert run("program cfg\n\nfunction f(x)\nb0:\n  return\n", 1).value == ()


def test_free_names_and_index():
    text = "program cfg\n\nfunction f(x) -> y\nb0:\n  y = [base + __index__(n) for n in x]\n  return\n"
    evaluate = python_evaluate({"f": {"base": 10}})
    assert run(text, [np.int32(1), np.int32(2)], evaluate=evaluate).value == [11, 12]


def test_the_number_of_arguments_is_checked():
    with pytest.raises(TypeError, match="gcd takes 2 arguments, not 1"):
        run(programs.GCD, 1)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((6, 3), "OK", ""),
        ((-1, 3), "ASSERTION", "AssertionError: -1 is not above {0}"),
        ((1, 7), "RAISED", "ValueError: 1 of 7"),
        ((1, 0), "ARITHMETIC", "ZeroDivisionError: "),
    ],
)
def test_faults(arguments, status, message):
    outcome = run(programs.CHECKED, *arguments)
    assert outcome.status == status
    assert outcome.message.startswith(message)
    assert outcome.value == (2 if status == "OK" else None)


def test_an_index_out_of_range_is_a_fault():
    stored = run(programs.SQUARES, [0, 0], 3)
    assert (stored.status, stored.value, stored.steps) == ("INDEX", None, 2)
    read = run("program cfg\n\nfunction f(a) -> x\nb0:\n  x = a[5]\n  return\n", [1])
    assert (read.status, read.message) == ("INDEX", "IndexError: list index out of range")


def with_spans(program):
    """Every op and terminator on a line of its own."""

    def numbered(block, start):
        nodes = [
            replace(node, span=Span("file.py", start + offset, 0, start + offset, 1))
            for offset, node in enumerate((*block.ops, block.terminator))
        ]
        return replace(block, ops=tuple(nodes[:-1]), terminator=nodes[-1])

    functions = (
        replace(f, blocks=tuple(numbered(block, 10 * int(block.label[1:])) for block in f.blocks))
        for f in program.functions
    )
    return replace(program, functions=tuple(functions))


@pytest.mark.parametrize(
    ("text", "arguments", "limits", "line"),
    [
        (programs.CHECKED, (-1, 3), {}, 10),
        (programs.CHECKED, (1, 0), {}, 40),
        (programs.SQUARES, ([], 1), {}, 21),
        (programs.SQUARES, ([0, 0], 2), {"max_steps": 1}, 23),
        (programs.COUNT_CFG, (9,), {"max_depth": 3}, 21),
        (programs.COUNT_STACK, (9,), {"max_depth": 3}, 21),
        (programs.COUNT_CFG, (9,), {"max_steps": 3}, 21),
        (programs.COUNT_STACK, (9,), {"max_steps": 3}, 21),
    ],
)
def test_a_fault_says_where_it_was(text, arguments, limits, line):
    outcome = interpret(with_spans(parsed(text)), arguments, python_evaluate({}), copy_store, **limits)
    assert outcome.span is not None
    assert outcome.span.line == line


@pytest.mark.parametrize("text", [programs.COUNT_CFG, programs.COUNT_STACK], ids=["cfg", "stack"])
def test_max_depth_counts_live_calls(text):
    assert run(text, 5, max_depth=5).value == 5
    outcome = run(text, 6, max_depth=5)
    assert (outcome.status, outcome.message) == ("MAX_DEPTH", "more than 5 live calls")
    assert outcome.executions["b2"] == 6
    assert run(text, 0, max_depth=0).value == 0


@pytest.mark.parametrize("text", [programs.PARITY_CFG, programs.PARITY_STACK], ids=["cfg", "stack"])
def test_tail_calls_cost_steps_but_no_depth(text):
    outcome = run(text, 50_000, max_depth=0)
    assert (outcome.value, outcome.steps) == (True, 50_000)
    assert run(text, 50_000, max_steps=49_999).status == "MAX_STEPS"


def test_a_call_that_is_not_last_is_no_tail_call():
    text = programs.PARITY_CFG.replace("  result = call odd(t1)\n", "  x = call odd(t1)\n  result = x\n")
    # even(3) waits for odd(2), which becomes even(1), which waits for odd(0).
    assert run(text, 3, max_depth=1).status == "MAX_DEPTH"
    assert run(text, 3, max_depth=2).value is False


def test_max_steps_counts_loop_turns():
    array = [0] * 4
    assert run(programs.SQUARES, array, 4, max_steps=4).value == [0, 1, 4, 9]
    outcome = run(programs.SQUARES, array, 4, max_steps=3)
    assert (outcome.status, outcome.message) == ("MAX_STEPS", "more than 3 loop turns and calls")
    assert outcome.steps == 3


@pytest.mark.parametrize("text", [programs.COUNT_CFG, programs.COUNT_STACK], ids=["cfg", "stack"])
def test_deep_recursion(text):
    outcome = run(text, 50_000)
    assert (outcome.value, outcome.steps) == (50_000, 50_000)
    assert outcome.executions["b2"] == 50_000
    assert outcome.executions["b1"] == 1


def test_executions_are_counted_per_block():
    # fibonacci([3, 7, 4, 5]) adds 20 times in the deepest schedule; one lane adds as often as it does not stop
    assert [run(programs.FIBONACCI_CFG, n).executions["b2"] for n in (3, 7, 4, 5)] == [2, 20, 4, 7]
    outcome = run(programs.FIBONACCI_STACK, 7)
    assert [outcome.executions[f"b{i}"] for i in range(5)] == [41, 21, 20, 20, 20]


@pytest.mark.parametrize("pair", PAIRS, ids=["fibonacci", "parity", "count"])
@given(n=st.integers(0, 9), depth=st.none() | st.integers(0, 10), steps=st.none() | st.integers(0, 60))
def test_both_dialects_agree(pair, n, depth, steps):
    outcomes = [run(text, n, max_depth=depth, max_steps=steps) for text in pair]
    cfg, stack = [(each.value, each.status, each.message, each.steps) for each in outcomes]
    assert cfg == stack


def test_temporaries_do_not_outlive_their_block():
    text = programs.FIBONACCI_STACK.replace("update result = 1", "update result = t0")
    with pytest.raises(IndexError):
        run(text, 1)
