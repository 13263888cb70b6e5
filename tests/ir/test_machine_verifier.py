"""Good machine programs pass; for each rule of the dialect there is a program that breaks it and nothing else."""

from dataclasses import replace

import pytest

from pcbatch.ir import machine as table
from pcbatch.ir import machine_rules, machine_verifier
from pcbatch.ir.machine_verifier import validate, verify_machine
from pcbatch.ir.types import TensorType
from pcbatch.ir.verifier import IRError
from tests.ir import machine_programs
from tests.ir.machine_parser import parse_machine
from tests.ir.machine_programs import CHECKED, CONVERTED, DEFERRED, EVERYTHING, FIBONACCI, FORKED, GCD, SQUARES


@pytest.mark.parametrize("text", [*machine_programs.ALL.values(), DEFERRED], ids=[*machine_programs.ALL, "deferred"])
def test_good_programs_pass(text):
    verify_machine(parse_machine(text))


def violations(program, check=verify_machine):
    with pytest.raises(IRError) as caught:
        check(program)
    assert str(caught.value) == "\n".join(caught.value.violations)
    return caught.value.violations


# Each is a good program with one passage changed: rule, program, passage, what stands there instead, complaint.
BROKEN = {
    "variable that is no name": ("names", GCD, "var t0", "var None", "'None' is no name"),
    "parameter given twice": ("names", GCD, "gcd(a, b)", "gcd(a, a)", "two parameters are called a"),
    "variable without a type": ("tables", GCD, "var b: int32[]", "var b", "variable 'b' has no type"),
    "parameter that is not stored": (
        "tables",
        GCD,
        "b: int32[]  register",
        "b: int32[]  temporary",
        "parameter or result 'b' is not a variable of the state",
    ),
    "result that is not stored": (
        "tables",
        GCD,
        "result: int32[]  register",
        "result: int32[]  temporary",
        "parameter or result 'result' is not a variable of the state",
    ),
    "shared operand without a type": (
        "shared",
        EVERYTHING,
        "var w: float32[3]",
        "var w",
        "'w' is a shared operand with",
    ),
    "shared operand that is stored": (
        "shared",
        EVERYTHING,
        "  var scale",
        "  var scale: float32[]  register\n  var scale",
        "'scale' is both a shared operand and a variable",
    ),
    "shared operand with two types": (
        "shared",
        EVERYTHING,
        "  var scale",
        "  var scale: int32[]  temporary\n  var scale",
        "the shared operand 'scale' has two types",
    ),
    "pointer of a register": (
        "pointers",
        EVERYTHING,
        "pointer x: kept",
        "pointer y: kept",
        "one of which has no stack",
    ),
    "register with a pointer": ("pointers", EVERYTHING, "pointer x: kept", "pointer x: y", "one of which has no stack"),
    "pointer of one that has none": (
        "pointers",
        EVERYTHING,
        "pointer x: kept",
        "pointer x: kept\n  pointer kept: x",
        "'x' has the stack pointer of 'kept', which has that of 'x'",
    ),
    "pushed without the leader": (
        "pointers",
        EVERYTHING,
        "  push kept  saved t0\n",
        "",
        "'kept' has the stack pointer of 'x', but b1 does not move them together",
    ),
    "popped without the leader": ("pointers", EVERYTHING, "pop x, kept", "pop x", "but b3 does not move them together"),
    "order with a block twice": ("places", GCD, "order b0, b2", "order b0, b0, b2", "the order has 0 more than once"),
    "order without the entry": ("order", GCD, "order b0, b2", "order b2", "the order lacks b0"),
    "turns that go elsewhere": (
        "deferred",
        DEFERRED,
        "branch t0 b1 b2",
        "branch t0 b2 b1",
        "branches to itself or goes on",
    ),
    "turns counted by an array": (
        "deferred",
        DEFERRED,
        "turns i of n",
        "turns i of array",
        "'array' cannot count its turns",
    ),
    "no turns": ("deferred", DEFERRED, "at most 4", "at most 0", "it has 0 turns at most, of block 0"),
    "turns that see each other": (
        "deferred",
        DEFERRED,
        "-> t1:",
        "-> t1, n:\n    n = i * i",
        "each would see 'n'",
    ),
    "turns that store at one place": ("deferred", DEFERRED, "array[i] =", "array[n] =", "store at their own places"),
    "native twice": ("native", GCD, "order b0, b2", "native b0, b0\n  order b0, b2", "0 is native more than once"),
    "row that costs nothing": ("rows", EVERYTHING, "cost 1000.0", "cost 0.0", "everything, b1: a row cannot cost 0.0"),
    "row that costs too much": ("rows", EVERYTHING, "cost 1000.0", "cost 1e999", "a row cannot cost inf"),
    "no rows": ("rows", GCD, "rows 16", "rows 0", "gcd, b1: it cannot run on 0 rows at a time"),
    "all rows for nobody": ("rows", EVERYTHING, "all from 48", "all from 0", "cannot run for all lanes where 0 wait"),
    "message without its field": ("faults", CHECKED, "{} of {}", "{} of x", "1 fields for 2 arguments"),
    "message that is no template": ("faults", CHECKED, "{} of {}", "{} of {", "the message is no template"),
    "message with a temporary": ("faults", CHECKED, '{}" x, n', '{}" x, t0', "'t0' is not a variable of the state"),
    "check at a site that is none": ("faults", GCD, "check 0", "check 7", "the fault site 7 does not exist"),
    "check at a site of another kind": ("faults", GCD, "check 0", "check 1", "the fault site 1 is for MAX_STEPS"),
    "store at a site that is none": ("faults", SQUARES, "t1  site 0", "t1  site 2", "the fault site 2 does not exist"),
    "store at a site of another kind": ("faults", SQUARES, "t1  site 0", "t1  site 1", "site 1 is for MAX_STEPS"),
    "fault at a site that is none": (
        "faults",
        CHECKED,
        "  fault 1",
        "  fault 3",
        "checked, b3: fault 3: the fault site",
    ),
    "fault at a site of another kind": ("faults", CHECKED, "  fault 1", "  fault 2", "site 2 is for ARITHMETIC"),
    "call at a site that is none": ("faults", FIBONACCI, "b3, site 0", "b3, site 2", "the fault site 2 does not exist"),
    "call at a site of another kind": ("faults", FIBONACCI, "b3, site 0", "b3, site 1", "the fault site 1 is for"),
    "steps at a site that is none": ("faults", GCD, "steps 1", "steps 2", "the fault site 2 does not exist"),
    "steps at a site of another kind": ("faults", GCD, "steps 1", "steps 0", "the fault site 0 is for ARITHMETIC"),
    "temporary of another block": (
        "values",
        SQUARES,
        "piece (i) -> t1:\n    t1 = i * i",
        "piece (t0) -> t1:\n    t1 = t0 * t0",
        "squares, b2: piece (t0) -> t1: 't0' was never written",
    ),
    "store of what was never written": (
        "values",
        SQUARES,
        "store array[i] = t1",
        "store array[i] = t0",
        "'t0' was never",
    ),
    "store to what was never written": ("values", SQUARES, "store array[i]", "store other[i]", "'other' was never"),
    "index that was never written": ("values", SQUARES, "store array[i]", "store array[t0]", "'t0' was never written"),
    "condition that was never written": (
        "values",
        SQUARES,
        "branch t0 b2 b3",
        "branch t1 b2 b3",
        "b1: branch t1 b2 b3: 't1' was never written",
    ),
    "condition of a jump that was never written": (
        "values",
        SQUARES,
        "jump b1, turn",
        "jump branch t0 b1 b3, turn",
        "b2: jump branch t0 b1 b3, turn: 't0' was never written",
    ),
    "condition of a call that was never written": (
        "values",
        FIBONACCI,
        "pushjump b0, back to b4",
        "pushjump branch t0 b0 b1, back to b4",
        "'t0' was never written",
    ),
    "predicate that was never written": ("values", CONVERTED, "t1  if t0", "t1  if t2", "'t2' was never written"),
    "predicate of a store never written": ("values", CONVERTED, "site 1  if t0", "site 1  if t2", "'t2' was never"),
    "predicate that is no bool": ("values", CONVERTED, "t1  if t0", "t1  if n", "'n' is int32[], no scalar bool"),
    "condition that is a vector": ("values", GCD, "t0: bool[]", "t0: bool[3]", "'t0' is bool[3], no scalar bool"),
    "saved value that was never written": (
        "values",
        FIBONACCI,
        "saved left",
        "saved t0",
        "push left  saved t0: 't0' was",
    ),
    "result of a piece without a type": (
        "values",
        GCD,
        "  var t0: bool[]  temporary\n",
        "",
        "b1: piece (a, b) -> a, b, t0: 't0' has no type",
    ),
    "store to a structure": (
        "stores",
        EVERYTHING,
        "  jump b1",
        "  store pair[kept] = x  site 2\n  jump b1",
        "is no tensor",
    ),
    "store with too many indices": ("stores", SQUARES, "array[i]", "array[i, i]", "'array' is int32[4]"),
    "push on a register": (
        "stacks",
        FIBONACCI,
        "  push n\n",
        "  push n\n  push result\n",
        "fibonacci, b2: 'result' is popped or pushed but has no stack",
    ),
    "pop of a register": ("stacks", FIBONACCI, "pop left", "pop left, result", "'result' is popped or pushed but has"),
    "saved value of another type": (
        "stacks",
        FIBONACCI,
        "  push n\n",
        "  push n  saved t0\n",
        "a value of another type",
    ),
    "fork of one call": ("forks", FORKED, "; (n = n_2) -> other = result", "", "a group has two calls at least"),
    "fork of more calls than follow": (
        "forks",
        FORKED,
        "; (n = n_2) -> other = result",
        "; (n = n_2) -> other = result; (n = n) -> other = result",
        "b2 comes to fewer calls than it could fork",
    ),
    "fork with what is never written": ("forks", FORKED, "(n = n_2)", "(n = nobody)", "'nobody' was never written"),
    "fork that gives a temporary": (
        "forks",
        FORKED,
        "one = result;",
        "one = t0;",
        "'t0' has no top that could be handed",
    ),
    "fork into what is no slot": ("forks", FORKED, "one = result;", "n_1 = result;", "'n_1' is no slot"),
    "slot of no call": (
        "forks",
        FORKED,
        "one = result;",
        "other = result;",
        "'one' lies in a slot, and is no result of a forked call or is written",
    ),
    "slot of another type": (
        "forks",
        FORKED,
        "var one: int32[]",
        "var one: float32[]",
        "'one' is a result of another type",
    ),
    "written though by example": (
        "forks",
        FORKED,
        "var result: int32[]  register",
        "var result: int32[]  example",
        "'result' lies by example, and is no parameter or is written",
    ),
    "dead though only read": (
        "dead",
        GCD,
        "  return\n",
        "  dead a\n  return\n",
        "b2: ('a',) cannot all be dead, 'a' not",
    ),
    "dead though temporary": ("dead", GCD, "  jump branch", "  dead t0\n  jump branch", "('t0',) cannot all be dead"),
    "dead though stored to": (
        "dead",
        SQUARES,
        "  jump b1, turn",
        "  dead array\n  jump b1, turn",
        "cannot all be dead",
    ),
    "operand given twice": ("operands", GCD, "piece (a, b)", "piece (a, b, b)", "'b' is an operand twice"),
    "result given twice": ("operands", GCD, "-> a, b, t0", "-> a, b, b, t0", "'b' is written twice"),
    "unknown shared operand": (
        "operands",
        EVERYTHING,
        "shared w, scale",
        "shared w, v, scale",
        "'v' is an unknown shared",
    ),
    "result that all lanes share": (
        "operands",
        EVERYTHING,
        "-> x, t0",
        "-> x, w, t0",
        "'w' is a shared operand and cannot",
    ),
    "statements read what is no operand": (
        "statements",
        GCD,
        "piece (a, b)",
        "piece (a)",
        "read 'b', which is no operand",
    ),
    "operand that no statement reads": (
        "statements",
        GCD,
        "piece (b)",
        "piece (a, b)",
        "none of its statements reads 'a'",
    ),
    "result that no statement assigns": (
        "statements",
        GCD,
        "piece (b) -> t0",
        "piece (b) -> t0, result",
        "none of its statements assigns 'result'",
    ),
    "statement that assigns what is shared": (
        "statements",
        EVERYTHING,
        "    exit\n",
        "    exit\n    scale = t0\n",
        "'scale' is a shared operand and cannot be assigned",
    ),
    "fault sites that are not the statements'": (
        "statements",
        GCD,
        "-> a, b, t0:",
        "-> a, b, t0  sites -:",
        "its statements can report (0,), not ()",
    ),
    "`with` that does not end": ("contexts", EVERYTHING, "    exit\n", "", "a `with` block does not end"),
    "end of no `with`": ("contexts", EVERYTHING, "    exit\n", "    exit\n    exit\n", "no `with` block has begun"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name):
    rule, text, passage, instead, complaint = BROKEN[name]
    assert passage in text
    program = parse_machine(text.replace(passage, instead, 1))
    found = violations(program)
    assert any(complaint in violation for violation in found), found
    own = next(getattr(module, rule) for module in (machine_rules, machine_verifier) if hasattr(module, rule))
    assert set(own(program)) <= set(found), "it is another rule that finds this"
    assert any(complaint in violation for violation in own(program))


def test_every_rule_is_broken_by_some_program():
    stated = (machine_rules, machine_verifier)
    rules = {f.__name__ for module in stated for f in vars(module).values() if is_rule(f, module)}
    assert rules - {"generated", "steps"} == {rule for rule, *_ in BROKEN.values()}


def is_rule(function, module):
    """Whether a module defines such a generator of violations."""
    if getattr(function, "__module__", None) != module.__name__ or function.__name__.startswith("_"):
        return False
    return function.__annotations__ == {"program": "Program", "return": "Violations"}


def changed(text, number, **changes):
    """The program with one of its blocks changed, as no text can say."""
    program = parse_machine(text)
    blocks = [*program.blocks]
    blocks[number] = replace(blocks[number], **changes)
    return replace(program, blocks=tuple(blocks))


def test_what_no_text_can_say():
    gcd = parse_machine(GCD)
    assert violations(replace(gcd, blocks=(), order=())) == ("gcd has no blocks",)
    assert violations(changed(GCD, 2, label="b1")) == ("gcd: two blocks are labelled b1",)
    assert (
        "'class' is no name for a variable, a shared operand or a label"
        in violations(changed(GCD, 2, label="class"))[0]
    )
    assert "is no name for a function" in violations(changed(GCD, 1, function="two words"))[0]
    (found,) = violations(replace(gcd, storage={**gcd.storage, "a": "heap"}))
    assert found == "gcd: variable 'a' has the unknown storage 'heap'"
    twice = replace(parse_machine(EVERYTHING), shared=("w", "scale", "w"))
    assert violations(twice) == ("everything: two shared operands are called w",)
    none = replace(parse_machine(EVERYTHING), shared_types={"w": TensorType("float32"), "v": TensorType("int32")})
    assert [found.split("'")[1] for found in violations(none)] == ["scale", "v"]
    (found,) = violations(replace(gcd, order=(0, 3)))
    assert found == "gcd: the order has 3, where there is no block"


@pytest.mark.parametrize(
    ("terminator", "place"),
    [
        (table.Jump(3), 3),
        (table.Jump(-1), -1),
        (table.Branch("t0", 0, 5), 5),
        (table.Jump(table.Branch("t0", 4, 0)), 4),
        (table.PushJump(3, 0, 0), 3),
        (table.PushJump(0, 3, 0), 3),
        (table.PushJump(table.Branch("t0", 0, 9), 0, 0), 9),
    ],
)
def test_terminators_go_to_blocks_that_exist(terminator, place):
    found = violations(changed(GCD, 1, terminator=terminator))
    assert any(f"goes to {place}, where there is no block" in violation for violation in found)


def test_the_expressions_of_statements_agree_with_their_inputs():
    piece = parse_machine(GCD).blocks[0].body[0]
    (statement,) = piece.statements
    for changes, complaint in (
        ({"inputs": ("b", "a")}, "the expression reads inputs (0,), the op has 2"),
        ({"outputs": ("t0", "t1")}, "2 outputs of one value"),
    ):
        other = replace(piece, statements=(replace(statement, op=replace(statement.op, **changes)),))
        assert any(complaint in found for found in violations(changed(GCD, 0, body=(other,)))), complaint


def test_all_violations_are_reported_at_once():
    text = (
        FIBONACCI.replace("push n\n", "push result\n").replace("saved left", "saved t0").replace("t0 b1 b2", "n b1 b2")
    )
    found = violations(parse_machine(text))
    assert len(found) == 4, found  # the saved t0 was never written and has another type


def test_the_machine_wants_generated_code():
    program = parse_machine(GCD)
    assert len(violations(program, validate)) == 4 - 1
    assert "no code has been generated" in violations(program, validate)[0]

    def generated(item):
        return replace(item, function=lambda *operands: operands, statements=())

    blocks = tuple(replace(block, body=tuple(map(generated, block.body))) for block in program.blocks)
    validate(replace(program, blocks=blocks))
    # A step too many must have something to report.
    nameless = replace(program, blocks=tuple(replace(block, steps_site=-1) for block in blocks))
    validate(nameless)
    (found,) = violations(nameless, lambda each: validate(each, max_steps=5))
    assert found == "gcd, b1: jump branch t0 b1 b2, turn: there is no fault site for exceeding max_steps"


def test_a_captured_path_may_be_in_the_code_for_a_shared_operand():
    # `model.w` is captured as the operand w; no name in the code says so.
    text = EVERYTHING.replace("x * w[0]", "x * model.w[0]")
    verify_machine(parse_machine(text))
