"""The container of saved runs: NumPy's npz, without pickle, with a checksum that covers every byte.

The file is a ZIP archive of arrays, one of them a header in JSON, so `numpy.load` reads it too. Its ZIP comment, the
last bytes of the file, ends with the SHA-256 of all bytes before: nothing of a damaged file is ever interpreted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcbatch.diagnostics import UsageError

MAGIC = b"pcbatch saved run, sha256 "
DIGEST = 64
"""The length of the digest, in hexadecimal."""
HEADER = "header"
_CHUNK = 1 << 22


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that is either all there or not there at all: a file of this name is replaced at the end.

    Raises OSError where the file cannot be written.
    """
    path = Path(_named(path))
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb+") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # stacks are mostly zeros
                for name, array in {HEADER: text, **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, _plain(array), allow_pickle=False)
                archive.comment = MAGIC + b"0" * DIGEST
            digest = _digest(file, file.seek(0, os.SEEK_END) - DIGEST)
            file.seek(-DIGEST, os.SEEK_END)
            file.write(digest)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file that `write` wrote.

    Raises OSError where it cannot be read, UsageError PCB590 for a damaged file or one that is no saved run.
    """
    with open(_named(path), "rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - DIGEST - len(MAGIC)))
        end = file.read()
        if end[:-DIGEST] != MAGIC:
            raise UsageError("PCB590", f"{os.fspath(path)} is no saved run of pcbatch, or its end is missing")
        if _digest(file, length - DIGEST) != end[-DIGEST:]:
            raise UsageError("PCB590", f"{os.fspath(path)} is damaged: its bytes do not have the checksum at its end")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop(HEADER).tobytes()), arrays


def _named(path: str | os.PathLike[str]) -> str:
    """The text of a path; UsageError PCB504 for what names no file."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(text, str) or not Path(text).name or "\0" in text:
        raise UsageError("PCB504", f"a path must name a file, not {path!r}")
    return text


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
