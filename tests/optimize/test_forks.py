"""Groups of calls that may be forked: which are found, what is computed early for them, and that all else stays."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.ir.analysis.parallel_call_groups import groups, without_forks
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.ir.verifier import IRError
from pcbatch.lowering.codegen.emit import checked_sites
from pcbatch.optimize.machine import forks
from pcbatch.optimize.machine.forked_calls import ASKS, ASKS_UNSEEN, CHOSEN, DEPENDS, OPAQUE, STORED
from pcbatch.optimize.machine.forks import CHEAP, RECURSES_NOT, WAITS, apart, find_forks, loss
from pcbatch.optimize.pipeline import machine_passes, run_passes
from tests.goldens import check_golden
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.machine_interpreter import interpret_machine
from tests.ir.machine_parser import parse_machine
from tests.optimize.programs import fibonacci

GOLDEN = Path(__file__).parent / "golden" / "machine"
TREE = (np.array([1, 3, -1, -1, -1], np.int32), np.array([2, 4, 0, 0, 0], np.int32))
BINARY = np.array([[1, 2], [-1, 3], [4, -1], [-1, -1], [-1, -1]], np.int32)


@pcbatch.autobatch
def depths(left, right, node):
    """What the second call is given may fail, and lies behind the first; the arrays are the same for the whole tree."""
    if left[node] < 0:
        return 1
    one = depths(left, right, left[node])
    other = depths(left, right, right[node])
    return max(one, other) + 1


@pcbatch.autobatch
def three(n, m):
    """Three calls, statements in between of which one needs a result; and in the other arm two."""
    if n <= 0:
        return m
    if n % 2 == 0:
        a = three(n - 1, m)
        half = n // 2
        b = a * 2
        return b + three(half, m + 1) + three(n - 3, half)
    return three(n - 2, m) - three(n - 4, m + 2)


@pcbatch.autobatch
def dependent(n):
    """The second call needs what the first gives."""
    if n <= 0:
        return n
    return dependent(dependent(n - 1) - 1) + 1


@pcbatch.autobatch
def opaque(n):
    """Nothing is known of what computes the argument of the second call."""
    if n <= 0:
        return 1
    return opaque(n - 1) + opaque(tf.minimum(n - 2, 3))


@pcbatch.autobatch
def stopping(n):
    """Lanes wait for each other between the calls."""
    if n <= 0:
        return 1
    a = stopping(n - 1)
    pcbatch.sync()
    return a + stopping(n - 2)


@pcbatch.autobatch
def helped(n):
    """Calls of a function that calls nobody, beside others that recurse: the first begins a group all the same."""
    if n <= 0:
        return 0
    return twice(n) + helped(n - 1) + helped(n - 2)


@pcbatch.autobatch
def twice(n):
    return n * 2


@pcbatch.autobatch(fork=True)
def turns(n):
    """Calls in the turns of loops in a loop, which are written out for that."""
    if n <= 0:
        return 1
    total = 0
    for k in range(2):
        for j in range(2):
            total += turns(n - 2 * k - j - 2) * (k + 1)
    return total


@pcbatch.autobatch(fork=True)
def chosen(children, node):
    """Calls in the turns of a loop, each under a condition without which what it is given would fail."""
    total = node
    for k in range(2):
        if children[node, k] >= 0:
            total += chosen(children, children[node, k]) * (k + 2)
    return total


@pcbatch.autobatch
def either(n):
    """A call in one arm, two in the other, and one behind both that calls again with what it gives."""
    if n <= 0:
        return 1
    if n % 2 == 0:
        a = either(n - 1)
    else:
        a = either(n - 2) + either(n - 3)
    return either((a + either(n - 4)) % n)


@pcbatch.autobatch
def asking(n):
    """Whether the second call is made depends on what the first gives."""
    if n <= 0:
        return 1
    a = asking(n - 1)
    if a > 2:
        a += asking(n - 2)
    return a


@pcbatch.autobatch
def later(n, d):
    """Two groups, the second's last call given what was saved before the first one; `d` has another value by then."""
    if n <= 0:
        return d
    k = n * d
    a = later(n - 1, d)
    b = later(n - 2, d + 1)
    return later(n - 3, a % 9) + later(n - 4, (b + k + d) % 7)


@pcbatch.autobatch
def stored(n, xs):
    """An element is stored into what the second call is given."""
    if n <= 0:
        return xs[0]
    a = stored(n - 1, xs)
    xs[0] = n
    return a + stored(n - 2, xs)


@pcbatch.autobatch
def by_arm(n, d):
    """What the second call is given differs by the arm."""
    if n <= 0:
        return d
    a = by_arm(n - 1, d)
    if n % 2 == 0:
        d = d + 3
    else:
        d = d // n
    return a + by_arm(n - 2, d)


@pcbatch.autobatch
def by_arm_of_opaque(n, d):
    """Nothing is known of what computes the condition on which the second call is made."""
    if n <= 0:
        return d
    a = by_arm_of_opaque(n - 1, d)
    if tf.minimum(n, 3) > d:
        a += by_arm_of_opaque(n - 2, d)
    return a


EXAMPLES = {
    "fibonacci": (fibonacci, [(0,), (5,)], [2]),
    "depths": (depths, [(*TREE, 0), (*TREE, 3)], [2]),
    "three": (three, [(5, 1), (6, 0), (-1, 4)], [3, 2]),
    "dependent": (dependent, [(4,)], []),
    "opaque": (opaque, [(5,)], []),
    "stopping": (stopping, [(4,)], []),
    "helped": (helped, [(4,)], [3]),
    "turns": (turns, [(5,), (4,)], [4]),
    "chosen": (chosen, [(BINARY, 0), (BINARY, 4)], [2]),
    "either": (either, [(5,), (6,)], [4]),
    "asking": (asking, [(5,)], []),
    "later": (later, [(4, 1), (5, 2), (0, 3)], [2, 2, 2]),
    "stored": (stored, [(5, [1, 2])], []),
    "by_arm": (by_arm, [(5, 1)], []),
    "by_arm_of_opaque": (by_arm_of_opaque, [(5, 1)], []),
}


def compiled(name):
    """A program's stages, and its machine program with the groups that are found."""
    function, examples, _ = EXAMPLES[name]
    columns = [np.stack(column).astype(np.int32) for column in zip(*examples, strict=True)]
    compilation = function.pipeline(*columns)
    return compilation, find_forks(compilation.lowered)


def with_its_group(name):
    """A machine program, and the one group that is found in it."""
    _, program = compiled(name)
    (group,) = groups(program)
    return program, group


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_groups_that_are_found(name):
    compilation, program = compiled(name)
    verify_machine(program)
    assert sorted(len(group.members) for group in groups(program)) == sorted(EXAMPLES[name][2])
    assert parse_machine(print_machine(program)) == program
    if not groups(program):
        assert program == compilation.lowered
    else:
        check_golden(GOLDEN / f"forks_{name}.txt", print_machine(program))
    sequential = without_forks(program)
    assert [b.terminator for b in sequential.blocks] == [b.terminator for b in compilation.lowered.blocks]
    assert sequential.storage == compilation.lowered.storage


@pytest.mark.parametrize("name", EXAMPLES)
def test_calls_in_sequence_are_what_they_were(name):
    """After all passes, too: which must keep what only forks read."""
    compilation, program = compiled(name)
    environment = compilation.environment
    passes = machine_passes(partial(checked_sites, environment=environment), ())
    function, examples, _ = EXAMPLES[name]
    for stage in (program, run_passes(program, passes, lambda name, program: verify_machine(program))):
        evaluate, store = interpreter_callbacks(stage, environment)
        for example in examples:
            values = [
                function.as_example(*each) for each in zip(function.__signature__.parameters, example, strict=True)
            ]
            outcome = interpret_machine(stage, values, evaluate, store)
            np.testing.assert_array_equal(outcome.value, function.single(*example))


def test_what_a_call_may_change_is_not_known_behind_it(monkeypatch):
    monkeypatch.setattr(forks.Finder, "_return", lambda self, values, end: None)
    _, program = compiled("dependent")
    assert groups(program), "sabotaged, the second call is given what was there before the first"


def test_forks_pay_where_calls_recurse_and_come_to_something_expensive():
    program, group = with_its_group("fibonacci")
    assert loss(program, group, [1]) is None
    assert loss(program, group, []) == CHEAP
    program, group = with_its_group("helped")
    twice = replace(group, members=group.members[:1])
    assert loss(program, twice, [twice.members[0].entry]) == RECURSES_NOT


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dependent", [DEPENDS]),
        ("opaque", [OPAQUE]),
        ("stopping", [WAITS]),
        ("fibonacci", []),
        ("asking", [ASKS]),
        ("later", [DEPENDS]),
        ("stored", [STORED]),
        ("by_arm", [CHOSEN]),
        ("by_arm_of_opaque", [ASKS_UNSEEN]),
    ],
)
def test_why_calls_are_apart(name, why):
    compilation, _ = compiled(name)
    assert list(apart(compilation.lowered).values()) == why


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda calls: calls[:1], "a group has two calls at least"),
        (lambda calls: (*calls, calls[0]), "comes to fewer calls than it could fork"),
        (lambda calls: (replace(calls[0], given=(("n", "nobody"),)), calls[1]), "'nobody' was never written"),
        (lambda calls: (replace(calls[0], given=(("n", "t0"),)), calls[1]), "'n' is given a value of another type"),
        (
            lambda calls: (replace(calls[0], results=(("result_1", "t0"),)), calls[1]),
            "'t0' has no top that could be handed over",
        ),
    ],
)
def test_groups_that_are_none(change, message):
    program, group = with_its_group("fibonacci")
    block = program.blocks[group.block]
    fork = replace(block.terminator.fork, calls=change(block.terminator.fork.calls))
    body = block.body if "type" not in message else (*program.blocks[0].body, *block.body)
    broken = replace(block, body=body, terminator=replace(block.terminator, fork=fork))
    blocks = tuple(broken if each is block else each for each in program.blocks)
    with pytest.raises(IRError, match=message):
        verify_machine(replace(program, blocks=blocks))


def test_what_lies_by_example_is_written_by_nobody():
    _, program = compiled("fibonacci")
    with pytest.raises(IRError, match="'n' lies by example, and is no parameter or is written"):
        verify_machine(replace(program, storage={**program.storage, "n": "example"}))
