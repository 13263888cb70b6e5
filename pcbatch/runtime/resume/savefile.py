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
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, BinaryIO

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.runtime.resume.atomic_write import checked_path, replacing

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
