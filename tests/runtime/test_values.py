"""Taking structured values apart and putting them together."""

import dataclasses
from typing import NamedTuple

import pytest

from pcbatch.ir.types import StructType, TensorType
from pcbatch.ir.values import flatten, pack

LEAF = TensorType("float32")


class Point(NamedTuple):
    """A named tuple."""

    x: float
    y: float


@dataclasses.dataclass
class Box:
    """A dataclass with a structure inside."""

    corner: Point
    size: float


POINT = StructType("Point", (LEAF, LEAF), ("x", "y"), Point)
CASES = [
    (LEAF, 1, [1]),
    (StructType("tuple", (LEAF, StructType("list", (LEAF, LEAF)))), (1, [2, 3]), [1, 2, 3]),
    (StructType("dict", (LEAF, LEAF), ("b", "a")), {"b": 1, "a": 2}, [1, 2]),
    (StructType("Box", (POINT, LEAF), ("corner", "size"), Box), Box(Point(1, 2), 3), [1, 2, 3]),
    (StructType("tuple", ()), (), []),
]


@pytest.mark.parametrize(("type_", "value", "leaves"), CASES)
def test_there_and_back(type_, value, leaves):
    """`pack` is the inverse of `flatten`."""
    assert flatten(type_, value) == leaves
    assert pack(type_, leaves) == value
    assert type(pack(type_, leaves)) is type(value)


def test_a_class_that_is_not_known():
    """A structure whose type was read back from text has no class: it becomes a tuple, and is taken apart as one."""
    anonymous = StructType("Point", (LEAF, LEAF), ("x", "y"))
    assert pack(anonymous, [1, 2]) == (1, 2)
    assert flatten(anonymous, (1, 2)) == [1, 2]


def test_what_does_not_fit():
    """Too many or too few leaves are errors."""
    with pytest.raises(ValueError, match="too many leaves"):
        pack(POINT, [1, 2, 3])
    with pytest.raises(ValueError, match=r"zip\(\)"):
        flatten(StructType("tuple", (LEAF, LEAF)), (1, 2, 3))
