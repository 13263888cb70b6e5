"""The page of first calls with a cache: medians by program, and the last ones over the first ones."""

from __future__ import annotations

from benchmarks.cache import HEAD, PROGRAMS, page
from benchmarks.compile_time import ALL


def test_the_page_has_medians_and_their_ratio():
    ways = {"no cache": [9.0, 2.0, 1.0], "first process": [3.0], "second process": [0.5, 0.4]}
    text = "\n".join(page({"Fibonacci": ways}, "Measured here."))
    assert f"| {' | '.join(HEAD)} |" in text
    assert "| Fibonacci, native | 2.00 | 3.00 | 0.45 | 0.23 |" in text
    assert text.endswith("Measured here.")


def test_programs_are_jobs():
    assert PROGRAMS.keys() <= ALL.keys()
