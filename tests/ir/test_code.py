"""Which names a statement reads and assigns."""

import pytest

from pcbatch.ir.code import names, rename
from pcbatch.ir.scope import inputs_and_outputs


@pytest.mark.parametrize(
    ("code", "loaded", "stored"),
    [
        ("a, b = (b, a % b)", "b a", "a b"),
        ("x = x + 1", "x", "x"),
        ("x += y", "x y", "x"),
        ("x[i] += 1", "x i", ""),
        ("x: int = y", "y", "x"),
        ("x = y = z", "z", "x y"),
        ("x = lambda n, *m, k=d: n + m + k + free", "d free", "x"),
        ("x = [n + m + k for n in ns for m in n if n]", "ns k", "x"),
        ("x = (y := a) * y", "a", "y x"),
        ("x = c and (y := a) and y", "c a", "y x"),
        ("x = (c and (y := a)) or y", "c a y", "y x"),
        ("x = (y := 1) if c else y", "c y", "y x"),
        ("x = a < (y := b) < y", "a b", "y x"),
        ("x = a < b < (y := c) or y", "a b c y", "y x"),
        ("x = [y for n in ns if (y := n)] + y", "ns y", "y x"),
        ("with tf.GradientTape() as tape:\n    y = f(x)\n    g = tape.gradient(y, x)", "tf f x", "tape y g"),
    ],
)
def test_names_read_and_assigned(code, loaded, stored):
    assert names(code) == (tuple(loaded.split()), tuple(stored.split()))


def test_a_free_name_is_no_input():
    assert inputs_and_outputs("y = tf.sin(x)", {"x", "y"}) == (("x",), ("y",))


def test_renaming_leaves_inner_scopes_alone():
    code = "x = [n for n in ns] + f(lambda n: n + x, n)"
    renamed = "y = [n for n in ns] + f(lambda n: n + y, m)"
    assert rename(code, {"x": "y", "n": "m"}) == renamed
