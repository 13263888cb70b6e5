"""Set-up of the test session: a quiet TensorFlow on few threads, repeatable properties, the folder of real data."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # figures and tolerances of the tests are those of a CPU
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "2")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")

import pytest
from hypothesis import settings

# Tests repeat exactly: the same generated programs on every machine, and none too slow because the machine is busy.
settings.register_profile("pcbatch", derandomize=True, deadline=None, database=None)
settings.load_profile("pcbatch")

SLOW = Path(__file__).with_name("slow.txt")
"""The tests of which a quick one has the kind and that took more than 1.5 seconds of a CPU, by their names."""
collect_ignore = ["found"]  # programs that tests read; some are refused where they are imported

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Keep the garbage collector off, for tests that press Ctrl-C in this process.

    An exception of a signal handler that runs inside a function of `gc.callbacks`, as hypothesis has one, is lost; and
    Python may collect at the very moment at which it handles a signal.
    """
    gc.disable()
    yield
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Import ArviZ before the workers of a parallel run do.

    At its first import of a day it writes a file, and two that do so at once fail; it warns then, of itself.
    """
    if getattr(config.option, "numprocesses", None):
        with warnings.catch_warnings(), contextlib.suppress(ImportError):
            warnings.simplefilter("ignore")
            importlib.import_module("arviz")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `slow.txt` lists, and let the runs of one corpus program follow each other.

    What modes share is found out once where they do.
    """
    slow = {*SLOW.read_text().splitlines()}
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)

    def program(item: pytest.Item) -> str:
        in_corpus = item.nodeid.startswith("tests/test_corpus.py") and hasattr(item, "callspec")
        return item.callspec.params.get("name", "") if in_corpus else ""

    items.sort(key=program)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run where pytest-xdist is asked to keep groups together and does not: what they share is made twice."""
    if getattr(session.config.option, "loadgroup", False):
        groups = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group")]
        if not all("@" in name for name in groups):
            raise pytest.UsageError("this pytest-xdist does not group tests under this pytest; install pytest<9.2")


@pytest.fixture(scope="session")
def pcbatch_data() -> Path:
    """The folder that the environment variable PCBATCH_DATA names; tests that need real data are skipped without it."""
    folder = os.environ.get("PCBATCH_DATA")
    if not folder:
        pytest.skip("PCBATCH_DATA is not set: it names the folder with the real data sets")
    return Path(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have recorded with `record_property`, from the workers of a parallel run too."""
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for title, text in report.user_properties:
            terminalreporter.section(title)
            terminalreporter.write_line(text)
