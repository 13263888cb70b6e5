"""Python's operators and built-ins for values of one lane, which generated code calls.

Every function works on tensors, weak numbers and, as Python would, on static Python values. What Python would raise for
(an integer division by zero, an index out of range) is recorded (see `recorder`), never raised: the lane fails at
`site`, an index into the program's faults, and goes on with junk.
"""

from __future__ import annotations

from pcbatch.ir.values import object_of
from pcbatch.runtime.backends.tensorflow import equivalents as tensorflow
from pcbatch.runtime.backends.tensorflow import math_equivalents as math
from pcbatch.runtime.backends.tensorflow import numpy_equivalents as numpy
from pcbatch.runtime.backends.tensorflow.bounded import Bounded
from pcbatch.runtime.backends.tensorflow.equivalents import without_equivalent
from pcbatch.runtime.backends.tensorflow.functions import (
    absolute,
    as_written,
    committed,
    free,
    index,
    length,
    maximum,
    minimum,
    place,
    record,
    recorded,
    rounded,
    spread,
    to_float,
    to_int,
    total,
    unpacked,
    unrecorded,
)
from pcbatch.runtime.backends.tensorflow.indexing import axis, getitem, window
from pcbatch.runtime.backends.tensorflow.mapping import blank
from pcbatch.runtime.backends.tensorflow.membership import contains, count, in_order, lacks, position
from pcbatch.runtime.backends.tensorflow.opaque import member, run
from pcbatch.runtime.backends.tensorflow.operators import (
    add,
    bit_and,
    bit_or,
    bit_xor,
    divide,
    divmod_,
    equal,
    floordiv,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    matrix_product,
    mod,
    multiply,
    negative,
    not_equal,
    positive,
    power,
    right_shift,
    subtract,
)
from pcbatch.runtime.backends.tensorflow.ragged import Ragged
from pcbatch.runtime.backends.tensorflow.recorder import Recorder, checking, recording
from pcbatch.runtime.backends.tensorflow.selection import all_of, any_of, both, either, guarded, negate, select, to_bool
from pcbatch.runtime.backends.tensorflow.stores import row, stored

__all__ = [
    "Bounded",
    "Ragged",
    "Recorder",
    "absolute",
    "add",
    "all_of",
    "any_of",
    "as_written",
    "axis",
    "bit_and",
    "bit_or",
    "bit_xor",
    "blank",
    "both",
    "checking",
    "committed",
    "contains",
    "count",
    "divide",
    "divmod_",
    "either",
    "equal",
    "floordiv",
    "free",
    "getitem",
    "greater",
    "greater_equal",
    "guarded",
    "in_order",
    "index",
    "lacks",
    "left_shift",
    "length",
    "less",
    "less_equal",
    "math",
    "matrix_product",
    "maximum",
    "member",
    "minimum",
    "mod",
    "multiply",
    "negate",
    "negative",
    "not_equal",
    "numpy",
    "object_of",
    "place",
    "position",
    "positive",
    "power",
    "record",
    "recorded",
    "recording",
    "right_shift",
    "rounded",
    "row",
    "run",
    "select",
    "spread",
    "stored",
    "subtract",
    "tensorflow",
    "to_bool",
    "to_float",
    "to_int",
    "total",
    "unpacked",
    "unrecorded",
    "window",
    "without_equivalent",
]
