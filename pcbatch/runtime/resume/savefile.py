"""The container of saved runs: NumPy's npz, without pickle, with a checksum that covers every byte.

The file is a ZIP archive of arrays, one of them a header in JSON, so `numpy.load` reads it too. Its ZIP comment, the
last bytes of the file, ends with the SHA-256 of all bytes before: nothing of a damaged file is ever interpreted.

A checksum says that a file is whole, not who made it. So of a whole file, too, nothing is believed: no size before the
bytes are there, no array but of plain numbers, no header but an object in JSON.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import IO, Any, BinaryIO

import numpy as np

from pcbatch.errors import UsageError

# -- atomic write ------------------------------------------------------------------------------------------------------
# A file is replaced as a whole: written beside it under another name, on the disk, and then given its name.
#
# What a killed process leaves behind is a file `.NAME.xxxxxxxx.part`. Whoever writes one holds a lock on it (`flock`,
# which ends with the process, however it ends), so the next to replace the same file sweeps away every such file that
# nobody holds, and none that another process is writing just now. Where there are no locks (Windows, some network
# disks) nothing is swept.
#
# The new file has the mode of the old one, and its group where that is allowed; a file that was not there has what the
# process's umask says. Where the name is a symbolic link, the file that it leads to is replaced and the link stays.
# Other hard links to the old file keep the old content: a name cannot be given to two files at once.

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


# -- headers -----------------------------------------------------------------------------------------------------------
# The form of a header in JSON, checked before anything of it is believed.
#
# ```
# form ::= type | function | [form] | {str: form} | {"name": form, ..} | (form, ..)
# ```
#
# A type stands for its values (an int is no bool), a function for what it gives True for, a list for lists of any
# length, `{str: form}` for objects with any names, one with names of its own for objects with exactly these, a tuple
# for any one.

LARGEST = 2**62
"""Numbers are counted in int64, and added up."""


def count(value: Any) -> bool:
    """Return whether a value is a number of things."""
    return type(value) is int and 0 <= value < LARGEST


def check(value: Any, form: Any, place: str = "the header") -> None:
    """ValueError, with the place, where the value has not this form."""
    if not _fits(value, form, place):
        raise ValueError(f"{place} is {value!r:.60}")


def _fits(value: Any, form: Any, place: str) -> bool:
    match form:
        case type():
            return form is object or type(value) is form
        case tuple():
            return any(_fits(value, each, place) for each in form)
        case [inner]:
            if type(value) is list:
                for number, each in enumerate(value):
                    check(each, inner, f"{place}[{number}]")
            return type(value) is list
        case dict() if type(value) is not dict:
            return False
        case dict() if str in form:
            for name, each in value.items():
                check(each, form[str], f"{place}[{name!r}]")
            return True
        case dict():
            if value.keys() != form.keys():
                names = ", ".join(sorted(map(repr, value.keys() ^ form.keys())))
                raise ValueError(f"{place} lacks or should not have {names:.100}")
            for name, each in value.items():
                check(each, form[name], f"{place}[{name!r}]")
            return True
    is_right: Callable[[Any], bool] = form
    return is_right(value)


# -- savefile ----------------------------------------------------------------------------------------------------------

SAVED_RUN = "saved run"
MAGIC = b"pcbatch saved run, sha256 "
"""The beginning of a saved run's ZIP comment."""
DIGEST = 64
"""The length of the digest, in hexadecimal."""
HEADER = "header"
_CHUNK = 1 << 22

_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biufcSUV][0-9]{1,9})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,19},)?|[0-9]{1,19}(?:, [0-9]{1,19}){1,63})\), \} *\n",
    re.DOTALL,
)
"""The head of an array as NumPy writes it: dtype, order, shape."""
_HEAD = 10
"""Bytes of it that say how long the rest is."""
_INFLATION = 1100
"""Maximal number of bytes that one of DEFLATE's can expand to."""


def _magic(what: str) -> bytes:
    return f"pcbatch {what}, sha256 ".encode()


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], what: str = SAVED_RUN
) -> None:
    """Write a file that is either all there or not there at all: a file of this name is replaced at the end.

    It says `what` it is.

    Raises OSError where the file cannot be written, UsageError PCB595 for what is no path. How files are replaced, and
    what of the old one is kept, is said in `runtime/replacing.py`.
    """
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # stacks are mostly zeros
            for name, array in {HEADER: text, **arrays}.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, _plain(array), allow_pickle=False)
            archive.comment = _magic(what) + b"0" * DIGEST
        digest = _digest(file, file.seek(0, os.SEEK_END) - DIGEST)
        file.seek(-DIGEST, os.SEEK_END)
        file.write(digest)


def read(path: str | os.PathLike[str], what: str = SAVED_RUN) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file that `write` wrote.

    Raises OSError where it cannot be read, UsageError PCB590 for a damaged file, one that is not `what` it should be,
    or one that has a right checksum and is nevertheless not as `write` writes them; PCB595 for what is no path.
    """
    name, magic = checked_path(path), _magic(what)
    with open(name, "rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - DIGEST - len(magic)))
        end = file.read()
        if end[:-DIGEST] != magic:
            raise UsageError("PCB590", f"{name} is no {what} of pcbatch, or its end is missing")
        if _digest(file, length - DIGEST) != end[-DIGEST:]:
            raise UsageError("PCB590", f"{name} is damaged: its bytes do not have the checksum at its end")
        with interpreting(name, what):
            arrays = _arrays(file, length)
            header = json.loads(arrays.pop(HEADER).tobytes())
            if not isinstance(header, dict):
                raise ValueError("the header is no object")
    return header, arrays


@contextlib.contextmanager
def interpreting(path: str, what: str = SAVED_RUN) -> Iterator[None]:
    """Report any error in the block as the file's fault: PCB590, unless it has a code of saved files already."""
    try:
        yield
    except MemoryError:  # no size is believed, so there was so much
        raise
    except Exception as error:
        if isinstance(error, UsageError) and error.code.startswith("PCB59"):
            raise
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is of an impossible place in the file
            raise
        why = f"{type(error).__name__}: {error}"
        article = "an" if what[0] in "aeiou" else "a"
        raise UsageError(
            "PCB590", f"{path} has the checksum of {article} {what}, and what it says makes none ({why[:200]})"
        ) from error


def _arrays(file: BinaryIO, length: int) -> dict[str, np.ndarray]:
    """The arrays of an archive of `length` bytes, by name; any exception where it is none that `write` wrote."""
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.compress_size for member in members) > length:
            raise ValueError("members overlap")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in found or member.file_size > _INFLATION * (member.compress_size + 1):
                raise ValueError(f"the size or the name of {name!r} is forged")
            with archive.open(member) as content:
                found[name] = _array(content, member.file_size, name)
    return found


def _array(member: IO[bytes], size: int, name: str) -> np.ndarray:
    """The array that a member of the archive holds, of so many bytes: as many as its head says, or none is unpacked."""
    start = member.read(_HEAD)
    head = member.read(int.from_bytes(start[8:], "little"))
    said = _ARRAY.fullmatch(start + head)
    if said is None:
        raise ValueError(f"{name!r} is no array")
    dtype = np.dtype(said[1].decode())
    shape = tuple(int(size) for size in re.findall(rb"[0-9]+", said[3]))
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - len(start) - len(head):
        raise ValueError(f"{name!r} has not the bytes of {dtype}{list(shape)}")
    content = bytearray(member.read())
    order = "F" if said[2] == b"True" else "C"
    if not (dtype.itemsize and math.prod(shape)):
        return np.empty(shape, dtype)
    return np.frombuffer(content, dtype).reshape(shape, order=order)  # type: ignore[call-overload]


def _plain(array: np.ndarray) -> np.ndarray:
    """`array`, as bytes where NumPy's files do not know its dtype (bfloat16)."""
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.kind == "V" else array


def _digest(file: BinaryIO, length: int) -> bytes:
    """The digest of the first `length` bytes."""
    file.seek(0)
    found = hashlib.sha256()
    while length:
        chunk = file.read(min(length, _CHUNK))
        found.update(chunk)
        length -= len(chunk)
    return found.hexdigest().encode()
