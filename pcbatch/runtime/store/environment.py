"""The environment that compiled programs depend on: versions, the processor, flags."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pcbatch.installed import OWN
from pcbatch.version import __version__

FLAGS = ("TF_", "XLA_", "PCBATCH_", "OMP_", "MKL_", "KERAS_")
"""The beginnings of the names of variables that influence compilation."""
OTHERS = re.compile(r"PCBATCH_(CACHE|VERIFY|DATA)|TF_CPP_(MIN|MAX)_\w+|XLA_FLAGS_CACHE")
"""Variables with such names that do not."""


def digest(*more: Any) -> str:
    """A hexadecimal digest of the environment, of `more` that the array library says of itself, too."""
    found = ([*_own(OWN)], sys.version, platform.platform(), [*_installed()], _processor(), cores())
    more = (*more, *flags(os.environ))
    return hashlib.sha256(repr((__version__, found, more)).encode()).hexdigest()[:32]


def flags(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the environment variables that change compiled code, in order."""
    names = (name for name in variables if name.startswith(FLAGS) and not OTHERS.fullmatch(name))
    return ((name, variables[name]) for name in sorted(names))


def cores() -> int:
    """The number of cores that this process may use: XLA splits large loops accordingly."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _own(folder: str) -> Iterator[tuple[str, int, int]]:
    """The files of pcbatch, their sizes, and when each was written: a version in development is many."""
    with os.scandir(folder) as found:
        for each in sorted(found, key=lambda each: each.name):
            if each.is_dir(follow_symlinks=False):
                yield from _own(each.path)
            elif each.name.endswith(".py"):
                about = each.stat()
                yield each.path.removeprefix(OWN), about.st_size, about.st_mtime_ns


def _installed() -> Iterator[tuple[str, int]]:
    """The packages that are installed, with their versions, and when each was installed."""
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *_sites(), *sys.path}
    for place in sorted(filter(os.path.isdir, places)):
        with os.scandir(place) as found:
            for each in sorted(found, key=lambda each: each.name):
                if each.name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth")):
                    yield each.name, each.stat().st_mtime_ns


def _sites() -> list[str]:
    return [*site.getsitepackages(), site.getusersitepackages()]


def _processor() -> tuple[str, ...]:
    """The processor's name and its instructions."""
    found: tuple[str, ...] = (platform.machine(), platform.processor())
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return found
    first = text.partition("\n\n")[0].splitlines()
    return (*found, *(line for line in first if line.startswith(("flags", "Features", "model name", "CPU part"))))
