"""Every pass over machine programs: goldens after each, answers unchanged, sabotage that is noticed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus
from pcbatch.ir.analysis import effects
from pcbatch.ir.machine import Block, Branch, Jump, Program
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.ir.verifier import IRError
from pcbatch.lowering.codegen.emit import checked_sites, emit
from pcbatch.optimize.machine import (
    block_order,
    check_elimination,
    dead_writes,
    hoist_across_turns,
    loop_header_duplication,
    pointer_sharing,
    shared_parameters,
)
from pcbatch.optimize.pipeline import machine_passes, run_passes
from pcbatch.runtime.strategies.reference import ReferenceMachine
from tests.goldens import check_golden
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.machine_interpreter import BrokenProgramError, interpret_machine
from tests.ir.machine_parser import parse_machine
from tests.optimize import programs

GOLDEN = Path(__file__).parent / "golden" / "machine"


@pcbatch.autobatch
def quotients(n, table):
    """A division that may fail, one that cannot, an argument that all lanes share, and a loop."""
    total = 0
    while total < 20:
        total = total + table[n % 3] // n + n // 2
        n = n - 1
    return total


@pcbatch.autobatch
def weighed(n):
    """Saves two variables in the same places."""
    if n <= 0:
        return 1
    double = n * 2
    return weighed(n - 1) * double - n


@pcbatch.autobatch
def grown(n):
    """A loop that is written out, as a list grows in it; a branch, and a division that may fail, behind turns of it."""
    parts = []
    for k in range(3):
        parts.append(n * k + 1)
    for k in range(3):
        parts.append(parts[k] // n)
        if n > 1:
            parts[k] += k
    return parts[1] * parts[2] + parts[4]


SHARED = {"table": np.array([1, 2, 3], np.int32)}
ENTRIES = {
    name: programs.ENTRIES[name] for name in ("fibonacci", "kept", "swapped", "sums", "handing", "meeting", "between")
}
ENTRIES["weighed"] = (weighed, [(0,), (1,), (4,)])
ENTRIES["grown"] = (grown, [(0,), (1,), (4,)])
QUOTIENTS = (quotients.options(in_axes=(0, None)), [(9,), (2,), (4,)])


def compiled(name):
    """A program's stages, and the arguments that all lanes share."""
    function, examples = QUOTIENTS if name == "quotients" else ENTRIES[name]
    shared = SHARED if name == "quotients" else {}
    columns = [np.array(column, np.int32) for column in zip(*examples, strict=True)]
    return function, examples, shared, function.pipeline(*columns, *shared.values())


def stages(compilation):
    """The machine program as it is lowered, and after each pass."""
    found = [("machine", compilation.lowered)]
    shared = [name for name, user in compilation.parameters().items() if user in compilation.arguments.shared]
    passes = machine_passes(partial(checked_sites, environment=compilation.environment), shared)
    run_passes(compilation.lowered, passes, lambda name, program: found.append((name, program)))
    return found


@pytest.mark.parametrize("name", [*ENTRIES, "quotients"])
def test_what_each_pass_changes(name):
    text, before = "", None
    for stage, program in stages(compiled(name)[-1]):
        verify_machine(program)
        printed = print_machine(program)
        assert parse_machine(printed) == program
        text += f"== {stage}\n" + ("no change\n\n" if printed == before else printed + "\n")
        before = printed
    check_golden(GOLDEN / f"{name}.txt", text)


def answers(name, program: Program):
    """What `program` gives for the examples, and how often it ran blocks, in the interpreter of the dialect."""
    function, examples, shared, compilation = compiled(name)
    evaluate, store = interpreter_callbacks(program, compilation.environment)
    given = {user: name for name, user in compilation.parameters().items()}
    found = []
    for example in examples:
        every = dict(zip(function.__signature__.parameters, (*example, *shared.values()), strict=True))
        values = {given[user]: function.as_example(user, value) for user, value in every.items()}
        outcome = interpret_machine(
            program,
            [values[name] for name in program.parameters],
            evaluate,
            store,
            shared=[values[name] for name in program.shared],
            max_depth=100,
            max_steps=1000,
        )
        found.append((outcome.status, None if outcome.value is None else np.asarray(outcome.value).tolist()))
    return found


def expected(name):
    function, examples, shared, _ = compiled(name)
    found = []
    for example in examples:
        try:
            found.append(("OK", np.asarray(function.single(*example, *shared.values())).tolist()))
        except ZeroDivisionError:
            found.append(("ARITHMETIC", None))
    return found


@pytest.mark.parametrize("name", [*ENTRIES, "quotients"])
def test_every_pass_leaves_the_answers_alone(name):
    wanted = expected(name)
    for stage, program in stages(compiled(name)[-1]):
        assert answers(name, program) == wanted, stage


@pcbatch.autobatch(backend="reference")
def inverted(m):
    """A loop that is written out, in which an operation raises for the whole batch: for 1.0 in the second turn."""
    parts = []
    for _ in range(2):
        m = tf.linalg.inv(m) - tf.eye(1)
        parts.append(m)
    return parts[0] + parts[1]


def test_what_may_raise_stays_behind_a_turn_that_may_be_refused():
    ones, twos = np.full((1, 1, 1), 1, np.float32), np.full((1, 1, 1), 2, np.float32)
    assert inverted.options(max_steps=0).run(ones).status.tolist() == [LaneStatus.MAX_STEPS]
    assert inverted.options(max_steps=2).run(twos).value.numpy().tolist() == [[[-3.5]]]
    assert inverted(twos).numpy().tolist() == [[[-3.5]]]


def test_each_pass_does_something_somewhere():
    effective = set()
    for name in [*ENTRIES, "quotients"]:
        before = None
        for stage, program in stages(compiled(name)[-1]):
            effective |= {stage} if before is not None and program != before else set()
            before = program
    assert effective == {*machine_passes(lambda program, piece: frozenset(), ())}


def _swapped(block: Block) -> Block:
    match block.terminator:
        case Jump(target=Branch() as asked):
            return replace(
                block, terminator=replace(block.terminator, target=replace(asked, true=asked.false, false=asked.true))
            )
    return block


SABOTAGE = {
    "loop_header_duplication: go on by the wrong answer": (
        loop_header_duplication,
        "_asking",
        lambda real: lambda *a: _swapped(real(*a)),
        "quotients",
    ),
    "loop_header_duplication: forget the question": (
        loop_header_duplication,
        "_asking",
        lambda real: lambda block, headers: replace(real(block, headers), body=block.body),
        "quotients",
    ),
    "early_turns: the first piece is enough": (
        hoist_across_turns,
        "_joined",
        lambda real: lambda one, other: replace(real(one, other), statements=one.statements),
        "grown",
    ),
    "dead_writes: nothing is read later": (
        dead_writes,
        "live_at_end",
        lambda real: lambda program: [frozenset() for _ in program.blocks],
        "fibonacci",
    ),
    "idle_checks: nothing can fail": (check_elimination, "_sites", lambda real: lambda block: iter(()), "quotients"),
    "shared_parameters: overlook who writes": (
        shared_parameters,
        "shareable",
        lambda real: lambda program: frozenset(program.parameters),
        "quotients",
    ),
    "pointer_sharing: all stacks move together": (
        pointer_sharing,
        "share_pointers",
        lambda real: (
            lambda program: replace(program, pointers=dict.fromkeys(list(stacks(program))[1:], stacks(program)[0]))
        ),
        "fibonacci",
    ),
    "block_order: leave the last block out": (
        block_order.Ordering,
        "order",
        lambda real: property(lambda self: list(range(len(self.successors) - 1))),
        "fibonacci",
    ),
}


def stacks(program):
    return [name for name, kind in program.storage.items() if kind != "register"]


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_noticed(sabotage, monkeypatch):
    """One line of a pass made wrong: the verifier refuses the program, or some answer is not what it was."""
    where, name, broken, entry = SABOTAGE[sabotage]
    wanted = expected(entry)
    monkeypatch.setattr(where, name, broken(getattr(where, name)))
    compilation = compiled(entry)[-1]
    program = compilation.lowered
    passes = {
        "loop_header_duplication": loop_header_duplication.duplicate_headers,
        "idle_checks": partial(
            check_elimination.drop_idle_checks, checked=partial(checked_sites, environment=compilation.environment)
        ),
        "early_turns": hoist_across_turns.compute_early,
        "dead_writes": dead_writes.mark_dead_writes,
        "shared_parameters": partial(shared_parameters.share_parameters, wanted=program.parameters),
        "pointer_sharing": lambda program: pointer_sharing.share_pointers(program),
        "block_order": block_order.order_blocks,
    }
    try:
        program = run_passes(program, passes, lambda name, program: None)
        verify_machine(program)
        found = answers(entry, program)
    except (IRError, BrokenProgramError, KeyError):
        return
    assert found != wanted


def test_a_check_that_is_forgotten_is_noticed():
    """The interpreter makes every check; generated code makes those that have a site."""
    _, examples, shared, compilation = compiled("quotients")
    none = check_elimination.drop_idle_checks(compilation.lowered, lambda program, piece: frozenset())
    verify_machine(none)
    statuses = []
    for program in (compilation.machine_program, none):
        program = shared_parameters.share_parameters(program, ["table"])
        loaded = emit(program, compilation.environment).load()
        machine = ReferenceMachine(loaded, compilation.environment.backend, max_steps=50)
        numbers = np.array([example[0] for example in examples], np.int32)
        statuses.append(machine.run([numbers], list(shared.values()), len(numbers)).status.tolist())
    assert statuses[0] != statuses[1]


def test_lanes_come_to_every_block_of_an_order():
    program = compiled("fibonacci")[-1].machine_program
    assert effects.reachable(program) == set(program.order)
