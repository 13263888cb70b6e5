"""Programs without calls that can be made at the same time: with `fork=True` the very same program is executed."""

import pytest

from tests.harness import BATCH, NAMES, load

WITHOUT = ("ackermann", "collatz", "nested_loops")


def texts(name, **options):
    """What is executed, as IR and as Python."""
    program = load(name)
    function, arguments = program.function.options(form="lockstep", **options), program.arguments(BATCH)
    return function.ir("machine", *arguments), function.source(*arguments)


@pytest.mark.parametrize("name", WITHOUT)
def test_they_are_the_same(name):
    assert texts(name, fork=True) == texts(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_they_are_the_same_or_fork(name):
    forked, plain = texts(name, fork=True), texts(name)
    assert forked == plain or "fork " in forked[0]
