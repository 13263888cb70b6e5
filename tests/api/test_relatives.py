"""One function under several options: what is found out under one serves the others, as long as it holds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pcbatch
from pcbatch.function import compilation_cache
from pcbatch.function.compilation_cache import Session
from pcbatch.function.reading_cache import read_program

X = np.array([3.0, 9.0, 20.0], np.float32)
GAIN = 2.0
TABLE = [1.0, 2.0]
VARIANTS = ({"jit": False}, {"jit": False, "schedule": "sweep"}, {"jit": False, "max_steps": 1000, "form": "lockstep"})
OTHERS = ({"backend": "reference"}, {"strategy": "local"}, {"trace": 100})


def helper(x):
    return x * TABLE[0] + 1.0


def make():
    @pcbatch.autobatch
    def halved(x):
        total = max(a for a in [x, 0.0]) * 0.0
        while x > 1.0:
            x = x * 0.5
            total = total + helper(x) * GAIN
        return total

    return halved


@pytest.fixture
def readings(monkeypatch):
    """The functions that have been read, one for each time."""
    found = []

    def reading(function, *arguments, **options):
        found.append(function)
        return read_program(function, *arguments, **options)

    monkeypatch.setattr(compilation_cache, "read_program", reading)
    return found


def check(function, variants):
    wanted = [function.single(each) for each in X]
    for options in variants:
        np.testing.assert_allclose(function.options(**options)(X), wanted, err_msg=str(options))


def test_what_options_do_not_matter_to_is_found_out_once(readings):
    function = make()
    check(function, VARIANTS)
    assert len(readings) == 1
    check(function, OTHERS)
    assert len(readings) == 3  # another backend, and one whose calls are not made at the same time


def test_a_change_is_seen_under_every_option(monkeypatch, readings):
    function = make()
    check(function, VARIANTS[:2])
    for name, value in (("GAIN", 5.0), ("TABLE", [3.0]), ("helper", lambda x: x - 1.0)):
        monkeypatch.setitem(globals(), name, value)
        before = len(readings)
        check(function, VARIANTS[1:])
        assert len(readings) == before + 1
        check(function, VARIANTS)
        assert len(readings) == before + 1
    TABLE[0] = 7.0
    check(function, (*VARIANTS, *OTHERS))


def test_the_digest_is_that_of_the_program_alone():
    ours, others = make(), make()
    check(ours, VARIANTS[:1])
    assert ours.options(**VARIANTS[1]).pipeline(X).digest == others.options(**VARIANTS[1]).pipeline(X).digest


def test_nobody_waits_for_a_relative_at_work(monkeypatch):
    function, compiled = make(), Session._compiled
    both = threading.Barrier(2, timeout=60)

    def at_once(relative, *arguments):
        if relative not in met:
            met.append(relative)
            both.wait()
        return compiled(relative, *arguments)

    met, errors = [], []
    monkeypatch.setattr(Session, "_compiled", at_once)

    def run(options):
        try:
            check(function, [options])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[options], daemon=True) for options in VARIANTS[:2]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)
    assert len(met) == 2
