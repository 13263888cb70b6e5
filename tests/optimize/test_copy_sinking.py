"""Where copies sink to and where they stay, on programs of the stack dialect; no answer changes."""

from __future__ import annotations

import re

import pytest

from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program, writes
from pcbatch.ir.verifier import verify
from pcbatch.optimize.stack.copy_sinking import sink_copies
from pcbatch.optimize.stack.temporaries import find_temporaries
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret
from tests.ir.parser import parse_program

HEAD = """program stack

function f(n, x) -> y
  var n: int32[]  register
  var x: ((int32[], int32[]), int32[])  register
  var y: int32[]  register
  var p: (int32[], int32[])  register
  var a: int32[]  register
  var b: int32[]  register
  var c: int32[]  register
  var t: bool[]  register
"""

TO_WHERE_IT_IS_READ = """b0:
  update (a, b), c = x
  update t = b < n
  branch t b1 b2
b1:
  update y = a + c
  return
b2:
  update t = c < n
  branch t b3 b4
b3:
  update y = a + b
  return
b4:
  update y = n
  return
"""

STEP_BY_STEP = """b0:
  update p, c = x
  update a, b = p
  update t = b < n
  branch t b1 b2
b1:
  update y = a
  return
b2:
  update y = c
  return
"""

PUT_TOGETHER_AGAIN = """b0:
  update p, c = x
  update a, b = p
  update t = a < n
  branch t b1 b2
b1:
  update x = ((a, b), c)
  jump b2
b2:
  update y = x[1]
  return
"""

TURNED_ROUND = """b0:
  update p, c = x
  update a, b = p
  update t = a < n
  branch t b1 b2
b1:
  update x = ((b, a), c)
  jump b2
b2:
  update y = x[0][1]
  return
"""

CHANGED_AND_PUT_TOGETHER = """b0:
  update p, c = x
  update a, b = p
  update a = a + n
  update p = (a, b)
  update y = p[0]
  return
"""

ARMS_MEET = """b0:
  update (a, b), c = x
  update t = b < n
  branch t b1 b2
b1:
  update c = a + c
  jump b2
b2:
  update y = c + n
  return
"""

BOTH_ARMS_STORE = """b0:
  update (a, b), c = x
  update t = b < n
  branch t b1 b2
b1:
  update n = n + 1
  jump b3
b2:
  update n = n + 2
  jump b3
b3:
  update y = a + n
  return
"""

SOURCE_CHANGES = """b0:
  update p, c = x
  update x = ((c, n), 7)
  update t = c < n
  branch t b1 b2
b1:
  update y = p[1]
  return
b2:
  update y = x[1]
  return
"""

IN_A_LOOP = """b0:
  jump b1
b1:
  update a = x[1]
  update t = n < 0
  branch t b2 b3
b2:
  update y = a
  return
b3:
  update c = n
  update n = c - 1
  update x = ((n, n), c)
  jump b1, turn
"""

COMPUTED = """b0:
  update p = (n, n + 1)
  update a, b = p
  update t = a < n
  branch t b1 b2
b1:
  update y = a
  return
b2:
  update y = b
  return
"""

BEHIND_A_POP = """b0:
  update a = x[1]
  push n = a + 1
  jump b1
b1:
  pop n
  update y = a + n
  return
"""

IN_TWO_MESSAGES = """b0:
  update p, c = x
  update t = c < n
  branch t b1 b2
b1:
  fault raise "ValueError: {}" p
b2:
  fault raise "TypeError: {}" p
"""

IN_A_MESSAGE = """b0:
  update p, c = x
  update t = c < n
  branch t b1 b2
b1:
  fault raise "ValueError: {}" p
b2:
  update y = c
  return
"""

STAYS_WHERE = {
    # name: (program, after the pass the stored variables that each block gives a value)
    "to where it is read": (TO_WHERE_IT_IS_READ, {"b1": "y", "b3": "y", "b4": "y"}),
    "step by step": (STEP_BY_STEP, {"b1": "y", "b2": "y"}),
    "put together again": (PUT_TOGETHER_AGAIN, {"b2": "y"}),
    "turned round": (TURNED_ROUND, {"b1": "x", "b2": "y"}),
    "changed and put together": (CHANGED_AND_PUT_TOGETHER, {"b0": "y"}),
    "arms meet": (ARMS_MEET, {"b0": "c", "b1": "c", "b2": "y"}),
    "both arms store": (BOTH_ARMS_STORE, {"b0": "a", "b1": "n", "b2": "n", "b3": "y"}),
    "source changes": (SOURCE_CHANGES, {"b0": "p x", "b1": "y", "b2": "y"}),
    "in a loop": (IN_A_LOOP, {"b2": "y", "b3": "n x"}),
    "computed": (COMPUTED, {"b0": "a b", "b1": "y", "b2": "y"}),
    "behind a pop": (BEHIND_A_POP, {"b0": "a n", "b1": "n y"}),
    "in two messages": (IN_TWO_MESSAGES, {"b0": "p"}),
    "in a message": (IN_A_MESSAGE, {"b1": "p", "b2": "y"}),
}

EXAMPLES = [(n, ((a, b), c)) for n in (-1, 2, 5) for a in (1, 4) for b in (0, 3) for c in (1, 6)]


def outcomes(program: Program):
    """What the program gives for every example."""
    found = (interpret(program, example, python_evaluate({}), copy_store) for example in EXAMPLES)
    return [(outcome.value, outcome.status, outcome.message) for outcome in found]


def headed(text: str) -> str:
    """The text of a program with these blocks."""
    return (HEAD.replace("n: int32[]  register", "n: int32[]  stack") if "push" in text else HEAD) + text


def given(program: Program) -> dict[str, str]:
    """The stored variables that each block gives a value."""
    stored = {v.name for v in program.entry.variables if v.storage != "temporary"}
    names = {
        block.label: " ".join(sorted({name for op in block.ops for name in writes(op)} & stored))
        for block in program.blocks()
    }
    return {label: text for label, text in names.items() if text}


@pytest.mark.parametrize("name", STAYS_WHERE)
def test_what_is_stored_where(name):
    text, expected = STAYS_WHERE[name]
    program = parse_program(headed(text))
    sunk = sink_copies(program)
    after = find_temporaries(sunk)
    for each in (program, sunk, after):
        verify(each)
        assert parse_program(print_program(each)) == each
    assert given(after) == expected
    assert outcomes(program) == outcomes(sunk) == outcomes(after)


@pytest.mark.parametrize("name", STAYS_WHERE)
def test_without_types_no_answer_changes_either(name):
    text, _ = STAYS_WHERE[name]
    program = parse_program(re.sub(r"(var \w+): .*  ", r"\1  ", headed(text)))
    after = sink_copies(program)
    verify(after)
    assert outcomes(program) == outcomes(after)


def test_a_number_takes_its_type_where_it_is_assigned():
    """`a` is a float32, its source a weak number until the block ends: in another block it would be one for longer."""
    text = HEAD.replace("var a: int32[]", "var a: float32[]") + STEP_BY_STEP
    program = parse_program(text)
    assert "update a, b = p" in print_program(sink_copies(program)).split("b1:")[0]
    assert given(find_temporaries(sink_copies(program)))["b0"] == "a"


def test_a_place_where_lanes_wait_stays():
    program = parse_program((HEAD + TO_WHERE_IT_IS_READ).replace("b3:", "b3, sync:"))
    assert [block.label for block in sink_copies(program).blocks() if block.sync] == ["b3"]


def test_what_keeps_its_variable_elsewhere_goes_by_another_name():
    """In b0 of `arms meet` only `c` is stored; `a`, which b1 reads, comes with a `c` of its own there."""
    printed = print_program(sink_copies(parse_program(HEAD + ARMS_MEET)))
    assert "b1:\n  update (a, b), c_ = x\n" in printed


def test_a_part_of_a_tuple_is_not_the_tuple():
    text = "b0:\n  update x, y, t = p\n  update p = (x, y)\n  update y = p\n  return\n"
    program = parse_program(re.sub(r"(var \w+): .*  ", r"\1  ", HEAD) + text)
    assert "update p = (x, y)" in print_program(sink_copies(program))
