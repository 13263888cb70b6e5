"""The folder of a cache: entries of programs, below a folder for each environment; the oldest go when it is full.

    FOLDER/ENVIRONMENT/KEY/program        the traced program, see the backend
    FOLDER/ENVIRONMENT/KEY/HASH.compiled  a file of its compiler's, with its name
    FOLDER/ENVIRONMENT/KEY/outline        what a call needs of a program that was read, see `llvm.machine_code`
    FOLDER/running-HOST-PID-xxxx/         where a process's compiler reads and writes, see `executables`

Every file is a record with a checksum and the key, so what is damaged, or lies in another's place, is no entry. Nor is
what another user owns, or may write to: the folders on the way, and each file, are looked at whenever one is read.
Several processes may share the folder: files appear whole, and one that another process has removed is a miss.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pcbatch.errors import UsageError
from pcbatch.runtime.store import record_format

PROGRAM, OUTLINE = "program", "outline"
COMPILED = ".compiled"
RUNNING = "running-"
"""The beginning of the names of the folders of processes."""


def prepared(folder: str | os.PathLike[str]) -> str:
    """The folder, made if it is not there, for its owner alone; UsageError PCB575 where it cannot be used.

    What is in it is run: so it must belong to the user, and nobody else may write to it.
    """
    path = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(path, str) or not path or "\0" in path:
        raise UsageError("PCB575", f"a cache must have the path of a folder, not {folder!r}")
    path = os.path.abspath(os.path.expanduser(path))
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError("PCB575", f"{path!r} cannot be a cache: {error.strerror or error}") from None
    if not record_format.is_ours(found):
        raise UsageError(
            "PCB575",
            f"{path!r} cannot be a cache: others may write to it, and what is in a cache is run\n"
            "  help: name a folder of your own, which `chmod 700` makes one, or one that is not there yet",
        )
    return path


def is_ours(path: str) -> bool:
    """Return whether a path is a folder (no link to one) that the user owns and nobody else may write to."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and record_format.is_ours(found)


@dataclass(frozen=True)
class Folder:
    """The entries of one environment in the folder `root`, all of which take at most `limit` bytes."""

    root: str
    environment: str
    limit: int

    def entry(self, key: str) -> Entry:
        """The entry of a program, by a hexadecimal digest of all that it depends on; it need not be there."""
        return Entry(self, key, os.path.join(self.root, self.environment, key))

    def make_room(self, keep: str) -> None:
        """Remove the entries used longest ago until all of them fit, but not the one of the path `keep`."""
        found = [(used, size, path) for path, size, used in self._entries()]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)
                total -= size

    def _entries(self) -> Iterator[tuple[str, int, float]]:
        """Path, bytes and time of last use of each entry of every environment."""
        for environment in _folders(self.root):
            if os.path.basename(environment).startswith(RUNNING):
                continue
            for entry in _folders(environment):
                with contextlib.suppress(OSError):
                    sizes = [each.stat().st_size for each in os.scandir(entry)]
                    yield entry, sum(sizes), os.stat(entry).st_mtime
            with contextlib.suppress(OSError):
                os.rmdir(environment)  # one that is empty


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as found:
            return sorted(each.path for each in found if each.is_dir(follow_symlinks=False))
    except OSError:
        return []


@dataclass(frozen=True)
class Entry:
    """The files of one program."""

    folder: Folder
    key: str
    path: str

    def program(self) -> list[bytes] | None:
        """The parts of the traced program, used now; None where there is none."""
        return self._used(PROGRAM)

    def outline(self) -> bytes | None:
        """The outline of a program that was read, used now; None where there is none."""
        found = self._used(OUTLINE)
        return found[0] if found is not None and len(found) == 1 else None

    def _used(self, name: str) -> list[bytes] | None:
        found = self._read(name)
        if found is not None:
            with contextlib.suppress(OSError):
                os.utime(self.path)
        return found

    def compiled(self) -> Iterator[tuple[str, bytes]]:
        """The names and contents of its compiler's files."""
        try:
            names = sorted(os.listdir(self.path)) if self._is_ours else []
        except OSError:
            return
        for name in (name for name in names if name.endswith(COMPILED)):
            found = self._read(name)
            if found is not None and len(found) == 2:
                file = found[0].decode(errors="replace")
                if _place(file) == name:
                    yield file, found[1]

    def put_program(self, parts: Sequence[bytes]) -> None:
        """Keep the parts of a traced program; OSError where that cannot be."""
        self._write(PROGRAM, parts)

    def put_outline(self, content: bytes) -> None:
        """Keep an outline; OSError where that cannot be."""
        self._write(OUTLINE, [content])

    def put_compiled(self, name: str, content: bytes) -> None:
        """Keep one of its compiler's files; OSError where that cannot be."""
        self._write(_place(name), [name.encode(), content])

    def remove(self) -> None:
        """Forget the program."""
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _is_ours(self) -> bool:
        """Return whether the folders on the way to its files are the user's alone: others could put programs there."""
        return all(is_ours(path) for path in (os.path.dirname(self.path), self.path))

    def _read(self, name: str) -> list[bytes] | None:
        found = record_format.read(os.path.join(self.path, name)) if self._is_ours else None
        return found[1:] if found and found[0] == self.key.encode() else None

    def _write(self, name: str, parts: Sequence[bytes]) -> None:
        try:
            self._put(name, parts)
        except FileNotFoundError:  # another process has removed a folder on the way, which was empty or the oldest
            self._put(name, parts)
        self.folder.make_room(keep=self.path)

    def _put(self, name: str, parts: Sequence[bytes]) -> None:
        for path in (os.path.dirname(self.path), self.path):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
        if not self._is_ours:
            raise PermissionError(errno.EACCES, "a folder in it is another user's, or others may write to it")
        record_format.write(os.path.join(self.path, name), [self.key.encode(), *parts])


def _place(name: str) -> str:
    """The name of the record of a compiler's file."""
    return hashlib.sha256(name.encode()).hexdigest()[:32] + COMPILED
