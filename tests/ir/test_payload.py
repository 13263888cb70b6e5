"""Explicit operations: the Python that they are made of and stand for, their text, renaming, and what they do."""

import pytest

from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.expression_parser import parse_expression
from pcbatch.ir.expressions import resolved
from pcbatch.ir.payload import Cast, Choose, Compute, Constant, Copy, Field, Index, Pack, Replace, Truth, Unpack
from pcbatch.ir.printer import print_program
from pcbatch.ir.rewrite import renamed
from pcbatch.ir.types import StructType, TensorType
from pcbatch.ir.verifier import IRError, verify
from tests.ir.evaluation import MEANINGS, copy_store, python_evaluate
from tests.ir.interpreter import interpret
from tests.ir.ops import op_of
from tests.ir.parser import IRSyntaxError, parse_program

VARIABLES = frozenset("abxy") | {"copy", "cast", "pack", "unpack", "truth", "choose", "index", "field", "constant"}


def explicit(text, externs=()):
    """The payload that says plainly what a text computes, and its inputs."""
    expression, inputs = resolved(parse_expression(text), VARIABLES)
    return payload.explicit(expression, inputs, externs)


FLOAT, INT, WEAK = TensorType("float32"), TensorType("int32"), TensorType("int32", (), weak=True)


@pytest.mark.parametrize(
    ("text", "made", "inputs"),
    [
        ("x", Copy(), ("x",)),
        ("7", Constant(7), ()),
        ("-7", Constant(-7), ()),
        ("-0.0", Constant(-0.0), ()),
        ("True", Constant(True), ()),
        ("None", Constant(None), ()),
        ("(a, b, a)", Pack(), ("a", "b", "a")),
        ("[a]", Pack("list"), ("a",)),
        ("x[0]", Index(0), ("x",)),
        ("x['a key']", Index("a key"), ("x",)),
        ("x.part", Field("part"), ("x",)),
        ("bool(x)", Truth(), ("x",)),
        ("a if x else b", Choose(), ("x", "a", "b")),
        ("__with_field__(x, a, 'part')", Replace(Field("part")), ("x", "a")),
        ("__with_item__(y, y, 'a key')", Replace(Index("a key")), ("y", "y")),
        ("__with_item__(x, a, 0)", Replace(Index(0)), ("x", "a")),
        ("y if y else y", Choose(), ("y", "y", "y")),
        ("(copy, unpack)", Pack(), ("copy", "unpack")),
    ],
)
def test_a_payload_stands_for_the_expression_that_it_is_made_of(text, made, inputs):
    assert explicit(text) == (made, inputs)
    stands_for = payload.print_statement(made, ("y",), inputs).removeprefix("y = ")
    assert explicit(stands_for) == (made, inputs)
    assert stands_for == text


@pytest.mark.parametrize(
    "text",
    [
        "W",  # free: it may be a captured array
        "(a, W)",
        "W[0]",
        "W.part",
        "x[-1]",
        "x[True]",
        "x[0:1]",
        "()",
        "(a, *b)",
        "1j",
        "1e999",
        "-True",
        "'text'",
        "not x",
        "bool(a, b)",
        "bool(W)",
        "__with_field__(x, W, 'part')",
        "__with_field__(x, a, b)",
        "__with_item__(x, a, -1)",
    ],
)
def test_what_only_an_expression_says_is_computed(text):
    made, _ = explicit(text)
    assert isinstance(made, Compute)


def test_a_part_of_an_expression_has_the_inputs_that_it_reads():
    whole, inputs = resolved(parse_expression("(a + b, b - a * y)"), VARIABLES)
    made = [payload.explicit(each, inputs) for each in whole.items]
    assert [payload.print_statement(code, ("x",), names) for code, names in made] == ["x = a + b", "x = b - a * y"]
    assert [names for _, names in made] == [("a", "b"), ("b", "a", "y")]


def test_a_users_own_bool_is_no_operation():
    assert isinstance(explicit("bool(x)", ("bool",))[0], Compute)


def test_constants_are_equal_as_python_writes_them():
    different = [Constant(1), Constant(1.0), Constant(True), Constant(0.0), Constant(-0.0), Constant(0), Constant(None)]
    assert len(set(different)) == len(different)
    assert payload.print_statement(Constant(-0.0), ("y",), ()) == "y = -0.0"


def program(*ops: str, types: str = "") -> str:
    body = "\n".join(f"  {op}" for op in ops)
    return f"program cfg\n\nfunction f(x, a, b) -> y\n{types}b0:\n{body}\n  return\n"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("y = copy copy", Copy),
        ("copy = cast x: weak float64[]", Cast),
        ("y = cast x: (int32[], {'a: b': float32[2, 3]})", Cast),
        ("y = constant: -3", Constant),
        ('y = index x: "a: b"', Index),
        ("y = pack pack, pack: list", Pack),
        ("y = replace field copy, copy: replace", Replace),
        ('y = replace index x, a: "a: b"', Replace),
        ("a, = unpack x", Unpack),
        ("a, (b, (y,)) = unpack x", Unpack),
        ("y = copy if copy else cast", Compute),
        ("y = cast(x)", Compute),
        ("y = copy - 1", Compute),
        ("y = 'a, b = unpack x'", Compute),
        ("y = pack[a]", Compute),
        ("y = pack is copy", Compute),
    ],
)
def test_nothing_is_mistaken_for_something_else(line, kind):
    text = program("copy = x + 0", "cast = x + 1", "pack = x + 2", line, "y = copy x")
    read = parse_program(text)
    assert print_program(read) == text
    assert isinstance(read.entry.blocks[0].ops[3], ir.Primitive)
    assert isinstance(read.entry.blocks[0].ops[3].code, kind)


@pytest.mark.parametrize(
    "line",
    ["y = copy x, a", "y = cast x", "y = cast x: nothing", "y = constant: f(x)", "y = index x: 1 +", "() = unpack x"],
)
def test_half_an_operation_is_refused_with_its_line(line):
    with pytest.raises((IRSyntaxError, IRError), match=r"line 5|constant"):
        verify(parse_program(program(line, "y = copy x")))


@pytest.mark.parametrize(
    ("op", "complaint"),
    [
        (ir.Primitive(("y",), ("x", "a"), Copy()), "1 outputs and 2 inputs, not 1 and 1"),
        (ir.Primitive(("y",), (), Pack()), "1 outputs and 0 inputs, not 1 and 1"),
        (ir.Primitive(("y",), ("x",), Unpack((None, None))), "1 outputs and 1 inputs, not 2 and 1"),
        (ir.Primitive(("y",), ("x",), Constant(1)), "1 outputs and 1 inputs, not 1 and 0"),
        (ir.Primitive(("y",), ("x",), Replace(Index(1))), "1 outputs and 1 inputs, not 1 and 2"),
        (ir.Primitive(("y",), ("x",), Cast(INT)), "y is float32"),
    ],
)
def test_the_verifier_knows_the_operands(op, complaint):
    types = "".join(f"  var {name}: float32[]\n" for name in ("x", "a", "b", "y"))
    good = parse_program(program("y = copy x", types=types))
    (block,) = good.entry.blocks
    broken = ir.Block(block.label, (op,), block.terminator)
    function = ir.Function("f", ("x", "a", "b"), ("y",), (broken,), variables=good.entry.variables)
    verify(good)
    with pytest.raises(IRError, match=complaint.replace("[", "\\[")):
        verify(ir.Program("cfg", (function,)))


# -- renaming ----------------------------------------------------------------------------------------------------------


def test_reads_and_writes_are_renamed_apart():
    op = op_of("x = x + a")
    assert renamed(op, {"x": "b"}, {"x": "y"}) == op_of("y = b + a")
    packed = ir.Update(("x",), ("x", "a"), Pack())
    assert renamed(packed, {"x": "b", "a": "b"}, {}) == ir.Update(("x",), ("b", "b"), Pack())
    assert ir.statement(renamed(packed, {"x": "b", "a": "b"}, {})) == "x = (b, b)"


def test_an_expression_reads_as_one_input_what_becomes_one():
    op = op_of("y = a + b * a - x")
    assert renamed(op, {"b": "a"}, {}) == op_of("y = a + a * a - x")
    assert renamed(op, {"a": "x", "b": "x"}, {}) == op_of("y = x + x * x - x")


def test_what_texts_have_for_themselves_is_not_captured():
    op = op_of("y = f([v for v in x], lambda w: w + a)", "xa")
    after = renamed(op, {"x": "v", "a": "w"}, {})
    assert after.inputs == ("v", "w")
    assert ir.statement(after) == "y = f([v_ for v_ in v], lambda w_: w_ + w)"


def test_a_store_has_one_name_for_its_array():
    store = ir.Store("x", ("a",), "b")
    assert renamed(store, {"x": "y", "a": "b"}, {"x": "y"}) == ir.Store("y", ("b",), "b")
    with pytest.raises(ValueError, match="x would be read as"):
        renamed(store, {"x": "y"}, {})


def test_terminators_and_calls_are_renamed():
    names = {"x": "y"}
    assert renamed(ir.Branch("x", "x", "b1"), names, {}) == ir.Branch("y", "x", "b1")
    assert renamed(ir.Fault("E: {} {}", ("x", "a")), names, {}) == ir.Fault("E: {} {}", ("y", "a"))
    assert renamed(ir.Call(("x",), "x", ("x", "a")), names, {"x": "b"}) == ir.Call(("b",), "x", ("y", "a"))
    assert renamed(ir.Pop(("x", "a")), {}, names) == ir.Pop(("y", "a"))


# -- meaning -----------------------------------------------------------------------------------------------------------


def test_operations_run():
    text = program(
        "t0 = cast x: (float32[], weak int32[])",
        "p, q = unpack t0",
        "r = pack q, p, q: list",
        "s = index r: 1",
        "u = truth s",
        "v = choose u, r, s",
        "w = choose q, r, s",
        "y = pack s, u, r, v, w",
    )
    found = interpret(parse_program(text), [(2, 3), 0, 0], python_evaluate({}), copy_store)
    assert found.value == (2.0, True, [3, 2.0, 3], [3, 2.0, 3], [3, 2.0, 3])
    assert type(found.value[0]) is float


def test_a_replaced_part_leaves_the_structure_alone():
    text = program("t = replace index x, a: 0", "t = replace index t, t: 1", "y = pack t, x")
    found = interpret(parse_program(text), [[1, 2], 3, 0], python_evaluate({}), copy_store)
    assert found.value == ([3, [3, 2]], [1, 2])

    class Point:
        def __init__(self):
            self.x, self.y = 1, 2

    point = Point()
    changed = MEANINGS[payload.WITH_FIELD](point, 7, "x")
    assert type(changed) is Point
    assert (vars(changed), vars(point)) == ({"x": 7, "y": 2}, {"x": 1, "y": 2})


def test_a_cast_keeps_structures():
    from collections import namedtuple

    Point = namedtuple("Point", "x y")
    cast = MEANINGS[payload.CAST]
    types = [str(leaf) for leaf in (FLOAT, WEAK)]
    assert cast(Point(1, 2), *types) == Point(1.0, 2)
    assert type(cast(Point(1, 2), *types)) is Point
    assert cast({"a": 1, "b": [2]}, *types) == {"a": 1.0, "b": [2]}
    assert cast((None, True), "bool[]") == (None, True)
    made = payload.print_statement(Cast(StructType("tuple", (FLOAT, WEAK))), ("y",), ("x",))
    assert made == "y = __cast__(x, 'float32[]', 'weak int32[]')"
