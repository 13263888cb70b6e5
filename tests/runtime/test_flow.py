"""The order in which a trip goes through the blocks: few can send lanes up."""

import itertools
import random

import pytest

from pcbatch.ir.analysis.effects import successors
from pcbatch.optimize.machine.block_order import Ordering, order_blocks
from tests.runtime import tables


def up(flow, order):
    """The arrows that lead up, those into blocks where lanes wait for each other left out."""
    places = {number: place for place, number in enumerate(order)}
    arrows = [(source, target) for source in order for target in flow.onward[source] if target != source]
    return [(source, target) for source, target in arrows if places[target] < places[source]]


def test_what_needs_no_other_order_keeps_that_of_the_source():
    assert Ordering([(1, 2), (3,), (3,), (4,)]).order == [0, 1, 2, 3]
    assert Ordering([(1, 2), (0,), (3,)]).order == [0, 1, 2]


def test_what_nobody_comes_to_is_left_out():
    assert Ordering([(2,), (2,), (3,)]).order == [0, 2]


def test_a_recursion_comes_back_to_its_caller_in_the_same_trip():
    """b1 calls b0, which returns by b2 to b3, and b3 by b2 again: only the way down leads up."""
    flow = Ordering(successors(tables.fibonacci()))
    assert len(up(flow, flow.order)) < len(up(flow, range(len(flow.successors))))


def test_where_lanes_wait_for_each_other_a_trip_begins():
    """A sampler's flow: the leaf b3 comes first, then what it returns to, at last what calls again; none leads up."""
    flow = Ordering([(1,), (1, 3), (1, 3), (2, 4), (1, 3, 5)], sync=[3])
    assert flow.order[0] == 3
    assert up(flow, flow.order) == []


@pytest.mark.parametrize("seed", range(40))
def test_no_order_is_much_better(seed):
    """Against all orders of six blocks: as good in most programs, never far off, and never worse than the source's."""
    chance = random.Random(seed)
    edges = [tuple(sorted(chance.sample(range(7), chance.choice([1, 1, 2, 2, 3])))) for _ in range(6)]
    flow = Ordering(edges)
    best = min(map(flow._weight_up, itertools.permutations(flow.order)))
    assert best <= flow._weight_up(flow.order) <= min(1.5 * best, flow._weight_up(sorted(flow.order)))


def test_long_programs_are_ordered_quickly():
    """No recursion of Python's, nothing that grows with the cube: 1500 blocks in a row, and back."""
    flow = Ordering([*((number + 1,) for number in range(1499)), (0, 1500)])
    assert flow.order == list(range(1500))


def test_the_pass_says_the_order():
    program = order_blocks(tables.fibonacci())
    assert list(program.order) == Ordering(successors(program)).order
