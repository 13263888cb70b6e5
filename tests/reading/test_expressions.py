"""Names and constants of the user's in the expressions that a program computes."""

import collections
import enum

import numpy as np
import pytest

import pcbatch
from pcbatch.ir import program as ir
from pcbatch.ir.payload import Compute
from pcbatch.ir.printer import print_program
from tests.ir.parser import parse_program

X = np.array([0.5, -1.5], np.float32)
N = np.array([0, 2], np.int32)
M = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


def names_that_generated_code_reads(m, i, x):
    slice = x + 1.0
    complex = m[i, 1:3]
    return slice + complex


def constants_of_other_classes(x, n):
    return x * np.float64(2.0) + Color.RED, (n + Color.BLUE) % 3, [1.0, x, -0.0][n % 3], -0.0 * x


def negative_constants(x, n):
    return x - -1.5, -(2**2) * x, (-2) ** 2 * x, max(-3, n), x * -1.0 / -2.0, -(x + 1.0) * (x - (2.0 - x))


def test_expressions_give_what_python_gives():
    for function, arguments in (
        (names_that_generated_code_reads, (M, N, X)),
        (constants_of_other_classes, (X, N)),
        (negative_constants, (X, N)),
    ):
        found = pcbatch.autobatch(function)(*arguments)
        found = found if isinstance(found, tuple) else (found,)
        for lane in range(2):
            wanted = function(*(each[lane] for each in arguments))
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(one)[lane], np.float32(other))


def test_what_a_program_computes_is_explicit_and_reads_back():
    """Nothing in it is text that somebody would have to parse."""
    batched = pcbatch.autobatch(negative_constants)
    for stage in ("cfg", "optimized"):
        text = batched.ir(stage, X, N)
        program = batched.program(stage, X, N)
        ops = [op for function in program.functions for block in function.blocks for op in block.ops]
        assert any(isinstance(op, ir.Coded) and isinstance(op.code, Compute) for op in ops)
        assert print_program(program) == text
        assert parse_program(text) == program


# -- recursive calls in what is built ----------------------------------------------------------------------------------
# In the first round nothing is known of what such a call gives, and nothing gets behind it.

Pair = collections.namedtuple("Pair", "low high")


class Box:
    def __init__(self, low, high):
        self.low, self.high = low, high


def in_a_dict(f, n, a):
    return {"low": f(n - 1, a), "high": f(n - 1, a + 1)}["high"]


def in_a_dict_of_others(f, n, a):
    others = {"low": f(n - 1, a)}
    return {**others, "high": f(n - 1, a + 1)}["high"]


def in_a_set(f, n, a):
    return len({f(n - 1, a), 3})


def sought_in_a_set(f, n, a):
    return 5 if 3 in {f(n - 1, a), 4} else 6


def in_a_named_tuple(f, n, a):
    return Pair(f(n - 1, a), high=f(n - 1, a + 1)).high


def in_an_object(f, n, a):
    return Box(f(n - 1, a), f(n - 1, a + 1)).low


def in_a_function_of_numpys(f, n, a):
    return a + np.abs(f(n - 1, a)).max()


def in_a_generator(f, n, a):
    return max(f(n - 1, k) for k in range(2)) + a


def in_starred_arguments(f, n, a):
    return max(*[f(n - 1, a), f(n - 1, a + 1)])


BUILT = [
    in_a_dict,
    in_a_dict_of_others,
    in_a_set,
    sought_in_a_set,
    in_a_named_tuple,
    in_an_object,
    in_a_function_of_numpys,
    in_a_generator,
    in_starred_arguments,
]


@pytest.mark.parametrize("build", BUILT, ids=lambda build: build.__name__)
def test_a_recursive_call_in_what_is_built(build):
    @pcbatch.autobatch
    def f(n, a):
        if n <= 0:
            return a
        return build(f, n, a)

    depths, numbers = np.array([0, 1, 3], np.int32), np.array([2, 3, 4], np.int32)
    wanted = [f.single(int(n), int(a)) for n, a in zip(depths, numbers, strict=True)]
    np.testing.assert_array_equal(f.options(backend="reference")(depths, numbers), wanted)
