"""The cache of this process: none, unless `pcbatch.cache(..)` or the environment variable PCBATCH_CACHE names a folder.

Nothing here fails a run: what cannot be written is told once, as a warning, and is compiled again next time.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import site
import sys
import sysconfig
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pcbatch.errors import Span, UsageError
from pcbatch.installed import OWN
from pcbatch.runtime.store.executables import Executables
from pcbatch.runtime.store.folder import Entry, Folder, prepared
from pcbatch.version import __version__

# -- environment -------------------------------------------------------------------------------------------------------
# The environment that compiled programs depend on: versions, the processor, flags.

FLAGS = ("TF_", "XLA_", "PCBATCH_", "OMP_", "MKL_", "KERAS_")
"""The beginnings of the names of variables that influence compilation."""
OTHERS = re.compile(r"PCBATCH_(CACHE|VERIFY|DATA)|TF_CPP_(MIN|MAX)_\w+|XLA_FLAGS_CACHE")
"""Variables with such names that do not."""


def environment_digest(*more: Any) -> str:
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


# -- cache session -----------------------------------------------------------------------------------------------------

VARIABLE = "PCBATCH_CACHE"
LIMIT = 1 << 30
"""Bytes that a cache takes at most, unless another limit is given: a program takes one to ten million."""


@dataclass(frozen=True)
class Name:
    """The name of a program on disk: `digest()` of all that it is made of, None where that is not known.

    `part` tells apart what is compiled of one program; `note(hit)` is told what became of it. `notes` has what was
    found out about places in the source while it was traced, which who finds it is to be told, too.
    """

    digest: Callable[[], str | None]
    part: tuple[Any, ...]
    note: Callable[[bool], None]
    notes: MutableMapping[tuple[Span | None, str], None] = field(default_factory=dict)

    def told(self) -> list[Any]:
        """Return the notes as plain data: place, the text there, and the remark."""
        return [[span and astuple(span), span and span.text, text] for span, text in self.notes]

    def tell(self, told: list[Any]) -> bool:
        """Take over such notes; False where a place has changed: the same program may lie elsewhere now."""
        found = [(place and Span(*place), line, text) for place, line, text in told]
        if any(span is not None and span.text != line for span, line, _ in found):
            return False
        self.notes.update(dict.fromkeys((span, text) for span, _, text in found))
        return True


@dataclass
class Store:
    """A folder that is open."""

    root: str
    limit: int
    executables: Executables
    _folder: Folder | None = field(default=None, init=False)
    _warned: bool = field(default=False, init=False)
    _writing: list[threading.Thread] = field(default_factory=list, init=False)

    def entry(self, digest: str, part: Sequence[Any], library: Sequence[Any]) -> Entry:
        """The entry of a program, whatever else tells it apart, under the array `library` that says so much of itself.

        The library has started, so it has read its flags. What this process keeps `later` is there by now.
        """
        self.settle()
        if self._folder is None:
            self.executables.settle()
            self._folder = Folder(self.root, environment_digest(*library), self.limit)
        if not self.executables.has_room():
            self.executables.move()
        key = hashlib.sha256(repr((digest, cores(), *part)).encode()).hexdigest()
        return self._folder.entry(key)

    def load_compiled(self, entry: Entry) -> None:
        """Let the compiler find its earlier results for this program."""
        for name, content in entry.compiled():
            self.executables.stage(name, content)

    def keep_compiled(self, entry: Entry) -> None:
        """Keep the compiler's results since the last time."""
        for name, content in self.executables.new().items():
            self.trying(partial(entry.put_compiled, name, content))

    def give_way(self, error: Exception) -> None:
        """Let the compiler write elsewhere, and warn, once, if `error` says that it could not write."""
        if self.executables.path in str(error):
            self.executables.move()
            if not self._warned:
                self._warn(f"the cache {self.root!r} cannot be written; the next process will compile anew")

    def miss_compiled(self) -> None:
        """Warn, once, if the compiler has kept nothing though it has compiled."""
        if not self._warned and not self.executables.are_used:
            self._warn(
                "XLA does not keep what it compiles: TensorFlow had read its flags before there was a cache; call "
                "pcbatch.cache(..), or import pcbatch where PCBATCH_CACHE is set, before TensorFlow's first operation"
            )

    def later(self, write: Callable[[], None]) -> None:
        """The same as `trying`, in a thread of its own, for which the process waits before it ends."""
        thread = threading.Thread(target=self.trying, args=(write,), name="pcbatch-cache")
        try:
            thread.start()
        except RuntimeError:  # Python ends, or there may be no more threads
            self.trying(write)
        else:
            self._writing.append(thread)

    def settle(self) -> None:
        """Wait until all is written."""
        writing, self._writing = self._writing, []
        for each in writing:
            each.join()

    def trying(self, write: Callable[[], None]) -> None:
        """`write()`; a warning, once, where there is no room for it or no right to."""
        try:
            write()
        except OSError as error:
            if not self._warned:
                why = f"the cache {self.root!r} cannot be written: {error.strerror or error}"
                self._warn(f"{why}; the next process will compile anew")

    def _warn(self, text: str) -> None:
        self._warned = True
        warnings.warn(text, RuntimeWarning, stacklevel=2)


@dataclass
class _Process:
    """The cache that is open, and the one folder in which XLA reads and writes: it asks only once where that is."""

    store: Store | None = None
    executables: Executables | None = None


_process = _Process()
_lock = threading.Lock()


def current() -> Store | None:
    """The cache of this process, if it has one."""
    return _process.store


def use(folder: str | os.PathLike[str] | None, limit: int = LIMIT) -> None:
    """Keep compiled programs in `folder` from now on, or with None no longer; UsageError PCB575."""
    if not isinstance(limit, int) or limit <= 0:
        raise UsageError("PCB575", f"a cache takes a positive number of bytes at most, not {limit!r}")
    path = None if folder is None else prepared(folder)
    with _lock:
        if path is None:
            _process.store = None
            return
        if _process.executables is None:
            try:
                _process.executables = Executables(path)
            except OSError as error:
                raise UsageError("PCB575", f"{path!r} cannot be a cache: {error.strerror or error}") from None
        _process.store = Store(path, limit, _process.executables)


def use_environment() -> None:
    """Keep them in the folder that PCBATCH_CACHE names; a warning where it cannot be used."""
    try:
        use(os.environ[VARIABLE])
    except UsageError as error:
        warnings.warn(f"{VARIABLE} is of no use: {error}", RuntimeWarning, stacklevel=2)
