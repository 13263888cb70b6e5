"""Golden files: text that is compared with a file, or written there when UPDATE_GOLDENS is set."""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    """Compare `text` with the file at `path`."""
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    assert golden == text, f"{path.name} differs; UPDATE_GOLDENS=1 rewrites it"
