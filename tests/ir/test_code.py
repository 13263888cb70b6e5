"""Which names a statement reads and assigns."""

import ast

import pytest

from pcbatch.ir.analysis.scope import inputs_and_outputs
from pcbatch.ir.code import CaptureError, Code


def as_written(code):
    """The text that this Python writes for `code`: 3.10 puts other parentheses and blanks."""
    return ast.unparse(ast.parse(code))


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
        ("with f(x) as x:\n    y = x\n    z = v\n    v = y", "f x v", "x y z v"),
    ],
)
def test_names_read_and_assigned(code, loaded, stored):
    assert (Code(code).reads, Code(code).writes) == (tuple(loaded.split()), tuple(stored.split()))


def test_a_free_name_is_no_input():
    assert inputs_and_outputs(Code("y = tf.sin(x)"), {"x", "y"}) == (("x",), ("y",))


@pytest.mark.parametrize(
    ("code", "reads", "after"),
    [
        ("x = [n for n in ns] + f(lambda n: n + x, n)", "x:y n:m", "y = [n for n in ns] + f(lambda n: n + y, m)"),
        # what is renamed to the name of an inner variable stays what it is
        ("y = [v * t for v in (x, z)]", "t:v", "y = [v_ * v for v_ in (x, z)]"),
        ("y = [v * t for v in (v, t)]", "t:v", "y = [v_ * v for v_ in (v, v)]"),
        ("y = f(lambda x, k=t: x * t + k, x=t)", "t:x", "y = f(lambda x_, k=x: x_ * x + k, x=x)"),
        ("y = f(lambda *x, **k: (x, k, t))", "t:k", "y = f(lambda *x, **k_: (x, k_, k))"),
        ("y = {v: w * t for v, w in d if v for _ in v}", "t:w", "y = {v: w_ * w for v, w_ in d if v for _ in v}"),
        ("y = [[v * t for v in v] for v in x]", "t:v", "y = [[v__ * v for v__ in v_] for v_ in x]"),
        ("y = [[v * t for t in v] for v in x]", "t:v", "y = [[v_ * t for t in v_] for v_ in x]"),
        ("y = [(lambda: v * t)() for v in x if v_]", "t:v", "y = [(lambda: v__ * v)() for v__ in x if v_]"),
        ("y = [m for m in f(lambda t: t, n) for t in m]", "n:t", "y = [m for m in f(lambda t: t, t) for t_ in m]"),
        ("y = (lambda b, f=lambda b: b + q: f(b) + c)", "c:b", "y = lambda b_, f=lambda b: b + q: f(b_) + b"),
    ],
)
def test_renaming_never_captures(code, reads, after):
    mapping = dict(pair.split(":") for pair in reads.split())
    assert Code(code).renamed(mapping).text == as_written(after)


@pytest.mark.parametrize(
    ("code", "reads", "writes", "after"),
    [
        ("x = x + 1", {"x": "a"}, {"x": "b"}, "b = a + 1"),
        ("x, y = (y, x)", {"x": "y", "y": "x"}, {}, "x, y = (x, y)"),
        ("x = (y := y + 1) * y", {"y": "a"}, {"y": "b", "x": "y"}, "y = (b := (a + 1)) * b"),
        ("with f(x) as x:\n    y = x", {"x": "a"}, {"x": "b"}, "with f(a) as b:\n    y = b"),
    ],
)
def test_what_is_read_and_what_is_assigned_are_renamed_apart(code, reads, writes, after):
    assert Code(code).renamed(reads, writes).text == as_written(after)


@pytest.mark.parametrize(
    ("code", "reads", "writes"),
    [
        ("x = (c and (y := a)) or y", {"y": "b"}, {}),  # nobody knows which `y` is read
        ("x = (y := a) + t", {"t": "y"}, {}),  # `t` would be what `y` has just become
        ("x += 1", {"x": "y"}, {}),
    ],
)
def test_what_cannot_be_renamed_apart_is_an_error(code, reads, writes):
    with pytest.raises(CaptureError):
        Code(code).renamed(reads, writes)


@pytest.mark.parametrize(
    ("code", "late"),
    [("f = lambda q: a * q", "a"), ("g = (a * q for q in xs if b)", "a b"), ("h = [a * q for q in xs]", "")],
)
def test_lambdas_and_generators_read_late(code, late):
    assert Code(code).late == frozenset(late.split())
