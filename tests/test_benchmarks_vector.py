"""The benchmark of the vector form: its rows, and that all its ways give the same results."""

import pytest

from benchmarks import vector
from benchmarks.against.contestants.pcbatch_vector import WAYS, choose
from benchmarks.against.crew import Figures


@pytest.fixture
def machines():
    """Machines are made as ever again afterwards."""
    yield
    choose("both")


def test_a_row_has_ratios_where_both_were_timed():
    cell = {"apart": Figures(cpu=[0.5, 0.4]), "both": Figures(cpu=[0.2]), "vmap": Figures(failure="no network")}
    assert vector.of_peers("edit_distance", cell) == ["edit distance", "200", "0.50", "", "", "", "", ""]
    assert vector.table(["a", "b"], [["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |", ""]


@pytest.mark.slow
def test_all_ways_agree(machines):
    text = vector.ARM.format(operations=0, arm=vector.ARMS["two stores"][1], one_in=2)
    assert vector.timed(text, WAYS, 5, 1).keys() == WAYS.keys()
