"""Source files of Python, of installed packages and of pcbatch itself, as opposed to the user's project.

A leaf module: everything in pcbatch may use it, it uses nothing of pcbatch.
"""

from __future__ import annotations

import sys
import sysconfig
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

OWN = str(Path(__file__).resolve().parent)
"""The folder of pcbatch."""
READ_FILES = ("", "arrays_", "lists_", "numpy_", "stdlib_")
IN_PYTHON = frozenset(str(Path(OWN) / "reading" / f"{name}in_python.py") for name in READ_FILES)
"""The files of pcbatch's own that are read as the user's are."""
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu")
"""The packages that bring TensorFlow; each holds the module of this name."""
_REWRITTEN = "__autograph_generated_file"
"""The beginning of the names of files to which TensorFlow's AutoGraph writes rewritten functions."""


def is_rewritten(file: str) -> bool:
    """Return whether `file` holds user code as rewritten by AutoGraph: lines that the user never saw."""
    return Path(file).name.startswith(_REWRITTEN)


@lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Return whether `file` belongs to Python itself or to an installed package."""
    if file.startswith("<frozen"):
        return True
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or file.startswith(INSTALLED)


def is_users_class(cls: type) -> bool:
    """Return whether a class was defined in the user's code."""
    return is_users_module(cls.__module__)


def is_users_module(name: object) -> bool:
    """Return whether the module of this name is the user's."""
    if not isinstance(name, str) or name in sys.builtin_module_names:
        return False
    if name == "__main__":  # also where a notebook's kernel is the program that runs
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return not isinstance(file, str) or not (is_installed(file) or file.startswith(OWN))


def tensorflow_version() -> str | None:
    """Return the version of the installed TensorFlow without importing it, or None if there is none."""
    for name in TENSORFLOWS:
        with suppress(PackageNotFoundError):
            return version(name)
    return None
