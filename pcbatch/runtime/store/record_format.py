"""A record: some byte strings in one file, with a checksum over all of them.

A file is written beside its place under another name and then given its own, so nobody reads half of one. What was
damaged later has another checksum, and reads as if it were not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Sequence

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
            return unpacked(file.read()) if stat.S_ISREG(found.st_mode) and is_ours(found) else None
    except OSError:
        return None


def is_ours(found: os.stat_result) -> bool:
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
