"""What `f.ir("machine")` prints is what the machine executes: read back, it gives the same."""

import dataclasses

import numpy as np
import pytest

import pcbatch
from pcbatch import UsageError
from pcbatch.function.executing import arrays_of, make_executable
from pcbatch.ir.machine import Piece, with_kept
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.lowering.codegen.emit import emit
from tests.harness import NAMES, load
from tests.ir.machine_parser import parse_machine

LANES = 5
RUN = NAMES[::6]
"""Programs whose printed text is run."""
LONG = {*RUN[1::2], "compared_tuples", "cost_hints", "method_calls", "nested_functions"}
"""Those among them that are left to the slow tests: every second one, and what takes longest to compile."""


def compiled(name):
    """A program's function, its arguments, and what was compiled for them."""
    program = load(name)
    arguments = program.arguments(LANES)
    return program.function, arguments, program.function.session.pipeline(arguments, {})


@pytest.mark.parametrize(
    "name", [name if place % 6 == 3 else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(NAMES)]
)
def test_the_text_says_all_that_is_executed(name):
    function, arguments, (_, compilation, _) = compiled(name)
    text = function.ir("machine", *arguments)
    program = parse_machine(text)
    assert program == compilation.executed(LANES)
    verify_machine(program)
    assert without_code(compilation.table) == without_code(compilation.machine_program)


def without_code(program):
    """`program` without what tells generated code from the statements that it was generated from."""

    def bare(item):
        return dataclasses.replace(item, function=None, statements=(), scope="") if isinstance(item, Piece) else item

    blocks = tuple(dataclasses.replace(block, body=tuple(map(bare, block.body))) for block in program.blocks)
    return dataclasses.replace(program, name="", blocks=blocks, externs={})


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in RUN])
def test_the_text_gives_the_same(name):
    function, arguments, _ = compiled(name)
    function = function.options(jit=False)
    bound, compilation, captured = function.session.pipeline(arguments, {})
    program = parse_machine(function.ir("machine", *arguments))
    types = compilation.machine_program.types  # a text names the classes of objects, but does not have them
    program = dataclasses.replace(program, types={name: types[name] for name in program.types})
    table = with_kept(emit(program, compilation.environment).load(), compilation.environment.kept)
    outcomes = [
        machine.run(*arrays_of(machine, compilation.parameters(), bound, captured.leaves), LANES)
        for machine in (make_executable(table, compilation.options, lambda: "read back"), compilation.machine)
    ]
    for read, own in zip(*map(found, outcomes), strict=True):
        if read.dtype.kind in "fc":  # TensorFlow rewrites sums in graphs, not always in the same order
            np.testing.assert_allclose(read, own, rtol=1e-6)
        else:
            np.testing.assert_array_equal(read, own)


def found(outcome):
    """All arrays that a run leaves."""
    counts = (outcome.status, outcome.site, outcome.place, outcome.steps, outcome.trips, outcome.executions)
    return [np.asarray(leaf) for leaf in (*outcome.values, *counts)]


def test_what_is_executed_depends_on_types():
    @pcbatch.autobatch
    def twice(x):
        return x * 2

    with pytest.raises(UsageError, match="PCB506: what the machine executes depends on types and shapes"):
        twice.ir("machine")
    with pytest.raises(UsageError, match=r"the stages are .*, 'machine', 'adjoint', 'llvm', 'ptx' and 'loop'"):
        twice.ir("table")
