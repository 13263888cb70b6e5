"""Lists, sets and dicts whose length differs by lane, judged by Python."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from tests.pairwise import covering
from tests.program_features import of_function
from tests.reading import programs_of_lengths as programs
from tests.reading.programs_of_lengths import OTHERS, QUICK, REFUSED, Ag

N = np.array([0, 1, 5, 7, 16, 40])
IN_FORMS = covering(
    QUICK + OTHERS,
    ["auto", "lockstep", "native"],
    {program: of_function(program) for program in QUICK + OTHERS},
    [(program, "auto") for program in QUICK],
)


def results(found):
    rows = found if isinstance(found, tuple) else (found,)
    return np.array([np.asarray(each, float) for each in rows])


def of_python(program):
    return np.stack([results(program(int(n))) for n in N], axis=1)


@pytest.mark.parametrize("program", QUICK, ids=lambda program: program.__name__)
def test_as_python_has_it(program):
    np.testing.assert_allclose(results(pcbatch.autobatch(program)(N)), of_python(program))


@pytest.mark.parametrize(
    "program", [programs.heap, programs.recursion, programs.cond], ids=lambda program: program.__name__
)
def test_in_lockstep(program):
    np.testing.assert_allclose(results(pcbatch.autobatch(program, form="lockstep")(N)), of_python(program))


@pytest.mark.slow
@pytest.mark.parametrize(("program", "form"), IN_FORMS, ids=lambda value: getattr(value, "__name__", value))
def test_in_each_form(program, form):
    """Each program in one form, each construct in each."""
    np.testing.assert_allclose(results(pcbatch.autobatch(program, form=form)(N)), of_python(program))


# -- parts of lists ----------------------------------------------------------------------------------------------------

ROWS = np.arange(12.0).reshape(2, 6) - 4.0
COUNTS = np.array([2, 5])


def on_one_path(x, n):
    ys = []
    if n > 2:
        ys = [v for v in x if v > 0]
    ys.append(1.0)
    return sum(ys)


def changed_behind(x, n):
    ys = [v for v in x if v > 0]
    ys.append(1.0)
    ys[0] = 4.0
    return sum(ys) + len(ys)


@pytest.mark.parametrize(
    "program",
    [
        on_one_path,
        changed_behind,
        lambda x, n: len(sorted([v for v in x if v > n])),
        lambda x, n: sum([v for v in x if v > n] * 2),
        lambda x, n: sum(v * m for v, m in [(v, n) for v in x if v > n]),
        lambda x, n: ([v for v in x if v > n] + [1.0])[0],
        lambda x, n: len([v for v in x if v > n][1:]),
        lambda x, n: min([v for v in x if v > 90] or [7.0]),
    ],
)
def test_lists_of_which_a_lane_keeps_some_elements(program):
    def wrapped(x, n):
        return program(x, n)

    wanted = [program(x, int(n)) for x, n in zip(ROWS, COUNTS, strict=True)]
    np.testing.assert_allclose(pcbatch.autobatch(wrapped)(ROWS, COUNTS), wanted)


# -- room, results, faults ---------------------------------------------------------------------------------------------


def counted_down(n):
    xs = []
    while n > 0:
        xs.append((n, n * 0.5))
        n -= 1
    return xs


def test_a_list_is_given_back_with_how_many_elements_it_has():
    found = pcbatch.autobatch(counted_down)(np.array([0, 2, 5]))
    assert isinstance(found, pcbatch.Bounded)
    np.testing.assert_array_equal(found.length, [0, 2, 5])
    numbers, halves = found.items
    np.testing.assert_array_equal(numbers[2, :5], [5, 4, 3, 2, 1])
    np.testing.assert_array_equal(halves[1, :2], [1.0, 0.5])


def test_lists_get_more_room():
    def total(n):
        xs = [0]
        while n > 0:
            xs.append(n)
            n -= 1
        return sum(xs), xs[-1], len(xs)

    batched, many = pcbatch.autobatch(total), np.array([3, 100, 700])
    for _ in range(2):
        found = batched(many)
        np.testing.assert_array_equal(found[0], many * (many + 1) // 2)
        np.testing.assert_array_equal(found[2], many + 1)


def test_more_elements_than_there_is_room_for_when_it_is_made():
    def total(n):
        xs = [k * n for k in range(100)]
        if n > 3:
            xs.append(n)
        return len(xs), xs[-1]

    found = pcbatch.autobatch(total)(N)
    np.testing.assert_array_equal(found[0], np.where(N > 3, 101, 100))


def test_what_python_raises_is_a_fault_of_the_lane():
    def third(n):
        xs = []
        while n > 0:
            xs.append(n)
            n //= 2
        return xs[2] + xs.pop(-3)

    run = pcbatch.autobatch(third).run(N)
    assert [each.lane for each in run.errors] == [0, 1]
    assert all("IndexError" in each.message and each.span.file == __file__ for each in run.errors)
    assert run.result(2) == 1 + 5


# -- what can change is held by value ----------------------------------------------------------------------------------


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_changes_of_what_a_list_has_by_value_are_refused(program):
    with pytest.raises(pcbatch.CompileError, match="an element of a list whose length differs by lane") as caught:
        pcbatch.autobatch(program).check(N)
    assert all(each.span.file == programs.__file__ and each.help for each in caught.value.diagnostics)


def test_the_help_works():
    def stored_anew(n):
        agents = []
        while n > 0:
            agents.append(Ag(n))
            n //= 2
        for k in range(len(agents)):
            agents[k] = Ag(agents[k].x + 1, agents[k].y)
        return sum(each.x for each in agents), len(agents)

    np.testing.assert_allclose(results(pcbatch.autobatch(stored_anew)(N)), of_python(stored_anew))


def test_elements_of_several_kinds_are_refused():
    def mixed(n):
        xs = []
        while n > 0:
            xs.append(n)
            xs.append((n, n))
            n //= 2
        return len(xs)

    with pytest.raises(pcbatch.CompileError, match="PCB301"):
        pcbatch.autobatch(mixed).check(N)
