"""The end of a lane, and the execution of its statements and stores: shared by the interpreters of all dialects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pcbatch.errors import Span
from pcbatch.ir.program import Primitive, Push, Update

Status = Literal["OK", "ASSERTION", "RAISED", "ARITHMETIC", "INDEX", "MAX_DEPTH", "MAX_STEPS"]
"""The names of a lane's possible outcomes; the runtime gives them numbers."""

Evaluate = Callable[[str, Primitive | Push | Update, dict[str, Any]], Mapping[str, Any]]
"""`evaluate(function_name, op, inputs)` runs an op: its outputs by name; may raise LaneFaultError."""

StoreElement = Callable[[Any, tuple[Any, ...], Any], Any]
"""`store(array, indices, value)`: a copy of `array` with one element replaced; may raise LaneFaultError."""


class LaneFaultError(Exception):
    """The lane fails here, with `status` and `message`."""

    def __init__(self, status: Status, message: str):
        self.status: Status = status
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Outcome:
    """The end of a lane. `value` is its result (a tuple where the function has several; None unless status is "OK").

    `steps` counts loop turns and calls, `executions` how often each block was run, by label.
    """

    value: Any
    status: Status = "OK"
    message: str = ""
    span: Span | None = None
    steps: int = 0
    executions: Counter[str] = field(default_factory=Counter)
