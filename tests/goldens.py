"""Golden files: text that is compared with a file, or written there when UPDATE_GOLDENS is set."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    """Compare `text` with the file at `path`."""
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    assert of_any_python(golden) == of_any_python(text), f"{path.name} differs; UPDATE_GOLDENS=1 rewrites it"


def of_any_python(text: str) -> str:
    """`text`, in which Python 3.10's `ast.unparse` puts tuples that are assigned to in parentheses, others do not."""
    if sys.version_info >= (3, 11):
        return text
    return re.sub(r"^(\s*(?:update |push )?)\((.*)\) = ", r"\1\2 = ", text, flags=re.MULTILINE)
