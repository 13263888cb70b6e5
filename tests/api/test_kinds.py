"""Every kind of argument under every option and operator: it works, or it is refused with a code and, in code, a line.

Nothing is run: types are inferred, which is where all of them are looked at.
"""

from __future__ import annotations

import array
import collections
import dataclasses
import decimal
import enum
import fractions
import re
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

FLOATS = np.ones((2, 3), np.float32)


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Record:
    a: object
    b: object


class Subclass(np.ndarray):
    pass


def _containing_itself():
    items = []
    items.append(items)
    return items


def _read_only():
    made = FLOATS.copy()
    made.setflags(write=False)
    return made


def _of_another_graph():
    with tf.Graph().as_default():
        return tf.compat.v1.placeholder(tf.float32, [2])


def plain(x):
    return x


NUMPY = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "longdouble", ">f4"]
TENSORS = [tf.bool, tf.int8, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int16, tf.int32, tf.int64, tf.float16]
TENSORS += [tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.dtypes.experimental.float8_e5m2]
KINDS = {
    **{f"numpy {name}": lambda name=name: np.ones(2, name) for name in NUMPY},
    **{f"tensor {dtype.name}": lambda dtype=dtype: tf.cast(tf.constant([1.0, 1.0]), dtype) for dtype in TENSORS},
    "int": lambda: 3,
    "wide int": lambda: 2**40,
    "too wide int": lambda: 2**80,
    "float": lambda: 1.5,
    "bool": lambda: True,
    "complex": lambda: 1j,
    "text": lambda: "ab",
    "bytes": lambda: b"ab",
    "None": lambda: None,
    "list": lambda: [1.0, 2.0],
    "list of wide ints": lambda: [2**40, 1],
    "list of too wide ints": lambda: [2**80, 1],
    "list of ints and floats": lambda: [1, 2.5],
    "list of text": lambda: ["a", "b"],
    "list with None": lambda: [None, 1.0],
    "nested list": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "ragged list": lambda: [[1.0, 2.0], [3.0]],
    "list in itself": _containing_itself,
    "empty list": list,
    "empty tuple": tuple,
    "empty dict": dict,
    "tuple": lambda: (1.0, 2.0),
    "tuple of arrays": lambda: (FLOATS, FLOATS),
    "tuple with text": lambda: (FLOATS, "a"),
    "dict": lambda: {"a": FLOATS, "b": FLOATS},
    "dict of ints": lambda: {1: FLOATS},
    "ordered dict": lambda: collections.OrderedDict(a=FLOATS),
    "named tuple": lambda: Pair(FLOATS, FLOATS),
    "dataclass": lambda: Record(FLOATS, FLOATS),
    "objects": lambda: np.array([1, None], object),
    "texts": lambda: np.array(["a", "b"]),
    "dates": lambda: np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
    "durations": lambda: np.array([1, 2], "timedelta64[s]"),
    "records": lambda: np.zeros(2, [("a", "f4"), ("b", "i4")]),
    "no lanes": lambda: np.ones((0, 3), np.float32),
    "no elements": lambda: np.ones((2, 0), np.float32),
    "scalar array": lambda: np.array(1.0, np.float32),
    "NumPy scalar": lambda: np.float32(1.0),
    "Fortran order": lambda: np.asfortranarray(FLOATS),
    "backwards": lambda: FLOATS[::-1],
    "read-only": _read_only,
    "masked": lambda: np.ma.masked_array([1.0, 2.0], [0, 1]),
    "subclass": lambda: FLOATS.view(Subclass),
    "text tensor": lambda: tf.constant(["a", "b"]),
    "quantized": lambda: tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8),
    "variant": lambda: tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32),
    "resource": lambda: tf.Variable(1.0).handle,
    "variable": lambda: tf.Variable([1.0, 2.0]),
    "Keras variable": lambda: tf.keras.Variable([1.0, 2.0]),
    "Keras tensor": lambda: tf.keras.Input((2,)),
    "ragged tensor": lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]),
    "list of ragged tensors": lambda: [tf.ragged.constant([[1.0], [2.0, 3.0]])],
    "sparse tensor": lambda: tf.sparse.from_dense([1.0, 0.0]),
    "indexed slices": lambda: tf.IndexedSlices(tf.ones([2]), tf.constant([0, 1])),
    "array of tensors": lambda: tf.TensorArray(tf.float32, 2).unstack(tf.ones([2])),
    "another graph's": _of_another_graph,
    "dataset": lambda: tf.data.Dataset.range(2),
    "generator": lambda: (x for x in (1.0, 2.0)),
    "set": lambda: {1.0, 2.0},
    "range": lambda: range(2),
    "memoryview": lambda: memoryview(FLOATS),
    "array.array": lambda: array.array("f", [1.0, 2.0]),
    "deque": lambda: collections.deque([1.0, 2.0]),
    "function": lambda: plain,
    "lambda": lambda: lambda x: x,
    "class": lambda: Pair,
    "module": lambda: np,
    "object": object,
    "enum": lambda: enum.IntEnum("Way", "UP").UP,
    "fraction": lambda: fractions.Fraction(1, 2),
    "decimal": lambda: decimal.Decimal(1),
    "batched function": lambda: pcbatch.autobatch(plain),
}


def recursive(x, n=0):
    if n > 2:
        return x
    return recursive(x, n + 1)


def added(x):
    return x + x


def compared(x):
    return x < x


def indexed(x):
    return x[0]


def iterated(x):
    total = 0
    for each in x:
        total = total + each
    return total


def called(x):
    return x(1.0)


def counted(x):
    return len(x)


def decided(x):
    return 1 if x else 0


def stored(x):
    x[0] = 1
    return x


def attribute(x):
    return x.a


def reduced(x):
    return tf.reduce_sum(x)


def told(x):
    assert x == x, f"{x}"
    return x


OPTIONS = {
    "a lane axis": {},
    "shared": {"in_axes": None},
    "static": {"static_argnames": "x"},
    "axes by part": {"in_axes": ({"a": 0, "b": None},)},
}
OPERATORS = [recursive, added, compared, indexed, iterated, called, counted, decided, stored, attribute, reduced, told]
SOME = ["int", "bool", "None", "text", "list", "ragged list", "empty list", "tuple of arrays", "dict", "dataclass"]
SOME += ["numpy bool", "numpy c8", "tensor bfloat16", "tensor int64", "variable", "ragged tensor", "function"]
OURS = re.compile(r"PCB\d\d\d: ")
INSIDES = ("Traceback", "node __", "EagerTensor", "Placeholder", "SymbolicTensor", "site-packages", "\n\n")


def refused(function, value, options):
    """The code of a refusal, "" if there is none; any other exception is raised."""
    lanes = {"lanes": 2} if "static_argnames" in options or options.get("in_axes", 0) is None else {}
    batched = pcbatch.autobatch(function, jit=False, **options)
    try:
        batched.program("cfg", value, **lanes)
    except pcbatch.PcbatchError as error:
        return checked(error)
    return ""


def checked(error):
    """The code of an error, which shows the user's line or names the argument, and nothing of anybody's insides."""
    text = str(error)
    places = [each.span.file for each in getattr(error, "diagnostics", ()) if each.span is not None]
    assert places == [__file__] * len(getattr(error, "diagnostics", ())), text
    assert not [word for word in INSIDES if word in text], text
    return OURS.search(text)[0][:6]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_kind_under_an_option(option):
    for kind, made in KINDS.items():
        code = refused(plain, made(), OPTIONS[option])
        numbers = kind.startswith(("numpy", "tensor")) and kind != "numpy longdouble"
        if option == "a lane axis" and numbers:
            assert not code, f"{kind}: {code}"


@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_some_kinds_with_an_operator(function):
    for kind in SOME:
        for options in ({}, {"in_axes": None}):
            refused(function, KINDS[kind](), options)


@pytest.mark.parametrize("kind", ["sparse tensor", "text", "list in itself", "variant", "objects", "another graph's"])
def test_what_no_option_makes_an_array(kind):
    for options in ({}, {"in_axes": None}):
        assert refused(plain, KINDS[kind](), options) == "PCB511"
    with pytest.raises(pcbatch.UsageError, match="PCB511: argument 'x': "):
        pcbatch.autobatch(plain).single(KINDS[kind]())
