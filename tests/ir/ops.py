"""Ops from the text that they are printed as."""

from collections.abc import Collection
from typing import Any

from pcbatch.ir import program as ir
from tests.ir.inputs import with_inputs
from tests.ir.parser import parse_op


def op_of(text: str, variables: Collection[str] | None = None) -> Any:
    """The op that a text denotes; all names in it are variables, unless it is said which are."""
    op = parse_op(1, text)
    assert isinstance(op, ir.Coded)
    return with_inputs(op, ir.free(op) if variables is None else variables)
