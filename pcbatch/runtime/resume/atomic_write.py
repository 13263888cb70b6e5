"""A file is replaced as a whole: written beside it under another name, on the disk, and then given its name.

What a killed process leaves behind is a file `.NAME.xxxxxxxx.part`. Whoever writes one holds a lock on it (`flock`,
which ends with the process, however it ends), so the next to replace the same file sweeps away every such file that
nobody holds, and none that another process is writing just now. Where there are no locks (Windows, some network disks)
nothing is swept.

The new file has the mode of the old one, and its group where that is allowed; a file that was not there has what the
process's umask says. Where the name is a symbolic link, the file that it leads to is replaced and the link stays. Other
hard links to the old file keep the old content: a name cannot be given to two files at once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from types import ModuleType
from typing import BinaryIO

from pcbatch.errors import UsageError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LONGEST_NAME = 200
"""Bytes of a name; a longer one is not spelt out in that of its part, for names have 255 at most."""


def checked_path(path: str | os.PathLike[str]) -> str:
    """Return `path` as a string; UsageError PCB595 if it cannot name a file."""
    found = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(found, str) or not found or "\0" in found:
        raise UsageError("PCB595", f"a file cannot be called {path!r}; give a path, such as 'run.npz'")
    return found


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to and to read again, which takes the place of `path` when the block ends, unless that raises.

    Raises OSError, of `path`, where there is no such folder, no right to write, no room, or something else of that
    name: a folder, a device. UsageError PCB595 for what is no path.
    """
    name = checked_path(path)
    try:
        before = _old(name)
        target = os.path.realpath(name)
        sweep(target)
        part, file = _part(target)
        try:
            with file:
                _as_before(file.fileno(), before)  # nobody reads the new one who must not
                yield file
                file.flush()
                _as_before(file.fileno(), before)  # to write takes away some bits
                os.fsync(file.fileno())
                if fcntl is None:
                    file.close()
                os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        _sync_folder(os.path.dirname(target))
    except OSError as error:  # of the file that was asked for, not of one with a name that nobody knows
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror or str(error), name) from error


def sweep(target: str) -> None:
    """Remove the remains of new files for `target` that killed processes left."""
    folder = os.path.dirname(target)
    ours = re.compile(re.escape(f".{_stem(target)}.") + r"[0-9a-f]{8}\.part")
    with contextlib.suppress(OSError):
        for found in filter(ours.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):
                _remove_if_nobodys(os.path.join(folder, found))


def _remove_if_nobodys(part: str) -> None:
    if fcntl is None or not stat.S_ISREG(os.lstat(part).st_mode):
        return
    file = os.open(part, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError where it is somebody's
        if _is_at(file, part):
            os.unlink(part)
    finally:
        os.close(file)


def _old(name: str) -> os.stat_result | None:
    """The file that is to be replaced, or nothing."""
    if not os.path.basename(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    try:
        before = os.stat(name)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(before.st_mode):
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced by one", name)
    if not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return before


def _part(target: str) -> tuple[str, BinaryIO]:
    """A new file beside `target`, which this process holds."""
    while True:
        part = os.path.join(os.path.dirname(target), f".{_stem(target)}.{secrets.token_hex(4)}.part")
        file = open(part, "xb+")  # noqa: SIM115
        with contextlib.suppress(OSError):  # no locks here
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if fcntl is None or _is_at(file.fileno(), part):
            return part, file
        file.close()  # swept by another process before it was held


def _is_at(file: int, path: str) -> bool:
    """Return whether the open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _stem(target: str) -> str:
    name = os.path.basename(target)
    return name if len(os.fsencode(name)) <= LONGEST_NAME else hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


def _as_before(file: int, before: os.stat_result | None) -> None:
    """Give the open file the group and the mode of the one that it replaces."""
    if before is None or not hasattr(os, "fchmod"):
        return
    now = os.fstat(file)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        for owner in (before.st_uid, -1):  # root may give files away, others may choose among their groups
            with contextlib.suppress(OSError):
                os.fchown(file, owner, before.st_gid)
                break
    os.fchmod(file, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: str) -> None:
    """Write the new name to the disk, too, where the system lets one."""
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
