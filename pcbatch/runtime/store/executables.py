"""XLA's own cache on disk, in a folder of this process alone.

XLA writes what it has compiled to a folder, and reads from it what it would compile again, if the graph is the same to
the letter. It checks nothing: a damaged file there would be run. So it gets a folder of the process, into which only
files go whose checksums were right (`stage`), and out of which new ones are taken (`new`) when a program has run. The
folder is removed when the process ends, or by the next process if it ends badly. What XLA cannot write fails the run;
so where there is no room the folder gives way to a link to one where there is (`move`).

XLA reads where its folder is from the environment variable TF_XLA_FLAGS, before TensorFlow's first operation.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import secrets
import shutil
import tempfile
import threading
import time

from pcbatch.runtime.store.folder import RUNNING

VARIABLE = "TF_XLA_FLAGS"
KIND = ".pb"
"""The end of the names of XLA's finished files."""
WEEK = 7 * 24 * 3600.0
ROOM = 1 << 26
"""Bytes that must be free: a compiled program takes one to ten million."""
MOVED = "pcbatch-running-"
"""The beginning of the names of folders that take the place of the processes' own."""


class Executables:
    """The folder of this process, below `root`, and the files in it that are known."""

    def __init__(self, root: str):
        sweep(root)
        self.path = os.path.join(root, f"{RUNNING}{_host()}-{os.getpid()}-{secrets.token_hex(4)}")
        os.mkdir(self.path, 0o700)
        self._known: set[str] = set()
        self._changed = 0
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._before = os.environ.get(VARIABLE)
        self._flags = (
            f"{self._before or ''} --tf_xla_persistent_cache_directory={self.path} "
            "--tf_xla_persistent_cache_device_types=XLA_CPU_JIT,CPU"
        ).strip()
        os.environ[VARIABLE] = self._flags
        atexit.register(self.close)

    @property
    def are_used(self) -> bool:
        """Return whether there has been any file yet."""
        return bool(self._known)

    def has_room(self) -> bool:
        """Return whether XLA can write there, as far as the file system says."""
        try:
            return shutil.disk_usage(self.path).free >= ROOM
        except OSError:
            return True

    def move(self) -> None:
        """Make XLA write to temporary files, where there is room: the one path it knows becomes a link."""
        with self._lock, contextlib.suppress(OSError):
            if os.path.islink(self.path):
                return
            places = [place for place in (tempfile.gettempdir(), "/dev/shm") if os.access(place, os.W_OK)]
            target = tempfile.mkdtemp(prefix=MOVED, dir=max(places, key=lambda place: shutil.disk_usage(place).free))
            shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)  # where somebody has put a file in its place
            os.symlink(target, self.path)

    def settle(self) -> None:
        """TensorFlow has read its flags: processes that this one starts are not to get them."""
        if os.environ.get(VARIABLE) == self._flags:
            if self._before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = self._before

    def stage(self, name: str, content: bytes) -> None:
        """Let XLA find a file under its `name`, if it is one that XLA could have given."""
        if os.path.basename(name) != name or not name.endswith(KIND) or name.startswith("."):
            return
        with self._lock, contextlib.suppress(OSError):
            part = os.path.join(self.path, f"{name}.part")
            with open(part, "wb") as file:
                file.write(content)
            os.replace(part, os.path.join(self.path, name))
            self._known.add(name)

    def new(self) -> dict[str, bytes]:
        """XLA's files since the last time, by name. Where there are none this takes a microsecond or two."""
        try:
            changed = os.stat(self.path).st_mtime_ns
            if changed == self._changed:
                return {}
            with self._lock:
                found = {}
                for name in sorted(os.listdir(self.path)):
                    if name.endswith(KIND) and name not in self._known:
                        with open(os.path.join(self.path, name), "rb") as file:
                            found[name] = file.read()
                        self._known.add(name)
                # A file that comes right now may leave the folder's time as it is, in the grain of the file system.
                self._changed = changed if time.time_ns() - changed > 10**8 else 0
                return found
        except OSError:
            return {}

    def close(self) -> None:
        """Remove the folder; a process that was forked off leaves it to its parent."""
        self.settle()
        if os.getpid() == self._owner:
            _remove(self.path)


def sweep(root: str) -> None:
    """Remove the remains of processes that have ended."""
    try:
        names = [name for name in os.listdir(root) if name.startswith(RUNNING)]
    except OSError:
        return
    for name in names:
        host, _, rest = name.removeprefix(RUNNING).rpartition("-")[0].rpartition("-")
        path = os.path.join(root, name)
        with contextlib.suppress(OSError):
            is_old = time.time() - os.lstat(path).st_mtime > WEEK
            if is_old or (host == _host() and rest.isdigit() and not _runs(int(rest))):
                _remove(path)


def _remove(path: str) -> None:
    """Remove the folder of a process, or the link that stands for it and the folder that it leads to."""
    with contextlib.suppress(OSError):
        if not os.path.islink(path):
            shutil.rmtree(path)
            return
        target = os.readlink(path)
        os.unlink(path)
        if os.path.basename(target).startswith(MOVED):
            shutil.rmtree(target)


def _host() -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in platform.node())


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
