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
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pcbatch.errors import UsageError

# -- record format -----------------------------------------------------------------------------------------------------
# A record: some byte strings in one file, with a checksum over all of them.
#
# A file is written beside its place under another name and then given its own, so nobody reads half of one. What was
# damaged later has another checksum, and reads as if it were not there.

MAGIC = b"pcbatch record 1\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8


def packed(parts: Sequence[bytes]) -> bytes:
    """The bytes of a file with `parts`."""
    body = b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)
    return MAGIC + hashlib.sha256(body).digest() + body


def unpacked(raw: bytes) -> list[bytes] | None:
    """Return the parts in the bytes of a file; None where it is no record, or is damaged."""
    start = len(MAGIC) + _DIGEST
    body = raw[start:]
    if not raw.startswith(MAGIC) or hashlib.sha256(body).digest() != raw[len(MAGIC) : start]:
        return None
    parts, place = [], 0
    while place < len(body):
        end = place + _LENGTH + int.from_bytes(body[place : place + _LENGTH], "little")
        parts.append(body[place + _LENGTH : end])
        place = end
    return parts


def read(path: str) -> list[bytes] | None:
    """The parts of the record in a file; None where there is none, or a damaged one, or one that others could write."""
    try:
        with open(
            os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb"
        ) as file:
            found = os.fstat(file.fileno())
            return unpacked(file.read()) if stat.S_ISREG(found.st_mode) and belongs_to_user(found) else None
    except OSError:
        return None


def belongs_to_user(found: os.stat_result) -> bool:
    """Return whether a file or a folder belongs to the user, and nobody else may write to it."""
    return os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def write(path: str, parts: Sequence[bytes]) -> None:
    """Write a record in place of the old one; OSError where that cannot be done."""
    beside = f"{path}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(packed(parts))
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise


# -- folder ------------------------------------------------------------------------------------------------------------

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
    if not belongs_to_user(found):
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
    return stat.S_ISDIR(found.st_mode) and belongs_to_user(found)


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
        found = read(os.path.join(self.path, name)) if self._is_ours else None
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
        write(os.path.join(self.path, name), [self.key.encode(), *parts])


def _place(name: str) -> str:
    """The name of the record of a compiler's file."""
    return hashlib.sha256(name.encode()).hexdigest()[:32] + COMPILED
