"""Chains too short to mix are what most tests of the sampler draw: its warnings about them are no news."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning"))
