"""Strategies by which Python decides, while a run goes on, what runs next: none can become part of a caller's graph."""

from __future__ import annotations

from pcbatch.errors import UsageError
from pcbatch.runtime.backends.protocol import Backend


def require_host(backend: Backend, option: str, function: str) -> None:
    """UsageError PCB536 inside a graph, where nothing is known yet that `option` could decide by."""
    if not backend.runs_now():
        inside = f"inside a {backend.spelling('function')}"
        raise UsageError(
            "PCB536",
            f"{option} decides on the host what runs next, which {inside} there is none; call {function} outside, "
            "or leave the defaults (backend='tensorflow', strategy='pc')",
        )
