"""The printed form parses back to the same program; what is no program is refused with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.expressions import Apply, Attribute, Constant, Input, Items, Name, Operator, Written
from pcbatch.ir.payload import Compute
from pcbatch.ir.printer import print_program
from pcbatch.ir.types import StructType, TensorType
from tests.ir import programs
from tests.ir.parser import IRSyntaxError, parse_program
from tests.ir.strategies import programs as any_program
from tests.ir.strategies import types

A, B = Input(0), Input(1)


@pytest.mark.parametrize("text", programs.ALL.values(), ids=programs.ALL)
def test_text_of_parsed_text_is_the_same(text):
    assert print_program(parse_program(text)) == text


@given(program=any_program(), lines=st.booleans())
@settings(max_examples=150)
def test_parsing_undoes_printing(program, lines):
    assert parse_program(print_program(program, lines=lines)) == program


@given(type_=types())
def test_types_parse_back(type_):
    assert parse_type(str(type_)) == type_


def test_keys_of_dicts_parse_back_as_what_they_are():
    keys = ("a", "b c", 0, -1, 1.5, 1e-07, (1, "x"), (), True, None, "True")
    type_ = StructType("dict", (TensorType("int32"),) * len(keys), keys)
    found = parse_type(str(type_))
    assert found == type_
    assert [type(key) for key in found.keys] == [type(key) for key in keys]


def test_every_part_of_a_program_is_read():
    text = """\
program stack

function f(a, b) -> x, y
  extern np, tf
  var a: int32[]
  var b: (weak int32[], {k: float32[3, 4], 'a key': bool[]})  cached stack  -- why: read -- twice
  var x  register
  var y
b0:
  pop a, b
  t0, t1 = (a, np.sin(b))
  enter tf.GradientTape() as tape
  tape.watch(a)
  t2 = a * a
  exit
  store x[t0, t1] = t2
  update x = x + 1
  push a, b = (b, a)
  pushjump b0, back to b1
b1:
  jump b2, turn
b2:
  branch t0 b3 b4
b3:
  fault assert "AssertionError: \\"{}\\" is {}" a, b
b4:
  return
"""
    program = parse_program(text)
    b0 = ir.Block(
        "b0",
        (
            ir.Pop(("a", "b")),
            ir.Primitive(
                ("t0", "t1"),
                ("a", "b"),
                Compute(Items("tuple", (A, Apply(Attribute(Name("np"), "sin"), (B,)))), (None, None)),
            ),
            ir.Enter(("tape",), (), Compute(Apply(Attribute(Name("tf"), "GradientTape"), ()))),
            ir.Primitive((), ("tape", "a"), Compute(Apply(Attribute(A, "watch"), (B,)))),
            ir.Primitive(("t2",), ("a",), Compute(Apply(Operator("*"), (A, A)))),
            ir.Exit(),
            ir.Store("x", ("t0", "t1"), "t2"),
            ir.Update(("x",), ("x",), Compute(Apply(Operator("+"), (A, Constant(1))))),
            ir.Push(("a", "b"), ("b", "a"), Compute(Items("tuple", (A, B)), (None, None))),
        ),
        ir.PushJump("b0", "b1"),
    )
    others = (
        ir.Block("b1", (), ir.Jump("b2", turn=True)),
        ir.Block("b2", (), ir.Branch("t0", "b3", "b4")),
        ir.Block("b3", (), ir.Fault('AssertionError: "{}" is {}', ("a", "b"), "assert")),
        ir.Block("b4", (), ir.Return()),
    )
    struct = StructType(
        "tuple",
        (
            TensorType("int32", (), weak=True),
            StructType("dict", (TensorType("float32", (3, 4)), TensorType("bool")), ("k", "a key")),
        ),
    )
    variables = (
        ir.Variable("a", TensorType("int32")),
        ir.Variable("b", struct, "cached stack", "why: read -- twice"),
        ir.Variable("x", None, "register"),
        ir.Variable("y"),
    )
    function = ir.Function("f", ("a", "b"), ("x", "y"), (b0, *others), ("np", "tf"), variables)
    assert program == ir.Program("stack", (function,))
    assert print_program(program) == text


def test_variables_are_the_functions_own_in_cfg_and_the_programs_in_stack():
    text = "program {}\n\nfunction f() -> x\nb0:\n  x = 1\n  return\n\nfunction g() -> y\nb1:\n  y = x\n  return\n"
    inputs = {d: parse_program(text.format(d)).function("g").blocks[0].ops[0].inputs for d in ("cfg", "stack")}
    assert inputs == {"cfg": (), "stack": ("x",)}


def test_lines_of_the_source_as_comments():
    def at(line):
        return Span("file.py", line, 0, line, 5)

    block = ir.Block(
        "b0",
        (
            ir.Enter(("x",), ("n",), Compute(A), at(12)),
            ir.Primitive(("y",), ("x",), Compute(A), at(13)),
            ir.Exit(at(12)),
            ir.Primitive(("x",), (), Compute(Constant("# line 3")), at(14)),
        ),
        ir.Return(at(15)),
    )
    program = ir.Program("cfg", (ir.Function("f", ("n",), ("x",), (block,), span=at(11)),))
    text = print_program(program, lines=True)
    assert text == (
        "program cfg\n\nfunction f(n) -> x  # line 11\nb0:\n  enter n as x  # line 12\n  y = x  # line 13\n"
        "  exit  # line 12\n  x = '# line 3'  # line 14\n  return  # line 15\n"
    )
    assert parse_program(text) == program


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected 'program cfg'"),
        ("program other\n", 1, "expected 'program cfg'"),
        ("program cfg\n", 1, "at least one function"),
        ("program cfg\nfunktion f()\n", 2, "expected 'function name"),
        ("program cfg\n\nfunction f()\n", 3, "no blocks"),
        ("program cfg\nfunction f()\n  vat x\nb0:\n  return\n", 3, "expected 'var', 'extern', 'made' or a label"),
        ("program cfg\nfunction f()\n  var x: int32\nb0:\n  return\n", 3, "in the type of x: expected a shape"),
        ("program cfg\nfunction f()\n  var x: (int32[]\nb0:\n  return\n", 3, r"expected ', ' or '\)'"),
        ("program cfg\nfunction f()\n  var x: int32[] heap\nb0:\n  return\n", 3, "expected a storage class"),
        ("program cfg\nfunction f()\nb0:\n  x = 1\n", 3, "no terminator"),
        ("program cfg\nfunction f()\nb0:\n  return\n  x = 1\n", 5, "goes on after its terminator"),
        ("program cfg\nfunction f()\nb0:\n  jump to b1\n", 4, "neither an op nor Python: 'jump to b1'"),
        ("program cfg\nfunction f()\nb0:\n  store a[0] = x\n  return\n", 4, "neither an op nor Python"),
        ("program cfg\nfunction f()\nb0:\n  x = 1; y = 2\n  return\n", 4, "neither an op nor Python"),
        ("program cfg\nfunction f()\nb0:\n  for x in y: pass\n  return\n", 4, "expected an expression, or its assignm"),
        ("program cfg\nfunction f()\nb0:\n  x += 1\n  return\n", 4, "expected an expression, or its assignment"),
        ("program cfg\nfunction f()\nb0:\n  x, *y = z\n  return\n", 4, "neither an op nor Python"),
        ("program cfg\nfunction f()\nb0:\n  enter f(), g()\n  return\n", 4, "expected one context manager"),
        ("program cfg\nfunction f()\nb0:\n      x = 1\n  return\n", 4, "unexpected indentation"),
        ('program cfg\nfunction f()\nb0:\n  fault raise "\\q"\n', 4, "in the message"),
    ],
)
def test_what_is_no_program_is_refused_with_its_line(text, line, message):
    with pytest.raises(IRSyntaxError, match=message) as caught:
        parse_program(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")


@pytest.mark.parametrize(
    "text", ["", "int32", "int32[] ", "int32[1,2]", "{a int32[]}", "(int32[],, bool[])", "S(int32[])"]
)
def test_what_is_no_type_is_refused(text):
    with pytest.raises(ValueError, match=r"expected"):
        parse_type(text)


def test_a_string_over_several_lines_is_quoted():
    # Python writes such f-strings in some versions; their lines cannot be told from the IR's own.
    code = Compute(Written(('f"""{', A, '}\n  return  # line 3\n\n"""')))
    block = ir.Block("b0", (ir.Primitive(("x",), ("n",), code), ir.Update(("x",), ("n",), code)), ir.Return())
    program = ir.Program("stack", (ir.Function("f", ("n",), ("x",), (block,)),))
    text = print_program(program)
    quoted = r'code "x = f\"\"\"{n}\n  return  # line 3\n\n\"\"\""'
    assert text.split("\n")[4:6] == [f"  {quoted}", f"  update {quoted}"]
    read = [ir.statement(op) for op in parse_program(text).entry.blocks[0].ops]
    for each in read:
        scope = {"n": 3}
        exec(each, scope)
        assert scope["x"] == "3\n  return  # line 3\n\n"
