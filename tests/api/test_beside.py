"""TensorFlow programs in the same process find TensorFlow as it is: after pcbatch is imported, after batched calls."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "beside.py"
pytestmark = pytest.mark.xdist_group("beside")  # whose processes run once


@pytest.fixture(scope="module")
def reports():
    """Without pcbatch at first and in the end; then after its import, after batched calls."""
    started = [
        subprocess.Popen([sys.executable, SCRIPT, way], stdout=subprocess.PIPE, text=True)
        for way in ("alone", "beside")
    ]
    found = []
    for process in started:
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        found += json.loads(text.splitlines()[-1])
    return found


def test_programs_beside_pcbatch(reports):
    """After batched calls: what the import alone does is there then, too."""
    assert reports[3]["outcomes"] == reports[1]["outcomes"]


@pytest.mark.parametrize("when", [0, 1], ids=["after its import", "after batched calls"])
def test_the_state_of_tensorflow(reports, when):
    for part, alone in reports[when]["state"].items():
        assert reports[2 + when]["state"][part] == alone, part


def test_the_programs_are_not_all_errors(reports):
    wrong = {name for name, outcome in reports[1]["outcomes"].items() if isinstance(outcome, str)}
    assert wrong == {"QR, no fallback", "loop, XLA", "ragged list", "a list in itself", "a bad operand"}
