"""Through which variables and blocks of machine programs a gradient flows."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.ir.analysis.activity import activity
from pcbatch.ir.analysis.parallel_call_groups import forking, groups
from tests.ir.machine_parser import parse_machine
from tests.ir.machine_programs import ALL, EVERYTHING

# x is halved n times; `seen` is a float that no result is made of, `limit` one that nothing differentiated is in.
LOOP = """\
program machine halved(x, n) -> result, count
  var x: float32[]  register
  var n: int32[]  register
  var seen: float32[]  register
  var limit: float32[]  register
  var result: float32[]  register
  var count: int32[]  register
  var t0: bool[]  temporary
  var w: float32[]  shared
  var u: float32[]  shared
  site 0: MAX_STEPS "more than max_steps loop turns and calls"

function halved
b0:
  piece (x) -> seen, limit  shared u:
    seen = x * u
    limit = 3.0
  jump b1
b1:
  piece (n, x, limit) -> t0:
    t0 = (n > 0) and (x < limit)
  branch t0 b2 b3
b2:
  piece (n, limit) -> n, limit:
    n = n - 1
    limit = limit * 2.0
  jump b4, turn  steps 0
b3:
  piece (x, n) -> result, count  shared w:
    result = x * w
    count = n
  return
b4:
  piece (x) -> x:
    x = x * 0.5
  jump b1
"""

# A value takes the way of a store into an array, a push under another name, and a pop.
CARRIED = """\
program machine carried(a, x, y) -> result
  var a: float64[3]  register
  var x: float64[]  register
  var y: float64[]  register
  var kept: float64[]  cached stack
  var result: float64[]  register
  var i: int32[]  register
  site 0: INDEX "IndexError: index out of range"
  site 1: MAX_DEPTH "RecursionError: more than max_depth calls deep"
  site 2: MAX_STEPS "more than max_steps loop turns and calls"

function carried
b0:
  piece () -> i:
    i = 1
  store a[i] = x  site 0
  push kept  saved y
  pushjump b1, back to b2, site 1  steps 2
b1:
  piece () -> i:
    i = 2
  return
b2:
  pop kept
  piece (a, kept) -> result:
    result = a[1] * kept
  return
"""


def found(text, **wanted):
    active = activity(parse_machine(text), **wanted)
    return set(active.variables), set(active.shared), active.blocks


def test_floats_on_the_way_from_a_parameter_to_a_result():
    # `limit` is written by a piece that reads x: its other results count as made of it, too.
    assert found(LOOP) == ({"x", "result"}, {"w"}, (3, 4))


def test_of_what_is_wanted_alone():
    assert found(LOOP, parameters=(), shared=("w",)) == ({"result"}, {"w"}, (3,))
    assert found(LOOP, parameters=(), shared=("u",)) == (set(), set(), ())
    assert found(CARRIED, parameters=("x",)) == ({"a", "x", "result"}, set(), (0, 2))
    assert found(CARRIED, parameters=("y",)) == ({"kept", "y", "result"}, set(), (0, 2))


def test_values_go_by_stores_pushes_and_pops():
    assert found(CARRIED) == ({"a", "x", "y", "kept", "result"}, set(), (0, 2))


def test_structures_and_shared_operands():
    # `pair` holds no floats; `scale` and `w` are read by the piece that gives x and t0.
    assert found(EVERYTHING) == ({"x", "kept", "y", "t0"}, {"w", "scale"}, (0, 1, 2, 3))


@pytest.mark.parametrize("name", ["fibonacci", "gcd", "squares", "checked", "converted"])
def test_integers_have_no_gradients(name):
    assert found(ALL[name]) == (set(), set(), ())


def test_pieces():
    program = parse_machine(LOOP)
    active = activity(program)
    pieces = [[active.is_active(item) for item in block.body] for block in program.blocks]
    assert pieces == [[False], [False], [False], [True], [True]]


@pcbatch.autobatch
def halved(x, n):
    return x if n == 0 else halved(x * 0.5, n - 1)


@pcbatch.autobatch
def both(x, n):
    first = halved(x, n) + halved(x + x, n)
    return halved(first, n) + halved(first + x, n)


def test_no_lane_comes_to_the_second_group_in_sequence():
    # Block 2 forks the second pair of calls after the first pair was made in sequence; the join block forks it, too.
    machine = both.options(fork=True).ir("machine", np.ones(2, np.float32), np.ones(2, np.int32))
    program = forking(parse_machine(str(machine)))
    assert {group.block for group in groups(program)} > {0, 2}
    assert 2 not in program.order
    assert set(activity(program).blocks) <= {*program.order}
