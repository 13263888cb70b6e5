"""Arms under predicates: goldens, answers and faults as they were, sabotage that is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.ir import program as ir
from pcbatch.ir.machine import Jump, Piece
from pcbatch.ir.payload import NEGATION, Copy
from pcbatch.ir.text.machine_printer import print_machine
from pcbatch.ir.verify.machine import verify_machine
from pcbatch.ir.verify.verifier import IRError
from pcbatch.optimize.machine import predication
from pcbatch.optimize.machine.predication import Predication
from pcbatch.runtime.costs.device import CPU
from tests.goldens import check_golden
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.machine_interpreter import BrokenProgramError, interpret_machine
from tests.ir.machine_parser import parse_machine

GOLDEN = Path(__file__).parent / "golden" / "predication"
ALWAYS = Predication(always=True)


@pcbatch.autobatch
def swaps(a, n):
    """Stores and look-ups in an arm, within a loop."""
    for i in range(n):
        if a[i] > a[i + 1]:
            a[i], a[i + 1] = a[i + 1], a[i]
    return a


@pcbatch.autobatch
def nested(n, d):
    """Arms in arms, divisions that may fail in both, one that must not be made, a condition that an arm changes."""
    total, flag = 0, n > d
    while n > 0:
        if flag:
            flag = 60 // d > n
            if n % 2 == 1:
                total = total + 100 // (n - 7)
            else:
                total = total - n
        else:
            total = total * 2 + 30 // (d + 1)
            flag = n % 3 == 0
        n = n - 1
    return total


@pcbatch.autobatch
def turns(n):
    """Both arms end the turn, in one place of the source."""
    total = 0
    while n > 0:
        n = n - 1
        if n % 3 == 0:
            total = total + 7 // n
        else:
            total = total + 9 // (n - 4)
    return -total


@pcbatch.autobatch
def continued(n):
    """The same, in two places: a lane that makes too many turns fails at one of them."""
    total = 0
    while n > 0:
        n = n - 1
        if n % 3 == 0:
            total = total + 7 // n
            continue
        total = total + 9 // (n - 4)
    return -total


@pcbatch.autobatch
def depths(n):
    """Calls behind an arm: what follows pushes."""
    if n % 2 == 0:
        n = n + 12 // (n - 4)
    if n < 2:
        return n
    below = depths(n - 2)
    if below > 3:
        below = below - 8 // (below - 5)
    return below + n


ROWS = np.array([[3, 1, 2, 5, 4], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 2, 1, 2]], np.int32)
ENTRIES = {
    "swaps": (swaps, (ROWS, np.array([4, 3, 5, -1], np.int32))),
    "nested": (nested, (np.array([6, 9, 3, 8, 0, 5], np.int32), np.array([2, 1, 0, -1, 4, 9], np.int32))),
    "turns": (turns, (np.array([0, 2, 5, 6, 1, 3, 11], np.int32),)),
    "depths": (depths, (np.array([0, 1, 3, 4, 6, 7, 9, 11], np.int32),)),
}


def compiled(name):
    function, arguments = ENTRIES[name]
    return function.options(form="lockstep").pipeline(*arguments)


def converted(name):
    program = compiled(name).machine_program
    return ALWAYS.converted(program, [1.0] * len(program.blocks))


@pytest.mark.parametrize("name", ENTRIES)
def test_what_it_makes(name):
    program = converted(name)
    verify_machine(program)
    printed = print_machine(program)
    assert parse_machine(printed) == program
    check_golden(GOLDEN / f"{name}.txt", printed)


def answers(name, program):
    """What `program` gives for each example, in the interpreter of the dialect: status, fault, steps, value."""
    function, arguments = ENTRIES[name]
    pipeline = compiled(name)
    evaluate, store = interpreter_callbacks(program, pipeline.environment)
    users = pipeline.parameters()
    found = []
    for example in zip(*arguments, strict=True):
        every = dict(zip(function.__signature__.parameters, example, strict=True))
        given = [function.as_example(users[name], every[users[name]]) for name in program.parameters]
        outcome = interpret_machine(program, given, evaluate, store, shared=[], max_depth=100, max_steps=20)
        value = None if outcome.value is None else np.asarray(outcome.value).tolist()
        found.append((outcome.status, outcome.message, outcome.span, outcome.steps, value))
    return found


@pytest.mark.parametrize("name", ENTRIES)
def test_answers_faults_and_steps_are_those_of_before(name):
    assert answers(name, converted(name)) == answers(name, compiled(name).machine_program)


@pytest.mark.parametrize("name", ENTRIES)
def test_what_runs_is_what_one_lane_does_alone(name):
    """With stacks that grow, limits, and what is asked afterwards: which is of the blocks as they were."""
    function, arguments = ENTRIES[name]
    truth = function.options(backend="reference", max_steps=20).run(*arguments)
    lockstep = function.options(form="lockstep", max_steps=20)
    assert "_if" in lockstep.ir("machine", *arguments), "this is about what runs under predicates"
    found = lockstep.run(*arguments)
    np.testing.assert_array_equal(found.status, truth.status)
    np.testing.assert_array_equal(found.lane_steps, truth.lane_steps)
    np.testing.assert_array_equal(found.value, truth.value)
    assert [(e.lane, e.message, e.span) for e in found.errors] == [(e.lane, e.message, e.span) for e in truth.errors]
    assert LaneStatus.OK in found.status


@pcbatch.autobatch
def priced(x, n):
    """One arm calls TensorFlow on a number, the other one on many."""
    while n > 0:
        if x > 1.0:
            x = tf.exp(-x) / tf.cast(n, tf.float32)
        else:
            x = x + tf.reduce_sum(tf.sin(tf.range(1000.0) * x))
        n = n - 1
    return x


def test_the_price_decides_not_the_spelling():
    arguments = np.array([0.5, 2.0], np.float32), np.array([3, 4], np.int32)
    printed = priced.options(form="lockstep").ir("machine", *arguments)
    (cheap,) = (line for line in printed.splitlines() if "  if " in line)
    assert "(x, n) -> x" in cheap
    assert "tf.exp(" in "".join(printed.split(cheap)[1].split("\n")[1:3])
    none = Predication(replace(CPU, predicated_work=0.0))
    program = priced.options(form="lockstep").pipeline(*arguments).machine_program
    assert none.converted(program, [1.0] * len(program.blocks)) == program


def test_turns_that_are_continued_end_where_the_others_do():
    (numbers,) = ENTRIES["turns"][1]
    assert "_if" in continued.options(form="lockstep").ir("machine", numbers)


@pytest.mark.parametrize("options", [{"schedule": "sweep"}, {"trace": 3}, {"jit": False}, {"deterministic": True}])
def test_who_looks_at_blocks_has_them_apart(options):
    function, arguments = ENTRIES["swaps"]
    assert "_if" not in function.options(form="lockstep", **options).ir("machine", *arguments)


@pytest.mark.slow
def test_what_is_taped_runs_as_it_was():
    x = tf.constant([2.0, 0.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = priced.options(form="lockstep")(x, np.array([2, 1], np.int32))
    expected = []
    for each in (0, 1):
        with tf.GradientTape() as inner:
            one = x[each]
            inner.watch(one)
            result = priced.single(one, [2, 1][each])
        expected.append(inner.gradient(result, one))
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-4)


def _bare(items):
    """Items without predicates."""
    return (replace(item, predicate=None) for item in items)


def _turned(piece):
    """The piece that writes predicates, with the wrong values."""
    return replace(piece, statements=tuple(map(_negated, piece.statements)))


def _negated(statement):
    code = Copy() if statement.op.code == NEGATION else NEGATION
    return replace(statement, op=replace(statement.op, code=code))


def _without_turn(found):
    """An end that counts no step."""
    if found is None or not isinstance(found[0], Jump):
        return found
    return replace(found[0], turn=False), found[1]


def _without_stores(block):
    if block is None:
        return None
    return replace(block, body=tuple(item for item in block.body if isinstance(item, Piece)))


SABOTAGE = {
    "forget the predicates": ("_Converting", "_under", lambda real: lambda *a: _bare(real(*a)), "swaps"),
    "the wrong arm": (None, "_conditions", lambda real: lambda *a, **k: _turned(real(*a, **k)), "nested"),
    "a turn less": ("_Converting", "_joined", lambda real: lambda *a: _without_turn(real(*a)), "turns"),
    "what one arm stores is seen by nobody": (
        "_Converting",
        "_with_arms",
        lambda real: lambda *a: _without_stores(real(*a)),
        "swaps",
    ),
}


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_noticed(sabotage, monkeypatch):
    where, attribute, broken, name = SABOTAGE[sabotage]
    wanted = answers(name, compiled(name).machine_program)
    place = predication if where is None else getattr(predication, where)
    monkeypatch.setattr(place, attribute, broken(getattr(place, attribute)))
    try:
        program = converted(name)
        verify_machine(program)
        found = answers(name, program)
    except (IRError, BrokenProgramError, KeyError, AssertionError):
        return
    assert found != wanted


def test_a_piece_knows_its_predicates_twice():
    """As code that is interpreted and printed, and as a function that runs."""
    for name in ENTRIES:
        table = compiled(name).table
        for block in ALWAYS.converted(table, [1.0] * len(table.blocks)).blocks:
            for item in block.body:
                if isinstance(item, Piece) and item.statements:
                    for given in (True, False):
                        values = item.compiled(np.bool_(given))
                        codes = [ir.statement(each.op) for each in item.statements]
                        assert [bool(v) for v in values] == [given != ("not" in code) for code in codes]
