"""What tests of refused aliases share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pcbatch
from pcbatch.errors import CompileError


def assert_refused(function: Callable[..., Any], batch: Any, message: str, line: str) -> None:
    """The only fault of `function` says `message`, at a `line` of the user's, and to copy what has two names."""
    with pytest.raises(CompileError) as caught:
        pcbatch.autobatch(function)(batch)
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert diagnostic.span is not None
    assert line in diagnostic.span.text
    assert "copy" in diagnostic.help
