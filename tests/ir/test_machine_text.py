"""The text of machine programs parses back to the same program; what is no program is refused with its line."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.errors import Span
from pcbatch.ir import machine as table
from pcbatch.ir import program as ir
from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.machine_printer import print_machine
from pcbatch.ir.types import StructType, TensorType
from tests.ir import machine_programs
from tests.ir.machine_parser import parse_machine
from tests.ir.machine_strategies import programs as any_program
from tests.ir.ops import op_of
from tests.ir.parser import IRSyntaxError

INT, FLOAT, BOOL, VECTOR = TensorType("int32"), TensorType("float32"), TensorType("bool"), TensorType("float32", (3,))


@pytest.mark.parametrize("text", machine_programs.ALL.values(), ids=machine_programs.ALL)
def test_text_of_parsed_text_is_the_same(text):
    assert print_machine(parse_machine(text)) == text


@given(program=any_program(), lines=st.booleans())
@settings(max_examples=100)
def test_parsing_undoes_printing(program, lines):
    assert parse_machine(print_machine(program, lines=lines)) == program


def in_scopes(program):
    """`program`, the names of each piece being looked up in the function of its block."""

    def item(block, each):
        return replace(each, scope=block.function) if isinstance(each, table.Piece) else each

    blocks = (replace_body(block, [item(block, each) for each in block.body]) for block in program.blocks)
    return replace(program, blocks=tuple(blocks))


def replace_body(block, body):
    return replace(block, body=tuple(body))


def test_every_part_of_a_program_is_read():
    def statement(text, inputs, *sites):
        return table.Statement(op_of(text, inputs), sites)

    first = table.Piece(
        None,
        ("x",),
        ("kept", "pair"),
        statements=(statement("kept = x", ("x",)), statement("pair = (1, {'a': True})", ())),
    )
    costly = table.Piece(
        None,
        ("x",),
        ("x", "t0"),
        ("w", "scale"),
        (2,),
        tapes=True,
        statements=(
            table.Statement(op_of("enter tape.record(x) as t", "x")),
            statement("t0 = x * w[0]", ("x", "w"), None),
            statement("x = t0 / scale", ("t0", "scale"), 2, None),
            table.Statement(ir.Exit()),
        ),
    )
    summed = table.Piece(None, ("x",), ("y",), statements=(statement("y = sum(x)", ("x",)),))
    last = table.Piece(None, ("y", "kept"), ("y",), statements=(statement("y = y + sum(kept)", ("y", "kept")),))
    expected = table.Program(
        "everything",
        ("x",),
        ("y",),
        {
            "x": VECTOR,
            "kept": VECTOR,
            "y": FLOAT,
            "pair": StructType("tuple", (INT, StructType("dict", (BOOL,), ("a",)))),
            "t0": VECTOR,
        },
        {"x": "cached stack", "kept": "cached stack", "y": "register", "pair": "stack"},
        (
            table.Block("b0", (first,), table.Jump(1), function="everything"),
            table.Block(
                "b1",
                (costly,),
                table.PushJump(2, 3, 0),
                pushes=(table.Push("x"), table.Push("kept", "t0")),
                function="Model.step",
                steps_site=1,
                sync=True,
                cost=1000.0,
                chunks=table.Chunks(8, 48),
            ),
            table.Block("b2", (summed,), table.Return(), function="Model.step"),
            table.Block("b3", (last,), table.Return(), pops=("x", "kept"), function="everything", dead=("x", "kept")),
        ),
        (
            table.FaultSite(LaneStatus.MAX_DEPTH, "RecursionError: more than max_depth calls deep"),
            table.FaultSite(LaneStatus.MAX_STEPS, "more than max_steps loop turns and calls"),
            table.FaultSite(LaneStatus.INDEX, "IndexError: index out of range"),
        ),
        ("w", "scale"),
        {"w": VECTOR, "scale": FLOAT},
        {"kept": "x"},
        structure=StructType("tuple", (FLOAT,)),
    )
    program = parse_machine(machine_programs.EVERYTHING)
    assert program == in_scopes(expected)
    assert [*program.storage] == [*expected.storage]  # the state has its arrays in this order
    stored = parse_machine(machine_programs.CONVERTED).blocks[0]
    assert stored.body[2] == table.Store("array", ("t1",), "total", 1, "t0")
    assert stored.body[1].predicate == "t0"
    looping = parse_machine(machine_programs.GCD)
    assert looping.blocks[1].terminator == table.Jump(table.Branch("t0", 1, 2), turn=True)
    assert looping.order == (0, 2, 1)


def test_every_part_of_a_program_takes_part_in_comparisons():
    # A change of the text that leaves the program equal would be something that the machine does not execute.
    seen = {}
    for text in machine_programs.ALL.values():
        program = parse_machine(text)
        assert all(program != other for other in seen.values())
        seen[text] = program
    everything = seen[machine_programs.EVERYTHING]
    changes = [
        (", sync", ""),
        (", cost 1000.0", ""),
        ("rows 8, all", "rows 9, all"),
        ("rows 8, all from 48", "rows 8"),
        ("push kept  saved t0", "push kept"),
        ("  tapes:", ":"),
        ("check 2, -:", "check -, 2:"),
        ("structure (float32[],)", "structure [float32[]]"),
        ("  steps 1", ""),
        ("  dead x, kept\n", "  dead x\n"),
        ("function Model.step", "function Model.leap"),
        ("pointer x: kept", "pointer kept: x"),
        ("RecursionError", "Recursion"),
        ("pop x, kept\n", "pop kept, x\n"),
    ]
    for passage, instead in changes:
        assert passage in machine_programs.EVERYTHING
        assert parse_machine(machine_programs.EVERYTHING.replace(passage, instead, 1)) != everything, passage


def test_spans_take_no_part_in_comparisons():
    bare, placed = parse_machine(machine_programs.SQUARES), with_spans(parse_machine(machine_programs.SQUARES))
    assert bare == placed
    assert bare.blocks[0].span != placed.blocks[0].span


def with_spans(program):
    """`program`, blocks on lines 10, 20, .., fault sites on lines 1, 2, .., statements behind their block's."""

    def at(line):
        return Span("file.py", line, 0, line, 5)

    def piece(item, line):
        if isinstance(item, table.Store):
            return item
        spans = tuple(at(line + 1 + k) for k, _ in enumerate(item.statements))
        own = [replace(s, op=replace(s.op, span=span)) for s, span in zip(item.statements, spans, strict=True)]
        return replace(item, statements=tuple(own), spans=spans)

    blocks = [
        replace(block, span=at(10 * k), body=tuple(piece(item, 10 * k) for item in block.body))
        for k, block in enumerate(program.blocks, 1)
    ]
    faults = [replace(site, span=at(k)) for k, site in enumerate(program.faults, 1)]
    return replace(program, blocks=tuple(blocks), faults=tuple(faults))


def test_lines_of_the_source_as_comments():
    program = with_spans(parse_machine(machine_programs.CONVERTED))
    text = print_machine(program, lines=True)
    assert '  site 1: INDEX "IndexError: index out of range"  # line 2\n' in text
    assert "b0:  # line 10\n  piece (n) -> t0, total:\n    t0 = n > 0  # line 11\n" in text
    assert "    check 0: total = 100 // n  # line 11\n" in text
    assert parse_machine(text) == program
    assert print_machine(program) == machine_programs.CONVERTED


def test_a_line_of_a_statement_cannot_be_mistaken():
    # Each looks like another line of the dialect.
    for text in ("push, = (saved,)", "x = '# line 7'", "piece = rows", "store = site[0]", "dead"):
        body = (table.Statement(op_of(text, ()), (None,)),)
        bare = table.Program("f", (), (), {}, {}, (table.Block("b0", (table.Piece(None, statements=body),), END),))
        assert parse_machine(print_machine(bare)) == bare


END = table.Return()


def test_generated_code_is_shown_and_refused():
    def fibonacci_b0(n):
        return (n <= 1,)

    piece = table.Piece(fibonacci_b0, ("n",), ("t0",), sites=(2,), predicate="t1")
    text = print_machine(table.Program("f", (), (), {}, {}, (table.Block("b0", (piece,), END),)))
    assert text.splitlines()[3] == "  piece fibonacci_b0(n) -> t0  sites 2  if t1"
    with pytest.raises(IRSyntaxError, match="line 4: the piece fibonacci_b0 is generated code"):
        parse_machine(text)


HEADER = "program machine f() -> x\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "expected 'program machine"),
        ("program cfg\n", 1, "expected 'program machine"),
        (HEADER + "  vat x\n", 2, "expected 'var'"),
        (HEADER + "  var x: int32[]\n", 2, "expected a storage class and no more behind x"),
        (HEADER + "  var x: int32[]  register  -- why\n", 2, "expected a storage class and no more"),
        (HEADER + "  var x  temporary\n", 2, "the temporary x has no type"),
        (HEADER + "  var x: int32[]  register\n  var x: int32[]  temporary\n", 3, "x is listed twice"),
        (HEADER + "  var w: int32[]  shared\n  var w: int32[]  shared\n", 3, "w is listed twice"),
        (HEADER + '  site 1: INDEX "E"\n', 2, "expected fault site 0, not 1"),
        (HEADER + '  site 0: INDEX "\\q"\n', 2, "in the message"),
        (HEADER + "  structure int32[]\nb0:\n  return\n", 2, "int32\\[\\] is no structure"),
        (HEADER + "  structure (int32\nb0:\n  return\n", 2, "expected a shape after 'int32'"),
        (HEADER + "  order b1\nb0:\n  return\n", 2, "there is no block b1"),
        (HEADER + "b0:\n  return\nb0:\n  return\n", 4, "two blocks are labelled b0"),
        (HEADER + "b0:\n  jump b1\n", 3, "there is no block b1"),
        (HEADER + "b0:\n  jump branch t b0 b1\n", 3, "there is no block b1"),
        (HEADER + "b0:\n  pushjump b0, back to b1, site 0\n", 3, "there is no block b1"),
        (HEADER + "b0:\n  piece ():\n", 2, "b0 has no terminator"),
        (HEADER + "b0:\n  return\n  piece ():\n", 4, "goes on after its terminator"),
        (HEADER + "b0:\n  push x\n  pop x\n  return\n", 4, "neither a terminator nor anything else"),
        (HEADER + "b0:\n  piece () -> x\n    x = 1\n  return\n", 3, "neither a terminator nor anything else"),
        (HEADER + "b0:\n  x = 1\n  return\n", 3, "neither a terminator nor anything else"),
        (HEADER + "b0:\n  store a[i] v\n  return\n", 3, "neither a terminator nor anything else"),
        (HEADER + "b0:\n  piece ():\n    store a[i] = v\n  return\n", 4, "Store cannot be inside a piece"),
        (HEADER + "b0:\n  piece ():\n    check 2; x = 1\n  return\n", 4, "neither an op nor Python"),
        (HEADER + "b0:\n  piece ():\n      x = 1\n  return\n", 4, "unexpected indentation"),
        (HEADER + "block b0:\n  return\n", 2, "expected 'function name' or a label"),
    ],
)
def test_what_is_no_program_is_refused_with_its_line(text, line, message):
    with pytest.raises(IRSyntaxError, match=message) as caught:
        parse_machine(text)
    assert caught.value.line == line
