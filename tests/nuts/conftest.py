"""Chains too short to mix are what most tests of the sampler draw: its warnings about them are no news.

The tests of a file share compiled samplers, so one worker of a parallel run has them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::pcbatch.nuts.SamplerWarning"))
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
