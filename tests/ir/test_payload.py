"""Explicit operations: the Python that they are made of and stand for, their text, renaming, and what they do."""

import ast

import pytest

from pcbatch.ir import payload
from pcbatch.ir import program as ir
from pcbatch.ir.code import Code
from pcbatch.ir.evaluation import MEANINGS, copy_store, python_evaluate
from pcbatch.ir.interpreter import interpret
from pcbatch.ir.payload import Cast, Choose, Constant, Copy, Field, Index, Pack, Replace, Truth, Unpack
from pcbatch.ir.rewrite.renaming import renamed
from pcbatch.ir.text.parser import IRSyntaxError, parse_program
from pcbatch.ir.text.printer import print_program
from pcbatch.ir.types import StructType, TensorType
from pcbatch.ir.verify.verifier import IRError, verify

VARIABLES = frozenset("abxy") | {"copy", "cast", "pack", "unpack", "truth", "choose", "index", "field", "constant"}
FLOAT, INT, WEAK = TensorType("float32"), TensorType("int32"), TensorType("int32", (), weak=True)


@pytest.mark.parametrize(
    ("text", "made", "inputs"),
    [
        ("y = x", Copy(), ("x",)),
        ("y = 7", Constant(7), ()),
        ("y = -7", Constant(-7), ()),
        ("y = -0.0", Constant(-0.0), ()),
        ("y = True", Constant(True), ()),
        ("y = None", Constant(None), ()),
        ("y = (a, b, a)", Pack(), ("a", "b", "a")),
        ("y = [a]", Pack("list"), ("a",)),
        ("a, (b, y) = x", Unpack((None, (None, None))), ("x",)),
        ("[a, b] = x", Unpack((None, None)), ("x",)),
        ("y = x[0]", Index(0), ("x",)),
        ("y = x['a key']", Index("a key"), ("x",)),
        ("y = x.part", Field("part"), ("x",)),
        ("y = bool(x)", Truth(), ("x",)),
        ("y = a if x else b", Choose(), ("x", "a", "b")),
        ("y = __with_field__(x, a, 'part')", Replace(Field("part")), ("x", "a")),
        ("y = __with_item__(y, y, 'a key')", Replace(Index("a key")), ("y", "y")),
        ("y = __with_item__(x, a, 0)", Replace(Index(0)), ("x", "a")),
        ("y = y if y else y", Choose(), ("y", "y", "y")),
        ("copy = pack", Copy(), ("pack",)),
        ("cast = (copy, unpack)", Pack(), ("copy", "unpack")),
    ],
)
def test_an_operation_stands_for_the_python_that_it_is_made_of(text, made, inputs):
    code = Code(ast.unparse(ast.parse(text)))
    assert payload.explicit(code, VARIABLES) == (made, inputs)
    stands_for = payload.statement(made, code.writes, inputs)
    assert payload.explicit(stands_for, VARIABLES) == (made, inputs)
    assert stands_for.reads == tuple(dict.fromkeys(code.reads))
    assert stands_for.writes == code.writes


@pytest.mark.parametrize(
    "text",
    [
        "y = W",  # free: it may be a captured array
        "y = (a, W)",
        "y = W[0]",
        "y = W.part",
        "y = x[-1]",
        "y = x[True]",
        "y = x[0:1]",
        "y = ()",
        "y = (a, *b)",
        "y = 1j",
        "y = 1e999",
        "y = -True",
        "y = 'text'",
        "y = not x",
        "y = bool(a, b)",
        "y = bool(W)",
        "y = __with_field__(x, W, 'part')",
        "y = __with_field__(x, a, b)",
        "y = __with_item__(x, a, -1)",
        "y = a = x",
        "a, b = x, y",
        "a, a = x",
        "a, *b = x",
        "a, b = W",
        "y += x",
        "y: int = x",
    ],
)
def test_what_only_python_says_stays_code(text):
    assert payload.explicit(Code(ast.unparse(ast.parse(text))), VARIABLES) is None


def test_a_users_own_bool_is_no_operation():
    assert payload.explicit(Code("y = bool(x)"), VARIABLES, hidden=("bool",)) is None
    assert payload.explicit(Code("y = bool(x)"), VARIABLES | {"bool"}) is None


def test_constants_are_equal_as_python_writes_them():
    different = [Constant(1), Constant(1.0), Constant(True), Constant(0.0), Constant(-0.0), Constant(0), Constant(None)]
    assert len(set(different)) == len(different)
    assert payload.statement(Constant(-0.0), ("y",), ()) == Code("y = -0.0")


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
        ("y = copy if copy else cast", Code),
        ("y = cast(x)", Code),
        ("y = copy - 1", Code),
        ("y = 'a, b = unpack x'", Code),
        ("y = pack[a]", Code),
        ("y = pack is copy", Code),
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
    op = ir.Primitive(("x",), ("x", "a"), Code("x = x + a"))
    assert renamed(op, {"x": "b"}, {"x": "y"}) == ir.Primitive(("y",), ("b", "a"), Code("y = b + a"))
    packed = ir.Update(("x",), ("x", "a"), Pack())
    assert renamed(packed, {"x": "b", "a": "b"}, {}) == ir.Update(("x",), ("b", "b"), Pack())
    assert ir.statement(renamed(packed, {"x": "b", "a": "b"}, {})) == Code("x = (b, b)")


def test_code_reads_by_one_name_what_becomes_one():
    op = ir.Primitive(("y",), ("a", "b"), Code("y = a + b"))
    assert renamed(op, {"a": "x", "b": "x"}, {}) == ir.Primitive(("y",), ("x",), Code("y = x + x"))


def test_renaming_goes_into_lambdas_and_captures_nothing():
    op = ir.Primitive(("y",), ("x",), Code("y = f(lambda a: a + x, [a for a in x])"))
    after = renamed(op, {"x": "a"}, {})
    assert after.inputs == ("a",)
    assert ir.statement(after).reads == ("f", "a")
    scope = {"f": lambda function, items: [function(item) for item in items], "a": 3}
    before = {**scope, "x": 3}
    for code, names in ((op, before), (after, scope)):
        text = ir.statement(code).text.replace(" in x]", " in (x,)]").replace(" in a]", " in (a,)]")
        exec(text, names)
    assert before["y"] == scope["y"] == [6]


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
    assert payload.statement(Cast(StructType("tuple", (FLOAT, WEAK))), ("y",), ("x",)) == Code(
        "y = __cast__(x, 'float32[]', 'weak int32[]')"
    )
