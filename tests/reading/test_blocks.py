"""Lanes meet: the programs of the corpus have no more blocks than when they were read as text.

`blocks.json` has how many a program had then. A block costs a guard in each trip, and lanes in other blocks wait.
`tasks.json` has the same of the benchmarks' tasks, and how many blocks were run for four lanes of each.
"""

import json
from functools import partial
from pathlib import Path

import pytest

import pcbatch
from benchmarks import against
from benchmarks.against import inputs
from tests.harness import NAMES, load

MOST = json.loads((Path(__file__).parent / "blocks.json").read_text())
"""Blocks of the machine program, by program."""
MORE = {
    "comprehensions": (2, "loops over tuples are written out, each turn with its calls"),
    "first_turns": (1, "a counter that is read behind its loop is copied where the loop is left"),
    "helpers": (1, "a helper that branches is a function of the program, which is called"),
    "list_methods": (3, "the sum of a bounded list is a loop"),
    "loop_over_tuple": (3, "loops over tuples are written out, each turn in a block that counts it"),
    "mixed_ints": (1, "a parameter that a loop makes wider is cast in a block before the loop"),
}
"""How many blocks more some programs may have, and why."""
QUICK = NAMES[3::8]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_programs_have_as_few_blocks_as_before(name):
    program = load(name)
    found = program.function.options(fork=False).pipeline(*program.arguments(5)).machine_program
    more, _ = MORE.get(name, (0, ""))
    assert len(found.blocks) <= MOST.get(name, len(found.blocks)) + more, f"{name} has {len(found.blocks)} blocks"


def test_the_table_is_of_the_corpus():
    assert set(MOST) <= set(NAMES)
    assert set(MORE) <= set(MOST)


TASKS = json.loads((Path(__file__).parent / "tasks.json").read_text())
LONG = ("rk45", "queens", "simpson", "edit_distance", "fibonacci")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in TASKS])
def test_tasks_have_as_few_blocks_and_runs_of_them_as_before(name):
    functions = {}
    for file in ("tasks", "recursions"):
        path = Path(against.__file__).parent / f"{file}.py"
        namespace = {"task": partial(pcbatch.autobatch, form="lockstep", backend="reference"), "__name__": file}
        exec(compile(path.read_text(), path, "exec"), namespace)
        functions.update(namespace)
    given = inputs.batch(name, 4)
    blocks = len(functions[name].pipeline(*given).machine_program.blocks)
    most, most_runs = TASKS[name]
    assert blocks <= most
    assert functions[name].run(*given).block_runs <= most_runs
