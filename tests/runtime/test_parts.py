"""Native code among expensive blocks in parts: against the reference, and as far in each trip as in one piece."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.ir.analysis import effects
from pcbatch.runtime.native import parts, region
from pcbatch.runtime.native.mixed import MixedProgram
from pcbatch.runtime.native.parts import divided
from tests.runtime import tables
from tests.runtime.libraries import STORAGES, ints, on_both
from tests.runtime.tables import piece
from tests.runtime.test_mixed import FEW, assert_as_the_reference, choices, descending, mixed
from tests.runtime.test_mixed_compiled import ARGUMENTS, assert_singles, in_native_code, optimized, programs, tree, walk

CASES = [*itertools.product(tables.CASES, STORAGES)]


@pytest.fixture
def many(monkeypatch):
    """As many parts as can be."""
    monkeypatch.setattr(parts, "CPU", dataclasses.replace(parts.CPU, native_part=1, native_parts=100))


def regions(executable: MixedProgram) -> tuple[region.Region, ...]:
    elsewhere = executable.legs.loop.context.elsewhere
    return elsewhere.regions if isinstance(elsewhere, parts.Parts) else (elsewhere,)


@on_both("case, storage", CASES, FEW)
def test_in_parts_as_the_reference(library, case, storage, many):
    program, arguments, limits = tables.case(case, library.ops)
    program = tables.stored(program, storage)
    found = {
        len(regions(assert_as_the_reference(library, program, arguments, lockstep, **limits)))
        for lockstep in choices(program)[-2:]
    }
    assert len(program.blocks) < 4 or max(found) > 1


@pytest.mark.parametrize("case", tables.CASES)
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_lanes_that_are_stopped_in_a_part_go_on(library, case, many, monkeypatch):
    few = dataclasses.replace(region.CPU, native_visit=0, native_least=1, native_register=1)
    monkeypatch.setattr(region, "CPU", few)
    program, arguments, limits = tables.case(case, library.ops)
    for lockstep in choices(program)[-2:]:
        assert_as_the_reference(library, program, arguments, lockstep, **limits)


@pytest.mark.parametrize("case", tables.CASES)
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_no_way_leads_back(library, case):
    """The parts have every block once, and a lane that leaves one comes to a later one or to lockstep."""
    program = tables.case(case, library.ops)[0]
    places = effects.successors(program)
    for lockstep in choices(program):
        size = {number: number % 3 + 1 for number in range(len(program.blocks))}
        found = divided(program, lockstep, size)
        assert sorted(itertools.chain(*found)) == sorted(effects.reachable(program) - lockstep)
        for earlier, later in itertools.combinations(found, 2):
            assert not {to for number in later for to in places[number]} & earlier


@pytest.mark.parametrize("case", tables.CASES)
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_a_trip_takes_lanes_as_far(library, case, monkeypatch):
    program, arguments, limits = tables.case(case, library.ops)
    for lockstep in choices(program):
        trips = []
        for most in (1, 100):
            monkeypatch.setattr(parts, "CPU", dataclasses.replace(parts.CPU, native_part=1, native_parts=most))
            run = mixed(program, library, lockstep, **limits).run(arguments, [], len(arguments[0]))
            trips.append(int(np.asarray(run.trips)))
        assert trips[0] == trips[1]


@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_parts_are_about_equally_large(library, monkeypatch):
    """Of b0, b1, b2 and b4 of Fibonacci, which follow on each other in groups, b3 being left out."""
    program = tables.fibonacci()

    def labels(size, *, part=1, most=3):
        monkeypatch.setattr(parts, "CPU", dataclasses.replace(parts.CPU, native_part=part, native_parts=most))
        return [sorted(numbers) for numbers in divided(program, {3}, size)]

    one = labels(dict.fromkeys(range(5), 1), most=1)
    assert one == [sorted({0, 1, 2, 4})]
    assert labels(dict.fromkeys(range(5), 1), part=5) == one, "too little code for two"
    groups = labels(dict.fromkeys(range(5), 1), most=100)
    assert len(groups) > 2
    first = {number: 100 if number in groups[0] else 1 for number in range(5)}
    assert labels(first, most=2) == [groups[0], sorted(itertools.chain(*groups[1:]))]
    last = {number: 100 if number in groups[-1] else 1 for number in range(5)}
    assert labels(last, most=2) == [sorted(itertools.chain(*groups[:-1])), groups[-1]]


@pytest.mark.parametrize("library", ["tensorflow"], indirect=True)
def test_how_much_code_a_block_is(library):
    """Operations of functions count, and so does what is written."""
    program = tables.fibonacci()
    first = program.blocks[0]

    def size(function):
        body = (piece(lambda n: (function(n) > 0,), "n", "t"),)
        changed = dataclasses.replace(program, blocks=(dataclasses.replace(first, body=body), *program.blocks[1:]))
        return parts.sizes(changed, library.backend, [0])[0]

    short, long = (size(tf.function(lambda n, k=k: n + sum([n] * k))) for k in (1, 40))
    assert long >= short + 39


@programs(walk, slow=[tree])
def test_each_part_is_a_function(function, many):
    """And XLA copies nothing in them that is larger than a row."""
    arguments, function = ARGUMENTS[function], function.options(name="in parts")  # one of its own
    run = function.run(*arguments)
    assert_singles(function, run.value, arguments)
    executable = function.session.pipeline(arguments, {})[1].machine
    text = optimized(function, *map(tf.constant, arguments))
    calls = [line for line in text.splitlines() if "to_apply=%native" in line]
    assert len(calls) == len(regions(executable)) > 1
    copies = [line for line in in_native_code(text) if " copy(" in line]
    assert not [line for line in copies if "[5," in line.split(" copy(")[0]]


@pytest.mark.parametrize("lockstep", [{2}, {3}])
@pytest.mark.parametrize("library", ["numpy"], indirect=True)
def test_lanes_that_lack_room_in_a_part_get_it(library, lockstep, many):
    executable = assert_as_the_reference(library, descending(), [ints(3, 40)], lockstep)
    assert executable.stack_entries == 129
    assert len(regions(executable)) > 1
