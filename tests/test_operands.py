"""Operations whose operands are captured, constant, written down, or Python's numbers: as where all are a lane's."""

from __future__ import annotations

import pytest

from tools.operations.operands import accepted, variants, wrong

TOGETHER = 40
"""How many are one program."""
XLA = [each for expression in accepted(True) for each in variants(expression)]
GRAPH = [each for expression in accepted(False) for each in variants(expression)]
ALONE = [
    each
    for each in XLA
    if (each.expression.startswith(("tf.pad", "tf.tensor_scatter_nd_update(x")) and each.form in ("captured", "weak"))
    or (each.expression.startswith("tf.cond(t") and each.form == "written")
]
"""Some that were refused."""


def parts(variants: list) -> list:
    return [variants[start : start + TOGETHER] for start in range(0, len(variants), TOGETHER)]


@pytest.mark.parametrize("jit", [True, False], ids=["xla", "graph"])
def test_some_operands_of_any_form(jit: bool) -> None:
    some = (XLA if jit else GRAPH)[11::31]
    assert {each.form for each in some} == {"captured", "constant", "written", "weak"}
    assert wrong([*ALONE, *some], jit=jit) == {}


@pytest.mark.slow
@pytest.mark.parametrize("some", parts(XLA), ids=lambda some: str(some[0]))
def test_operands_of_any_form_under_xla(some: list) -> None:
    assert wrong(some, jit=True) == {}


@pytest.mark.slow
@pytest.mark.parametrize("some", parts(GRAPH), ids=lambda some: str(some[0]))
def test_operands_of_any_form_in_a_graph(some: list) -> None:
    assert wrong(some, jit=False) == {}
