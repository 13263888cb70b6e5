"""Every pass, by what it removes: goldens of the IR after each, answers unchanged, sabotage that is noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pcbatch
from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Facts, Interference
from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program, PushJump
from pcbatch.ir.rewrite import pushed
from pcbatch.ir.verifier import IRError, verify
from pcbatch.lowering import calls
from pcbatch.optimize.cfg import block_merging, dead_code, if_conversion, jump_threading, melding
from pcbatch.optimize.pipeline import CFG_PASSES, STACK_PASSES, optimize
from pcbatch.optimize.stack import caller_saves, copy_propagation, copy_sinking, invariants, pop_push, temporaries
from tests.goldens import check_golden
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.interpreter import interpret
from tests.ir.parser import parse_program
from tests.optimize.programs import ENTRIES, counted, ping

GOLDEN = Path(__file__).parent / "golden"


def stages(cfg: Program) -> Iterator[tuple[str, Program]]:
    """The typed cfg program, it after each pass over control flow, the stack program, it after each pass over stacks.

    Passes over control flow run in rounds; a round in which all is as it was is left out.
    """
    found: list[tuple[str, Program]] = [("cfg", cfg)]
    flat = optimize(cfg, after=lambda name, after: found.append((name, after)))
    stack = calls.lower_calls(flat)
    yield from found[: -len(CFG_PASSES)]
    yield "stack", stack
    found.clear()
    optimize(stack, after=lambda name, after: found.append((name, after)))
    yield from found


def typed(name: str) -> Program:
    """The typed cfg program of an entry, which all examples are of."""
    function, examples = ENTRIES[name]
    return function.pipeline(*(np.array([value], np.int32) for value in examples[0])).cfg


@pytest.mark.parametrize("name", ENTRIES)
def test_what_each_pass_removes(name):
    text = ""
    before = None
    for stage, program in stages(typed(name)):
        verify(program)
        printed = print_program(program)
        assert parse_program(printed) == program
        text += f"== {stage}\n" + ("no change\n\n" if printed == before else printed + "\n")
        before = printed
    check_golden(GOLDEN / f"{name}.txt", text)


def runner(name: str):
    """A function that runs a program of an entry, at any stage, on one example."""
    function, examples = ENTRIES[name]
    compilation = function.pipeline(*(np.array([value], np.int32) for value in examples[0]))

    def run(program: Program, example: tuple[int, ...]):
        evaluate, store = interpreter_callbacks(program, compilation.environment)
        arguments = [function.as_example(p, v) for p, v in zip(function.__signature__.parameters, example, strict=True)]
        return interpret(program, arguments, evaluate, store, max_depth=100)

    return run


def compiled(cfg: Program) -> Program:
    """The program after all passes."""
    return optimize(calls.lower_calls(optimize(cfg)))


@pytest.mark.parametrize("name", ENTRIES)
def test_every_pass_leaves_the_answers_alone(name):
    run = runner(name)
    for _, program in stages(typed(name)):
        for example in ENTRIES[name][1]:
            outcome = run(program, example)
            assert outcome.status == "OK"
            assert np.asarray(outcome.value) == np.asarray(ENTRIES[name][0].single(*example))


LEFT_NOTHING = {"plain_conditions", "multiple_results"}
"""Passes that find nothing to do in programs as they are read: conditions are bools, results are arrays."""


def test_each_pass_does_something_somewhere():
    effective = set()
    for name in ENTRIES:
        before = None
        for stage, program in stages(typed(name)):
            if before is not None and program != before:
                effective.add(stage)
            before = program
    assert effective == {"stack", *CFG_PASSES, *STACK_PASSES} - LEFT_NOTHING


SABOTAGE = {
    "calls: forget to save a variable": (calls._Lowering, "_saved", lambda real: lambda *a: real(*a)[1:], "fibonacci"),
    "calls: bind arguments one by one": (calls._Lowering, "_copied", lambda real: _uncopied, "traded"),
    "invariants: take any op for a copy": (
        invariants,
        "is_copy",
        lambda real: lambda op: len(op.inputs) == 1,
        "fibonacci",
    ),
    "caller_saves: drop a live variable": (
        caller_saves,
        "_live_behind_pops",
        lambda real: lambda p: {label: frozenset(sorted(live)[1:]) for label, live in real(p).items()},
        "kept",
    ),
    "caller_saves: forget what a call changes": (
        caller_saves,
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
    "copy_sinking: do not look who else comes": (
        copy_sinking._Sinking,
        "heirs",
        lambda real: property(lambda self: {label: ir.successors(b.terminator) for label, b in self.blocks.items()}),
        "sums",
    ),
    "coalescing: overlook who needs the old value": (
        Interference,
        "are_apart",
        lambda real: lambda self, one, other: False,
        "handing",
    ),
    "temporaries: name apart what is read later": (
        temporaries,
        "liveness",
        lambda real: lambda p, comes_back: {label: Facts(frozenset(), frozenset()) for label in real(p)},
        "marks",
    ),
    "temporaries: overlook a read": (
        temporaries,
        "_exposed",
        lambda real: lambda block: list(real(block))[1:],
        "clamped",
    ),
    "melding: take other operands for the same": (
        melding,
        "_pairs",
        lambda real: lambda *a: real(*a) and tuple((one, one) for one, _ in real(*a)),
        "either",
    ),
    "if_conversion: keep the wrong arm": (
        if_conversion,
        "diamond",
        lambda real: lambda *a: (d := real(*a)) and replace(d, true=d.false, false=d.true),
        "clamped",
    ),
    "if_conversion: forget what is live": (
        if_conversion,
        "selectable",
        lambda real: lambda *a: (names := real(*a)) and names[1:],
        "clamped",
    ),
    "jump_threading: a condition holds always": (
        jump_threading,
        "_onward",
        lambda real: lambda graph, label, condition, holds: real(graph, label, condition, True),
        "asked",
    ),
    "dead_code: nothing is needed": (
        dead_code,
        "live_after_each_op",
        lambda real: lambda block, live: tuple(frozenset() for _ in block.ops),
        "unread",
    ),
    "straight_lines: do not look who else comes": (
        block_merging.Graph,
        "arrivals",
        lambda real: property(lambda self: Counter(dict.fromkeys(self.blocks, 1))),
        "unread",
    ),
    "copy_propagation: move past a write": (
        copy_propagation,
        "_interferes",
        lambda real: lambda op, names: False,
        "swapped",
    ),
}


def _uncopied(self, call):
    """Bindings without the copies that keep an argument from being overwritten."""
    return [], self._bindings(call)


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_noticed(sabotage, monkeypatch):
    """One line of a pass made wrong: the verifier refuses the program, or some answer is not what it was."""
    where, name, broken, entry = SABOTAGE[sabotage]
    cfg, run, (function, examples) = typed(entry), runner(entry), ENTRIES[entry]
    expected = [np.asarray(function.single(*example)) for example in examples]
    real: Callable = getattr(where, name)
    monkeypatch.setattr(where, name, broken(real))
    try:
        program = compiled(cfg)
        verify(program)
        outcomes = [run(program, example) for example in examples]
    except (IRError, IndexError, KeyError):
        return
    answers = [o.status == "OK" and np.asarray(o.value) == e for o, e in zip(outcomes, expected, strict=True)]
    assert not all(answers)


def test_a_pushed_variable_without_a_stack_is_refused():
    """The sabotage of top_of_stack_caching, which moves tops only: the verifier knows what a push needs."""
    text = print_program(compiled(typed("fibonacci")))
    with pytest.raises(IRError, match="register"):
        verify(parse_program(text.replace("var n: int32[]  cached stack", "var n: int32[]  register")))


@pytest.mark.parametrize(
    ("function", "expected"), [(counted, lambda n: sum(i % 7 for i in range(n + 1))), (ping, lambda n: n * 3 // 2)]
)
def test_a_tail_recursive_loop_of_many_turns_needs_no_stack(function, expected):
    ns = np.array([100_000, 2, 0], np.int32)
    shallow = function.options(max_depth=1)
    program = shallow.program("optimized", ns, np.zeros(3, np.int32))
    assert not any(pushed(block) or isinstance(block.terminator, PushJump) for block in program.blocks())
    assert shallow(ns, np.zeros(3, np.int32)).numpy().tolist() == [expected(n) for n in ns.tolist()]


def test_what_mutual_recursion_passes_on_unchanged_is_stored_once():
    """`up` calls it `step` and `down` calls it `by`: it is one variable, which no call saves."""
    program = compiled(typed("up"))
    names = [v.name for function in program.functions for v in function.variables]
    assert "by" not in names
    assert next(v for v in program.entry.variables if v.name == "step").storage == "register"


def test_arms_that_call_without_operands_are_left_alone_before_types_are_known():
    """Melding needs types for the variables that it makes."""

    @pcbatch.autobatch
    def either(n):
        if n > 0:
            y = np.zeros(3)
        else:
            n = n - 1
            y = np.zeros(3)
        return y + n

    assert print_program(melding.meld_arms(either.program("cfg"))) == print_program(either.program("cfg"))
