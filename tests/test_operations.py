"""The page of operations says what a run finds; operands that all lanes share are handled like those that differ."""

from __future__ import annotations

import pytest

from tools.operations.catalogue import cases
from tools.operations.page import PAGE, page, row
from tools.operations.trial import operand_variants, tried, tried_gradient, tried_with_shared

EXPRESSIONS = tuple(cases())
SAMPLE = EXPRESSIONS[3::17]
SLOPES = EXPRESSIONS[5::67]


def test_the_page_has_every_expression_once():
    assert len(EXPRESSIONS) >= 200
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [line.split("` | ")[0].removeprefix("| `") for line in rows] == list(EXPRESSIONS)


@pytest.mark.parametrize("expression", SAMPLE)
def test_the_page_says_what_is_found(expression):
    without_gradient, _, _ = row(tried(expression, gradients=False)).rpartition(" | ")
    assert without_gradient in {line.rpartition(" | ")[0] for line in PAGE.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("expression", SLOPES)
def test_the_page_says_what_becomes_of_the_gradient(expression):
    (known,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{expression}`"))
    *_, graph, xla, _, said, _ = known.split(" |")
    refused = [mode.strip().startswith("PCB") for mode in (graph, xla)]
    assert said.strip() == ("no" if all(refused) else tried_gradient(expression, jit=not refused[1]))


@pytest.mark.slow
def test_the_whole_page():
    assert page([tried(expression) for expression in EXPRESSIONS]) == PAGE.read_text(encoding="utf-8")


def accepted() -> list[str]:
    """The expressions that the page says a graph accepts."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    rows = {line.split("` | ")[0].removeprefix("| `"): line for line in lines if line.startswith("| `")}
    return [expression for expression in EXPRESSIONS if rows.get(expression, "").split(" | ")[2:3] == ["yes"]]


def refused_when_shared(expressions: list[str]) -> dict[str, list[tuple[str, ...]]]:
    """The expressions that are refused once some operands are the same for all lanes, and which."""
    refused: dict[str, list[tuple[str, ...]]] = {}
    for expression in expressions:
        for names in operand_variants(expression):
            if tried_with_shared(expression, names, jit=False).code:
                refused.setdefault(expression, []).append(names)
    return refused


OURS = [
    line.split("` | pcbatch")[0].removeprefix("| `") for line in PAGE.read_text().splitlines() if "| pcbatch" in line
]


@pytest.mark.parametrize("expression", [e for e in OURS if len(list(operand_variants(e))) > 0][::3])
def test_shared_operands_of_our_rules(expression):
    assert refused_when_shared([expression]) == {}


@pytest.mark.slow
def test_shared_operands_of_all():
    assert refused_when_shared(accepted()) == {}
