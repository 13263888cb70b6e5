"""The array library that a test runs on, and the user's file that tables point to."""

from __future__ import annotations

import linecache

import pytest

from tests.runtime import tables
from tests.runtime.libraries import Library, library_named


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Library:
    """The library that the test's parameter names; NumPy where it names none."""
    return library_named(getattr(request, "param", "numpy"))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's file, as far as messages show it."""
    monkeypatch.setitem(linecache.cache, tables.FILE, (1, None, tables.SOURCE, tables.FILE))
