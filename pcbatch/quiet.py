"""TensorFlow's log while it is imported, held to the level that is set for it afterwards.

TensorFlow writes lines of its C++ log when it is imported, before it has read TF_CPP_MIN_LOG_LEVEL: information on
processors and missing GPUs, six lines of it in a notebook. Here they go by that variable as later ones do; where it is
not set, only a machine with a GPU shows warnings. A leaf module: it uses nothing of pcbatch.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
LETTERS = "IWEF"
"""Information, warnings, errors and fatal errors: levels 0 to 3."""
DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of GPUs, where a warning may say why TensorFlow does not use one."""
_LINE = re.compile(rb"(?:\d{4}-\d\d-\d\d [\d:.]+: )?([IWEF])(?:\d{4} | tensorflow/|[\w ]*external/)")
_HEADING = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"


def usual_level() -> str:
    """The level where the user has set none: nothing, on a machine with a GPU warnings and errors."""
    return "1" if any(map(os.path.exists, DEVICES)) else "3"


def kept(lines: bytes, level: int) -> bytes:
    r"""The lines of a log that are of `level` at least, and all that are no log's.

    >>> kept(b"I0000 00:00:17.8 1 port.cc:153] oneDNN is on.\nW0000 00:00:17.9 1 gpu.cc:7] No libcudnn.\nhello\n", 1)
    b'W0000 00:00:17.9 1 gpu.cc:7] No libcudnn.\nhello\n'
    """
    return b"".join(line for line in lines.splitlines(keepends=True) if level <= 0 or not _is_below(line, level))


def _is_below(line: bytes, level: int) -> bool:
    match = _LINE.match(line)
    return line.startswith(_HEADING) if match is None else LETTERS.index(match[1].decode()) < level


@contextmanager
def filtered() -> Iterator[None]:
    """Hold back the messages to standard error inside that TF_CPP_MIN_LOG_LEVEL excludes.

    The rest follows at the end, all of it after an exception. The variable is set inside only, if nobody has set it.
    """
    chosen = os.environ.get(VARIABLE)
    level = usual_level() if chosen is None else chosen
    if not level.isdecimal() or int(level) == 0:
        yield
        return
    with _held(int(level)):
        if chosen is not None:
            yield
            return
        os.environ[VARIABLE] = level
        try:
            yield
        finally:
            os.environ.pop(VARIABLE, None)


@contextmanager
def _held(level: int) -> Iterator[None]:
    """Redirect output past Python to standard error to a file; at the end pass on its lines of `level`."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        real = os.dup(2)
    except (OSError, ValueError):  # a process without standard error
        yield
        return
    import tempfile  # only now, as it takes a while

    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, unless there is no room for it
    except OSError:
        os.close(real)
        yield
        return
    with file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        except BaseException:
            level = 0
            raise
        finally:
            os.dup2(real, 2)
            os.close(real)
            file.seek(0)
            _write(kept(file.read(), level))


def _write(rest: bytes) -> None:
    while rest:
        try:
            rest = rest[os.write(2, rest) :]
        except OSError:
            return


class _Finder:
    """A finder that makes the first import of TensorFlow quiet, whoever makes it, and removes itself."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "tensorflow":
            return None
        finders = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
        found = next(filter(None, (each.find_spec(name, path, target) for each in finders)), None)
        loader: Any = found.loader if found is not None else None
        if not hasattr(loader, "exec_module"):
            return found
        execute = loader.exec_module

        def execute_quietly(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            with filtered():
                execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)

        with suppress(AttributeError):  # of a loader that takes no attributes, which goes on as it is
            loader.exec_module = execute_quietly
        return found


def expect_tensorflow() -> None:
    """Let TensorFlow's import be quiet, if it is still to come."""
    if "tensorflow" not in sys.modules and not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
