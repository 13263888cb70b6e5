"""The examples run, and print what their comments promise."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tools import gallery

EXAMPLES = Path(__file__).parent.parent / "examples"

SAID = {
    "ackermann": ["    3     5    13    29    61   125   253", "is 2 ** (n + 3) - 3: True"],
    "adaptive_simpson": [],
    "bisection": ["     81.00      1e-10        37   4.326748710", "      0.81      1e-10        35   1.790524886"],
    "collatz": [],
    "edit_distance": ["    kitten    sitting         3       3", " intention  execution         5       5"],
    "fibonacci": ["fibonacci([3, 7, 4, 5]) = [ 3 21  5  8]"],
    "gcd": [],
    "implied_volatility": ["plain Python: 0.215100, 19 halvings", "4 to 19 halvings"],
    "minimax": ["  0: [1, 2, 3, 5, 6, 7, 8]\n  1: [3, 5, 6, 8]\n  4: [1, 3, 5, 7]\n"],  # the rest draws
    "mutual_recursion": [
        "-(12 - 7) * -4 =   20, Python says 20",
        "((((8)))) / 3 - 100 =  -98, Python says -98",
        "lane 5 (ASSERTION): AssertionError: character 4 should close a bracket",
        "lane 6 (ARITHMETIC): ZeroDivisionError",
    ],
    "nqueens": ["    8     92     92  [ 4  8 16 18 18 16  8  4]"],
    "quicksort": [],
    "rejection": ["largest difference to a batch of ten: 0.0"],
    "rk45": [],
    "rnn": ["1 compilation"],
    "stacks": ["local    135  [ 3 21  5  8]", "pc     93  [ 3 21  5  8]"],
    "tree_sum": [],
}
"""What each example prints."""


def printed_by(name, capsys):
    """What an example prints."""
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.main()
    return capsys.readouterr().out


def numbers(pattern, text):
    """The numbers in each match of `pattern`."""
    found = [tuple(float(number) for number in match) for match in re.findall(pattern, text, re.MULTILINE)]
    assert found
    return found


def test_every_example_is_run_here():
    assert set(SAID) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ("nqueens", "rejection") else name for name in SAID]
)
def test_example(name, capsys, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(EXAMPLES)  # as for a script that runs there
    monkeypatch.chdir(tmp_path)
    printed = printed_by(name, capsys)
    for line in SAID[name]:
        assert line in printed
    assert "nan" not in printed
    CLAIMS.get(name, lambda printed: None)(printed)
    shown = [line for line in gallery.bodies()[name].splitlines()[1:-1] if "e-" not in line and line != "..."]
    assert all(line in printed for line in shown), "python -m tools.gallery writes what examples print"


# -- what their first lines claim --------------------------------------------------------------------------------------


def the_worst_lane_decides(printed):
    together, alone = numbers(r"(\d+) block runs for 24 lanes, (\d+) for the last", printed)[0]
    assert together < 1.1 * alone
    assert "stacks of 513 entries" in printed


def together_is_cheaper(printed):
    together, alone = numbers(r"(\d+) block runs for 30 lanes together, (\d+) one after", printed)[0]
    assert together < alone / 3


def zero_within_tolerance(printed):
    for tolerance, halvings, remainder in numbers(r"(\de-\d+) +(\d+) +\d+\.\d+ +(-?\de[-+]\d+)$", printed):
        assert abs(remainder) < 100 * tolerance
        assert 2**-halvings <= tolerance


def all_in_order(printed):
    assert printed.count(" True ") == 6
    turns = dict(re.findall(r"(\w+) +True +(\d+)", printed))
    assert int(turns["sorted"]) > 2 * int(turns["random"])


def moments_of_gamma(printed):
    for shape, mean, variance, proposals in numbers(r"^ +(\d+\.\d) +(\S+) +(\S+) +(\S+)$", printed):
        assert mean == pytest.approx(shape, rel=0.05)
        assert variance == pytest.approx(shape, rel=0.2)
        assert 1.0 < proposals < 1.1


def stiff_lanes_take_more_steps(printed):
    rows = numbers(r"^ +(\d+\.\d) +-0\.839\d+ +(\S+) +(\d+) +(\d+)$", printed)
    assert all(abs(error) < 1e-8 and accepted <= tried for _, error, accepted, tried in rows)
    assert rows[-1][2] > 50 * rows[0][2]


CLAIMS = {
    "ackermann": the_worst_lane_decides,
    "bisection": zero_within_tolerance,
    "nqueens": together_is_cheaper,
    "quicksort": all_in_order,
    "rejection": moments_of_gamma,
    "rk45": stiff_lanes_take_more_steps,
}
