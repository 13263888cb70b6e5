"""Which statements are plain operators."""

import pytest

from pcbatch.ir.analysis.speculatable import is_cheap
from tests.ir.ops import op_of

PLAIN = ["x // 8", "x % 1", "x << 3", "x >> 40", "(x >> 1) ^ (x % 4)", "x / 3.0", "x ** 2"]
NOT = ["x // 3", "x % 10", "x % 0", "x // y", "x % -2", "x >> y", "x << -1", "x >> 1.0", "x // 2.0", "x % True", "x[0]"]


@pytest.mark.parametrize(("text", "cheap"), [*((text, True) for text in PLAIN), *((text, False) for text in NOT)])
def test_operators_that_cannot_fail(text, cheap):
    assert is_cheap(op_of(f"z = {text}"), ()) == cheap
