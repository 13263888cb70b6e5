"""The interpreter of the machine dialect against plain Python: values, faults, limits, predicates, dead values."""

import math
from collections import deque
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcbatch.errors import Span
from pcbatch.ir import machine as table
from pcbatch.ir import program as ir
from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.machine_verifier import verify_machine
from tests.ir import machine_programs, programs
from tests.ir.evaluation import copy_store, python_evaluate, zero
from tests.ir.inputs import with_inputs_of_pieces
from tests.ir.interpreter import interpret
from tests.ir.machine_interpreter import BrokenProgramError, interpret_machine
from tests.ir.machine_parser import parse_machine
from tests.ir.ops import op_of
from tests.ir.parser import parse_program


@cache
def parsed(text):
    program = parse_machine(text)
    verify_machine(program)
    return program


def run(text, *arguments, namespaces=None, **options):
    return interpret_machine(parsed(text), arguments, python_evaluate(namespaces or {}), copy_store, **options)


def fibonacci(n):
    return 1 if n <= 1 else fibonacci(n - 2) + fibonacci(n - 1)


def test_fibonacci():
    assert [run(machine_programs.FIBONACCI, n).value for n in range(12)] == [fibonacci(n) for n in range(12)]


@given(n=st.integers(0, 9), depth=st.none() | st.integers(0, 10), steps=st.none() | st.integers(0, 60))
def test_the_stack_program_does_the_same(n, depth, steps):
    stack = interpret(
        parse_program(programs.FIBONACCI_STACK), [n], python_evaluate({}), copy_store, max_depth=depth, max_steps=steps
    )
    machine = run(machine_programs.FIBONACCI, n, max_depth=depth, max_steps=steps)
    assert (machine.value, machine.status, machine.steps) == (stack.value, stack.status, stack.steps)
    assert machine.executions == stack.executions


def test_a_call_may_go_where_its_callee_would_branch():
    asked = machine_programs.FIBONACCI.replace("    n = n - 2\n", "    n = n - 2\n    t0 = n <= 1\n")
    asked = asked.replace("piece (n) -> n:", "piece (n) -> n, t0:").replace(
        "    n = n - 1\n", "    n = n - 1\n    t0 = n <= 1\n"
    )
    asked = asked.replace("-> left, n:", "-> left, n, t0:").replace("pushjump b0,", "pushjump branch t0 b1 b2,")
    outcomes = [run(asked, n) for n in range(12)]
    assert [outcome.value for outcome in outcomes] == [fibonacci(n) for n in range(12)]
    assert {outcome.executions["b0"] for outcome in outcomes} == {1}


@given(a=st.integers(0, 10**6), b=st.integers(0, 10**6))
def test_gcd(a, b):
    outcome = run(machine_programs.GCD, a, b)
    assert (outcome.status, outcome.value) == ("OK", math.gcd(a, b))
    assert outcome.steps == outcome.executions["b1"]
    assert outcome.executions["b0"] == 1  # the jump back asks the loop's question itself


def test_stores_leave_the_callers_array_alone():
    array = [9, 9, 9, 9]
    assert run(machine_programs.SQUARES, array, 3).value == [0, 1, 4, 9]
    assert array == [9, 9, 9, 9]
    vector = np.full(4, 9)
    assert run(machine_programs.SQUARES, vector, 3).value.tolist() == [0, 1, 4, 9]
    assert vector.tolist() == [9, 9, 9, 9]


@pytest.mark.parametrize(
    ("text", "arguments", "limits", "status", "message"),
    [
        (machine_programs.CHECKED, (6, 3), {}, "OK", ""),
        (machine_programs.CHECKED, (-1, 3), {}, "ASSERTION", "AssertionError: -1 is not above {0}"),
        (machine_programs.CHECKED, (1, 7), {}, "RAISED", "ValueError: 101 of 7"),  # the tops after the block
        (machine_programs.CHECKED, (1, 0), {}, "ARITHMETIC", "ZeroDivisionError: "),
        (machine_programs.SQUARES, ([0, 0], 3), {}, "INDEX", "IndexError: index out of range"),
        (machine_programs.SQUARES, ([0] * 4, 4), {"max_steps": 3}, "MAX_STEPS", "more than max_steps loop turns"),
        (machine_programs.SQUARES, ([0] * 4, 4), {"max_steps": 4}, "OK", ""),
        (machine_programs.GCD, (2, 1), {"max_steps": 0}, "MAX_STEPS", "more than max_steps loop turns"),
        (machine_programs.FIBONACCI, (5,), {"max_depth": 3}, "MAX_DEPTH", "RecursionError: more than max_depth"),
        (machine_programs.FIBONACCI, (4,), {"max_depth": 3}, "OK", ""),
        (machine_programs.FIBONACCI, (5,), {"max_depth": 1, "max_steps": 1}, "MAX_DEPTH", "RecursionError"),
        (machine_programs.FIBONACCI, (5,), {"max_steps": 1}, "MAX_STEPS", "more than max_steps loop turns and calls"),
    ],
)
def test_faults(text, arguments, limits, status, message):
    outcome = run(text, *arguments, **limits)
    assert outcome.status == status
    assert outcome.message.startswith(message)
    assert (outcome.value is None) == (status != "OK")


def test_a_fault_says_where_it_was():
    program = parsed(machine_programs.SQUARES)
    spans = [Span("file.py", line, 0, line, 1) for line in (3, 4)]
    faults = tuple(replace(site, span=span) for site, span in zip(program.faults, spans, strict=True))
    program = replace(program, faults=faults)
    for array, limit, span in (([], None, spans[0]), ([0, 0], 1, spans[1])):
        outcome = interpret_machine(program, (array, 2), python_evaluate({}), copy_store, max_steps=limit)
        assert outcome.span == span
    statement = parsed(machine_programs.GCD).blocks[1].body[0].statements[0]
    placed = replace(statement, op=replace(statement.op, span=spans[0]))
    body = (table.Piece(None, ("a", "b"), ("a", "b"), (), (0,), statements=(placed,)),)
    bare = replace(parsed(machine_programs.GCD), blocks=(table.Block("b0", body, table.Return()),))
    assert interpret_machine(bare, (1, 0), python_evaluate({}), copy_store).span == spans[0]


def converted(n, array):
    """What CONVERTED was made of."""
    total, t1 = -1, 0
    if n > 0:
        total = 100 // n
        t1 = n - 1
        array = [*array[:t1], total, *array[t1 + 1 :]]
    return total, array, t1 + 1


@pytest.mark.parametrize("n", [3, 1, 0, -7])
def test_predicates(n):
    # With n = 0 the division would fail, with n = -7 the store; t1 never had a value there and counts as zero.
    outcome = run(machine_programs.CONVERTED, n, [7, 8, 9])
    assert (outcome.status, outcome.value) == ("OK", converted(n, [7, 8, 9]))


NAMES = ("a", "b", "p", "q", "t", "u")
"""Two numbers and two conditions of the state, and two temporaries."""
assignments = st.tuples(
    st.none() | st.sampled_from(["p", "q"]),
    st.sampled_from(
        ["a = b + {}", "b = a - {}", "a = a * b", "p = a > {}", "q = b > {}", "t = a + {}", "u = b", "p = not p"]
    ),
    st.integers(-3, 3),
)


@given(items=st.lists(assignments, max_size=8), a=st.integers(-3, 3), b=st.integers(-3, 3))
def test_predicates_are_ifs(items, a, b):
    """Any statements under any predicates, which change on the way; what is read in the end has a value."""
    values = {"a": a, "b": b, "p": a > 0, "q": b > 0, "t": 0, "u": 0}
    lines = ["p = a > 0", "q = b > 0", "t = 0", "u = 0"]
    pieces = [machine_piece(line, None) for line in lines]
    for predicate, text, number in items:
        line = text.format(number)
        pieces.append(machine_piece(line, predicate))
        if predicate is None or values[predicate]:
            exec(line, {}, values)
    types = {name: parse_type("bool[]" if name in "pq" else "int32[]") for name in NAMES}
    block = table.Block("b0", (*pieces, machine_piece("a = a + t * u", None)), table.Return())
    storage = dict.fromkeys("abpq", "register")
    program = with_inputs_of_pieces(table.Program("f", ("a", "b"), ("a", "b", "p", "q"), types, storage, (block,)))
    verify_machine(program)
    outcome = interpret_machine(program, (a, b), python_evaluate({}), copy_store)
    assert outcome.value == (values["a"] + values["t"] * values["u"], values["b"], values["p"], values["q"])


def machine_piece(line, predicate):
    """A piece of one statement, its inputs left out."""
    op = op_of(line, ())
    reads = tuple(name for name in ir.free(op) if name in NAMES)
    return table.Piece(None, reads, op.outputs, statements=(table.Statement(op),), predicate=predicate)


def test_what_a_predicate_lets_through_may_fail():
    outcome = run(machine_programs.CONVERTED, 4, [7, 8, 9])
    assert (outcome.status, outcome.message) == ("INDEX", "IndexError: index out of range")


def test_zeros_of_every_type():
    assert zero(parse_type("weak int32[]")) == 0
    assert zero(parse_type("bool[]")) is False
    found = zero(parse_type("(float32[2], {a: complex64[], b: [bfloat16[]]}, None)"))
    assert found[0].tolist() == [0.0, 0.0]
    assert found[1:] == ({"a": 0j, "b": [0.0]}, None)


class Recorder(deque):
    """Context managers that note what happens to them."""

    def record(self, x):
        self.append(("made", x))
        return self

    def __enter__(self):
        self.append("entered")
        return self

    def __exit__(self, kind, *_):
        self.append(f"left with {kind.__name__ if kind else None}")


def test_everything():
    tape = Recorder()
    namespaces = {"everything": {}, "Model.step": {"tape": tape}}
    x, w = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 0.0])
    outcome = run(machine_programs.EVERYTHING, x, shared=(w, 4.0), namespaces=namespaces)
    assert outcome.value == (x * 2 / 4).sum() + (x * 2).sum()  # the push saves t0, and the pop gives it to kept
    assert outcome.executions == {"b0": 1, "b1": 1, "b2": 1, "b3": 1}
    assert [each for each in tape if isinstance(each, str)] == ["entered", "left with None"]


def test_contexts_are_left_when_the_lane_fails():
    tape = Recorder()
    text = machine_programs.EVERYTHING.replace("x = t0 / scale", "x = t0[scale]")
    outcome = run(text, np.ones(3), shared=(np.ones(3), 4), namespaces={"Model.step": {"tape": tape}})
    assert outcome.status == "INDEX"
    assert tape[-1] == "left with LaneFaultError"


@pytest.mark.parametrize("text", [machine_programs.SQUARES, machine_programs.FIBONACCI], ids=["loop", "calls"])
def test_waiting_for_others_and_order_change_nothing(text):
    program = parsed(text)
    arguments = ([0] * 4, 4) if text == machine_programs.SQUARES else (6,)
    blocks = tuple(replace(block, sync=True, cost=3.0, chunks=table.Chunks(2)) for block in program.blocks)
    other = replace(program, blocks=blocks, order=tuple(reversed(range(len(blocks)))))
    outcomes = [interpret_machine(each, arguments, python_evaluate({}), copy_store) for each in (program, other)]
    assert outcomes[0] == outcomes[1]


def test_the_number_of_operands_is_checked():
    with pytest.raises(TypeError, match="gcd takes 2 arguments, not 1"):
        run(machine_programs.GCD, 1)
    with pytest.raises(TypeError, match="everything takes 2 shared operands, not 0"):
        run(machine_programs.EVERYTHING, 1)


# Programs that obey the rules and yet do what none may do: (program, passage, instead, arguments, complaint).
BROKEN = {
    "dead value read in a later block": (
        machine_programs.SQUARES,
        "    i = i + 1\n  jump",
        "    i = i + 1\n  dead i\n  jump",
        ([0] * 4, 4),
        "squares, b1 reads i, which is not kept, being dead",
    ),
    "dead value as a result": (
        machine_programs.FIBONACCI,
        "    result = 1\n",
        "    result = 1\n  dead result\n",
        (1,),
        "reads result, which is not kept",
    ),
    "dead value in a message": (
        machine_programs.CHECKED,
        "    x = x + 100\n",
        "    x = x + 100\n  dead x\n",
        (1, 7),
        "b3 reads x, which is not kept",
    ),
    "value that never was": (
        machine_programs.FIBONACCI,
        "branch t0 b1 b2",
        "branch t0 b4 b2",
        (1,),
        "b4 pops left, whose stack is empty",
    ),
    "register that never was": (
        machine_programs.CHECKED,
        "branch t0 b2 b1",
        "jump b5",
        (1, 7),
        "b5 reads result, which never had a value",
    ),
    "no fault site for steps": (
        machine_programs.SQUARES,
        "turn  steps 1",
        "turn",
        ([0] * 4, 4),
        "b2 has no fault site for one step too many",
    ),
}
APPENDED = {"register that never was": "b5:\n  piece (result) -> result:\n    result = result + 1\n  return\n"}


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_program_may_do_is_noticed(name):
    text, passage, instead, arguments, complaint = BROKEN[name]
    assert passage in text
    with pytest.raises(BrokenProgramError, match=complaint):
        run(text.replace(passage, instead, 1) + APPENDED.get(name, ""), *arguments, max_steps=2)


def test_a_temporary_of_another_block_is_noticed_though_the_rules_forbid_it():
    program = parse_machine(machine_programs.SQUARES.replace("store array[i] = t1", "store array[i] = t0"))
    with pytest.raises(BrokenProgramError, match="b2 reads t0, which it did not write"):
        interpret_machine(program, ([0], 1), python_evaluate({}), copy_store)


def test_garbage_may_be_saved_but_not_read():
    # m never had a value where it is pushed; what comes back from its stack is that no value.
    text = """\
program machine saved(n) -> n
  var n: int32[]  cached stack
  var m: int32[]  cached stack
b0:
  piece () -> m:
    m = 1
  push m
  jump b1
b1:
  pop m
  {}return
"""
    assert run(text.format(""), 5).value == 5
    with pytest.raises(BrokenProgramError, match="b1 reads m, which never had a value"):
        run(text.format("piece (m) -> n:\n    n = m\n  "), 5)


def test_stacks_of_a_shared_pointer_have_equal_heights():
    text = machine_programs.EVERYTHING
    program = replace(parsed(text), pointers={"pair": "x"})  # against the rules: nothing pushes it
    with pytest.raises(BrokenProgramError, match="b1 leaves stacks of pair and x, which share a pointer"):
        interpret_machine(
            program,
            (np.ones(3),),
            python_evaluate({"Model.step": {"tape": Recorder()}}),
            copy_store,
            shared=(np.ones(3), 1.0),
        )


def test_pushes_save_what_they_name_and_pops_bring_it_back():
    text = """\
program machine saved(n) -> n, seen
  var n: int32[]  stack
  var seen: int32[]  register
  var t0: int32[]  temporary
b0:
  piece (n) -> n, t0:
    t0 = n + 1
    n = n * 100
  push n
  push n  saved t0
  push n  saved n
  jump b1
b1:
  pop n
  piece (n) -> seen:
    seen = n
  jump b2
b2:
  pop n
  piece (n, seen) -> seen:
    seen = seen + n
  jump b3
b3:
  pop n
  return
"""
    assert run(text, 5).value == (5, 500 + 6)
    twice = text.replace("  jump b2\nb2:\n  pop n\n", "  jump b2\nb2:\n  pop n, n\n").replace("b3:\n  pop n\n", "b3:\n")
    assert run(twice, 5).value == (5, 500 + 5)


def test_what_is_local_to_a_piece_does_not_leave_it():
    text = machine_programs.GCD.replace("    t0 = b != 0\n  jump", "    t1 = b\n    t0 = t1 != 0\n  jump")
    assert run(text, 12, 18).value == 6


def test_generated_code_has_no_meaning_here():
    piece = table.Piece(lambda a: (a,), ("a",), ("result",))
    program = replace(parsed(machine_programs.GCD), blocks=(table.Block("b0", (piece,), table.Return()),))
    with pytest.raises(BrokenProgramError, match="has generated code for"):
        interpret_machine(program, (1, 2), python_evaluate({}), copy_store)


def test_deep_recursion():
    text = machine_programs.FIBONACCI.replace("n = n - 1", "n = n - n").replace("n = n - 2", "n = n - 1")
    assert run(text, 50_000).value == 50_000
