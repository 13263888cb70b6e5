"""The text of the pages in docs/figures is what benchmarks write: drawing one again changes figures only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks import cache
from benchmarks.nuts import adaptation
from benchmarks.nuts import pages as nuts
from benchmarks.nuts.end_to_end import report as end_to_end
from benchmarks.nuts.end_to_end.crew import Question
from benchmarks.training import report as training
from benchmarks.trees import report as trees

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
WITHOUT_FIGURES: dict[str, Iterable[str]] = {
    "nuts": [nuts.INTRODUCTION],
    "nuts-end-to-end": end_to_end.page({}, Question(32, 300, 100, 1000.0, 1600, 60.0), ""),
    "nuts-adaptation": [adaptation.INTRODUCTION.format(chains=8, warmup=500, draws=500, seeds=1)],
    "training": training.page({}, {"pcbatch": []}, [], 64, ""),
    "trees": trees.page({}, "trees.png", ""),
    "cache": cache.page({}, ""),
}
"""The text of each page that does not depend on what was measured."""


@pytest.mark.parametrize("page", WITHOUT_FIGURES)
def test_pages_of_figures_have_the_text_of_their_benchmarks(page):
    shown = (FIGURES / f"{page}.md").read_text(encoding="utf-8")
    for text in WITHOUT_FIGURES[page]:
        assert text.startswith("|") or text in shown
