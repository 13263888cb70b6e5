"""Every pass, by what it removes: goldens of the IR after each, answers unchanged, sabotage that is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pcbatch.ir.interpreter import interpret
from pcbatch.ir.parser import parse_program
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.ir.verifier import IRError, verify
from pcbatch.lowering import calls
from pcbatch.lowering.evaluate import interpreter_callbacks
from pcbatch.optimize import PASSES, folded_copies, invariants, live_saves, optimize, pop_push, temporaries
from tests.goldens import check_golden
from tests.optimize.programs import ENTRIES

GOLDEN = Path(__file__).parent / "golden"


def stages(program: Program) -> Iterator[tuple[str, Program]]:
    """The stack program, then the program after each pass."""
    found = [("stack", program)]
    optimize(program, after=lambda name, after: found.append((name, after)))
    return iter(found)


@pytest.mark.parametrize("name", ENTRIES)
def test_what_each_pass_removes(name):
    text = ""
    before = None
    for stage, program in stages(calls.lower_calls(ENTRIES[name][0].program("cfg"))):
        verify(program)
        printed = print_program(program)
        assert parse_program(printed) == program
        text += f"== {stage}\n" + ("no change\n\n" if printed == before else printed + "\n")
        before = printed
    check_golden(GOLDEN / f"{name}.txt", text)


def stack_program(name: str):
    """The typed stack program of an entry, with a function that runs a program like it on one example."""
    function, examples = ENTRIES[name]
    batch = [np.array([value], np.int32) for value in examples[0]]
    compilation = function.compilation(*batch)

    def run(program: Program, example: tuple[int, ...]):
        evaluate, store = interpreter_callbacks(program, compilation.typed.origin, compilation.environment)
        arguments = [function.as_example(p, v) for p, v in zip(function.__signature__.parameters, example, strict=True)]
        return interpret(program, arguments, evaluate, store, max_depth=100)

    return lambda: calls.lower_calls(compilation.typed.program), run, examples


@pytest.mark.parametrize("name", ENTRIES)
def test_every_pass_leaves_the_answers_alone(name):
    lowered, run, examples = stack_program(name)
    for _, program in stages(lowered()):
        for example in examples:
            outcome = run(program, example)
            assert outcome.status == "OK"
            assert np.asarray(outcome.value) == np.asarray(ENTRIES[name][0].single(*example))


def test_each_pass_does_something_somewhere():
    effective = set()
    for function, _ in ENTRIES.values():
        before = None
        for stage, program in stages(calls.lower_calls(function.program("cfg"))):
            if before is not None and program != before:
                effective.add(stage)
            before = program
    assert effective == set(PASSES)


SABOTAGE = {
    "calls: forget to save a variable": (calls._Lowering, "_saved", lambda real: lambda *a: real(*a)[1:], "fibonacci"),
    "calls: bind arguments one by one": (calls._Lowering, "_copied", lambda real: _uncopied, "traded"),
    "invariants: take any op for a copy": (
        invariants,
        "is_copy",
        lambda real: lambda op: len(op.inputs) == 1,
        "fibonacci",
    ),
    "live_saves: drop a live variable": (
        live_saves,
        "_live_behind_pops",
        lambda real: lambda p: {label: frozenset(sorted(live)[1:]) for label, live in real(p).items()},
        "kept",
    ),
    "live_saves: forget what a call changes": (
        live_saves,
        "_changed_by_function",
        lambda real: lambda program: {name: frozenset() for name in real(program)},
        "kept",
    ),
    "pop_push: do not look at reads": (
        pop_push,
        "_touched",
        lambda real: lambda block, parameters: frozenset(),
        "between",
    ),
    "temporaries: overlook a read": (
        temporaries,
        "_exposed",
        lambda real: lambda block: list(real(block))[1:],
        "marks",
    ),
    "folded_copies: move past a write": (folded_copies, "_interferes", lambda real: lambda op, names: False, "swapped"),
}


def _uncopied(self, call):
    """Bindings without the copies that keep an argument from being overwritten."""
    return [], self._bindings(call)


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_noticed(sabotage, monkeypatch):
    """One line of a pass made wrong: the verifier refuses the program, or some answer is not what it was."""
    where, name, broken, entry = SABOTAGE[sabotage]
    lowered, run, examples = stack_program(entry)
    expected = [np.asarray(ENTRIES[entry][0].single(*example)) for example in examples]
    real: Callable = getattr(where, name)
    monkeypatch.setattr(where, name, broken(real))
    program = lowered()
    try:
        program = optimize(program)
        verify(program)
        outcomes = [run(program, example) for example in examples]
    except (IRError, IndexError, KeyError):
        return
    answers = [o.status == "OK" and np.asarray(o.value) == e for o, e in zip(outcomes, expected, strict=True)]
    assert not all(answers)


def test_a_pushed_variable_without_a_stack_is_refused():
    """The sabotage of cached_tops, which changes only where tops are kept: the verifier knows what a push needs."""
    program = optimize(calls.lower_calls(ENTRIES["fibonacci"][0].program("cfg")))
    with pytest.raises(IRError, match="register"):
        verify(parse_program(print_program(program).replace("var n  cached stack", "var n  register")))
