"""Types that are known without a trial, against what the backend gives when it is tried."""

import itertools
import random

import gast
import pytest

from pcbatch.ir.types import TensorType
from pcbatch.reading.operations import BINARY, CHOICE, GETITEM, UNARY, WindowOf, builtin, filled
from pcbatch.reading.result_types import ResultTypes, known_result
from pcbatch.reading.values import Lane
from pcbatch.runtime.backends.tensorflow import ops
from pcbatch.runtime.backends.tensorflow.symbols import Symbols

STORED = builtin("__stored__")
SYMBOLS = Symbols()
DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
WEAK = [Lane("w", TensorType("int32", (), True)), Lane("v", TensorType("float64", (), True))]
CONSTANTS = [True, 0, 1, 5, -3, 127, -128, 128, 1000, -70000, 0.0, 1.0, 0.5, -2.5, 100.0, 300.0, -65504.0, 65505.0, 1e6]


def lane(dtype, shape=()):
    return Lane("x", TensorType(dtype, shape))


def traced(operation, arguments):
    """The type that an operation gives, and whether it may fail a lane; None where it is refused."""

    def make():
        given = [filled(each, lambda lane: SYMBOLS.symbol(lane.type), ops.window) for each in arguments]
        return operation.called(ops, given, {})

    try:
        result, is_checked = SYMBOLS.called(make)
        return SYMBOLS.type_of(result), is_checked
    except Exception:  # whatever it says
        return None


OPERANDS = [lane(dtype, shape) for dtype in DTYPES for shape in ((), (3,), (2, 3))] + WEAK + CONSTANTS


@pytest.mark.parametrize("operation", [*BINARY.values(), *UNARY.values()], ids=lambda each: str(each.key))
def test_elementwise_operators_give_what_a_trial_gives(operation):
    """In any order: what is tried first says what is known of others."""
    draw = random.Random(str(operation.key))
    table = ResultTypes()
    is_unary = operation in UNARY.values()
    every = [(each,) for each in OPERANDS] if is_unary else list(itertools.product(OPERANDS, OPERANDS))
    lanes = [each for each in every if any(isinstance(part, Lane) for part in each)]
    known = 0
    for arguments in draw.sample(lanes, min(len(lanes), 260)):
        wanted, found = traced(operation, arguments), table.of("ops", operation.key, arguments)
        if found is not None:
            known += 1
            assert found == wanted, arguments
        elif wanted is not None:
            table.note("ops", operation.key, arguments, *wanted)
    assert known or operation.key in ("not", "@", "in", "not in")


def test_choices_and_elements_of_lists_give_what_a_trial_gives():
    draw = random.Random(1)
    table = ResultTypes()
    known = 0
    for _ in range(700):
        operands = [draw.choice(OPERANDS) for _ in range(2)]
        if draw.random() < 0.5:
            operation, arguments = CHOICE, [lane("bool"), *operands]
        else:
            place = lane(draw.choice(["int32", "int64"]))
            operation, arguments = GETITEM, [[*operands, draw.choice(operands)], draw.choice([place, WEAK[0]])]
        wanted, found = traced(operation, arguments), table.of("ops", operation.key, arguments)
        if found is not None:
            known += 1
            assert found == wanted, arguments
        elif wanted is not None:
            table.note("ops", operation.key, arguments, *wanted)
    assert known > 25


PARTS = [
    lane("int32"),
    lane("int64"),
    lane("uint8"),
    WEAK[0],
    lane("float32"),
    lane("int32", (2,)),
    *(0, 1, -1, 3, -4, True, 1.0, None, ..., slice(None), slice(1, None), slice(None, None, -1), slice(2, 2)),
    *(WindowOf(lane("int32"), length, step) for length, step in ((2, None), (3, 2), (-2, -1), (0, None), (9, None))),
]


def test_indices_give_what_a_trial_gives():
    draw = random.Random(0)
    known = 0
    for _ in range(900):
        shape = draw.choice([(), (3,), (4, 3), (2, 3, 4), (0, 3)])
        array = lane(draw.choice(DTYPES), shape)
        parts = [draw.choice(PARTS) for _ in range(draw.randint(1, len(shape) + 1))]
        index = parts[0] if len(parts) == 1 and draw.random() < 0.7 else tuple(parts)
        found = known_result(GETITEM.key, [array, index])
        if found is not None:
            known += 1
            assert found == traced(GETITEM, [array, index]), (array, index)
    assert known > 150


def test_stores_give_what_a_trial_gives():
    draw = random.Random(0)
    known = 0
    places = [lane("int32"), lane("int64"), WEAK[0], lane("int32", (2,)), lane("int32", (1,)), lane("float32"), 1, 7]
    for _ in range(900):
        shape = draw.choice([(3,), (4, 3), (2, 2), (0, 3)])
        array = lane(draw.choice(DTYPES), shape)
        at = [draw.choice(places) for _ in range(draw.randint(0, len(shape)))]
        form = draw.choice([(), (2,), (3,), (1,), (2, 3), (2, 2), shape])
        value = draw.choice([lane(draw.choice([array.type.dtype, *DTYPES]), form), *WEAK, 1, 2.5])
        found = known_result(STORED.key, [array, value, *at])
        if found is not None:
            known += 1
            assert found == traced(STORED, [array, value, *at]), (array, value, at)
    assert known > 40


def test_an_operator_that_nobody_has_tried_is_unknown():
    assert ResultTypes().of("ops", BINARY[gast.Add].key, [lane("int8"), lane("bool")]) is None


def test_the_rules_of_promotion_are_those_of_a_trial():
    """What is known before anything has been tried."""
    draw = random.Random(2)
    usual = [lane(dtype, form) for dtype in ("int32", "int64", "float32", "float64") for form in ((), (3,))]
    usual += [*WEAK, 0, 1, 5, -3, 0.0, 1.0, 0.5, -2.5, 19372.0, -65504.0]
    known = 0
    for _ in range(500):
        operation = draw.choice([*BINARY.values(), *UNARY.values(), CHOICE])
        count = 1 if operation in UNARY.values() else 2
        arguments = [draw.choice(usual) for _ in range(count)]
        if operation is CHOICE:
            arguments = [lane("bool"), *arguments]
        found = ResultTypes().of("ops", operation.key, arguments)
        if found is not None:
            known += 1
            assert found == traced(operation, arguments), (operation.key, arguments)
    assert known > 150
