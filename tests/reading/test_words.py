"""Texts, members of enumerations and None as values of a lane: Python's own answer is right."""

from __future__ import annotations

import enum

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


class State(enum.Enum):
    OPEN = "o"
    SHUT = "s"
    GONE = "g"


class Level(enum.IntEnum):
    LOW = 0
    MID = 1
    HIGH = 2


GAIN = {"cold": 1.0, "warm": 2.0, "hot": 5.0}
NAMES = ["cold", "warm", "hot"]
NEXT = {State.OPEN: State.SHUT, State.SHUT: State.GONE, State.GONE: State.OPEN}
WEIGHTS = {"a": np.float32([1.0, 2.0]), "b": np.float32([3.0, -1.0])}


def thermostat(x, n):
    state = "cold"
    total = 0.0
    while n > 0:
        if x > 2.0 and state != "hot":
            state = "hot"
        elif state == "hot":
            state = "warm"
            x = x - 1.5
        total = total + GAIN[state]
        x = x + 0.7
        n = n - 1
    return total, state == "warm"


def machine(x, n):
    s = State.OPEN
    count = 0
    for i in range(5):
        if n > i:
            s = NEXT[s]
        match s:
            case State.OPEN:
                count += 1
            case State.SHUT:
                count += 10
            case State.GONE:
                count += 100
        if s in (State.OPEN, State.SHUT):
            count += 10000
    return count


def by_index(x, n):
    name = NAMES[n % 3]
    return GAIN[name] + (1.0 if name in ("hot", "cold") else 0.5)


def nothing_yet(x, n):
    found = None
    if n > 1:
        found = "x"
    if n > 2:
        found = "y"
    if found is None:
        return 0
    return 1 if found == "x" else 2


def levels(x, n):
    level = Level.LOW
    if n > 0:
        level = Level.MID
    if n > 1:
        level = Level.HIGH
    return np.array([3, 5, 7])[level] + level


def size(n):
    if n > 1:
        return "big"
    return "small"


def counted(x, n):
    counts = {"big": 0, "small": 0}
    for i in range(3):
        counts[size(n - i)] += i + 1
    return counts["big"] * 10 + counts["small"] + (100 if size(n) == "big" else 0)


def recursive(x, n):
    def parity(k):
        if k <= 0:
            return "even"
        return "odd" if parity(k - 1) == "even" else "even"

    return parity(n) == "odd"


def attributes(x, n):
    s = State.OPEN if n > 1 else State.GONE
    return 1 if s.value == "o" and s.name == "OPEN" else 0


def arrays_by_word(x, n):
    key = "a" if n > 1 else "b"
    w = WEIGHTS[key]
    return w[0] * x + w[1]


class Lamp:
    def __init__(self, colour):
        self.colour = colour

    def turn(self):
        self.colour = "red" if self.colour == "green" else "green"


def in_objects(x, n):
    lamp, other = Lamp("green"), Lamp("red")
    for _ in range(3):
        if n > 1:
            lamp.turn()
            n = n - 1
        else:
            lamp, other = other, lamp
    return (1 if lamp.colour == "red" else 0) + (2 if other.colour == "red" else 0)


def two_words(x, n):
    a = "p" if n > 1 else "q"
    b = "q" if x > 2.0 else "p"
    return a == b, a < b


PROGRAMS = [
    thermostat,
    machine,
    by_index,
    nothing_yet,
    levels,
    counted,
    recursive,
    attributes,
    arrays_by_word,
    in_objects,
    two_words,
]
X, N = np.float32([0.0, 1.0, 2.0, 3.0, 0.5]), np.int32([0, 1, 2, 3, 7])


@pytest.mark.parametrize("options", [{"jit": False}, {"form": "lockstep", "jit": False}, {}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_words_are_those_of_python(program, options):
    found = pcbatch.autobatch(program).options(**options)(X, N)
    parts = [np.asarray(each) for each in tf.nest.flatten(found)]
    for lane, (x, n) in enumerate(zip(X.tolist(), N.tolist(), strict=True)):
        wanted = program(x, n)
        for part, value in zip(parts, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(part[lane], value, rtol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_example(program):
    wanted = program(3.0, 3)
    found = pcbatch.autobatch(program).single(np.float32(3.0), np.int32(3))
    for one, other in zip(tf.nest.flatten(found), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_letter_of_a_text():
    def letters(xs):
        found = 0
        for x in xs:
            if "abca"[x] == "a":
                found += 1
        return found, "xyz"[xs[0]] in ("x", "z")

    xs = np.array([[0, 1, 3, -1], [1, 1, 2, -2], [2, 3, 0, 0]])
    found, flags = pcbatch.autobatch(letters)(xs)
    assert [(int(n), bool(flag)) for n, flag in zip(found, flags, strict=True)] == [letters(each) for each in xs]


def returned(x, n):
    return "big" if n > 1 else "small"


def into_an_operation(x, n):
    return tf.strings.length("big" if n > 1 else "small")


def changed(x, n):
    return ("big" if n > 1 else "small").upper() == "BIG"


@pytest.mark.parametrize(
    ("program", "message"),
    [(returned, "PCB404"), (into_an_operation, "PCB114"), (changed, "PCB")],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_what_is_refused(program, message):
    with pytest.raises(pcbatch.errors.CompileError, match=message) as caught:
        pcbatch.autobatch(program)(X, N)
    assert caught.value.diagnostics[0].span is not None
