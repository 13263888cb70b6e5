"""Good programs pass; for each rule of the IR there is a program that breaks it and nothing else."""

from dataclasses import replace

import pytest

from pcbatch.ir import program as ir
from pcbatch.ir.expressions import Input, Name, operation
from pcbatch.ir.payload import Compute
from pcbatch.ir.verifier import IRError, verify
from tests.ir import programs
from tests.ir.parser import parse_program


@pytest.mark.parametrize("text", programs.ALL.values(), ids=programs.ALL)
def test_good_programs_pass(text):
    verify(parse_program(text))


def violations(program):
    with pytest.raises(IRError) as caught:
        verify(program)
    assert str(caught.value) == "\n".join(caught.value.violations)
    return caught.value.violations


# Each is a good program with one passage changed: (program, passage, what stands there instead, complaint).
BROKEN = {
    "two blocks of one label": (programs.GCD, "b2:", "b1:", "two blocks are labelled b1|there is no block b2"),
    "unknown target": (programs.GCD, "jump b0, turn", "jump b7", "gcd, b1: jump b7: there is no block b7"),
    "target in another function": (
        programs.PARITY_CFG,
        "t0 b4 b5",
        "t0 b4 b0",
        "odd, b3: branch t0 b4 b0: b0 lies in another",
    ),
    "branch to another function": (programs.PARITY_STACK, "t0 b1 b2", "t0 b1 b3", "b3 lies in another function"),
    "jump into another function": (programs.PARITY_STACK, "jump b3", "jump b5", "b5 lies in another function"),
    "call of no entry": (
        programs.FIBONACCI_STACK,
        "pushjump b0, back to b3",
        "pushjump b1, back to b3",
        "b1 is not the entry",
    ),
    "call comes back to nowhere": (programs.FIBONACCI_STACK, "back to b4", "back to b9", "there is no block b9"),
    "update in cfg": (programs.GCD, "  result = a", "  update result = a", "Update does not belong to 'cfg'"),
    "push in cfg": (programs.GCD, "  result = a", "  result = a\n  push a = b", "Push does not belong to 'cfg'"),
    "pop in cfg": (programs.GCD, "  result = a", "  pop a\n  result = a", "Pop does not belong to 'cfg'"),
    "pushjump in cfg": (programs.GCD, "jump b0, turn", "pushjump b0, back to b2", "PushJump does not belong to 'cfg'"),
    "call in stack": (
        programs.PARITY_STACK,
        "  update m = n - 1",
        "  m = call odd(n)",
        "Call does not belong to 'stack'",
    ),
    "pop after another op": (
        programs.COUNT_STACK,
        "  pop n\n  update result = result + 1",
        "  update result = result + 1\n  pop n",
        "b3: pops come first",
    ),
    "push before another op": (
        programs.FIBONACCI_STACK,
        "  update n = n - 1\n  push left = left",
        "  push left = left\n  update n = n - 1",
        "b3: pops come first",
    ),
    "not a name": (programs.GCD, "function gcd(", "function g-cd(", "'g-cd' is no name for a function"),
    "keyword as a name": (programs.CHECKED, "branch t1 b3 b4", "branch None b3 b4", "'None' is no name"),
    "parameter given twice": (programs.GCD, "gcd(a, b)", "gcd(a, a)", "two parameters or two results called a"),
    "two functions of one name": (
        programs.PARITY_CFG,
        "function odd",
        "function even",
        "two functions are called even",
    ),
    "two values for one output": (programs.PARITY_CFG, "result = call odd", "x, x = call odd", "x is given two values"),
    "a push that assigns nothing": (
        programs.COUNT_STACK,
        "push n = n - 1",
        "push print(n)",
        "nothing is pushed",
    ),
    "message without its field": (programs.CHECKED, "{} of {}", "{} of x", "1 fields for 2 arguments"),
    "message that is no template": (programs.CHECKED, "{} of {}", "{} of {", "the message is no template"),
    "variable listed twice": (
        programs.FIBONACCI_STACK,
        "  var t0",
        "  var n: int32[]  cached stack  -- read after the call in b2, which may re-enter\n  var t0",
        "n is listed twice",
    ),
    "variable not listed": (
        programs.FIBONACCI_STACK,
        "  var t0: bool[]  temporary  -- read in b0 only\n",
        "",
        "t0 is missing from the list",
    ),
    "reason with blanks": (
        programs.FIBONACCI_STACK,
        "read in b0 only",
        "read in b0  only",
        "the reason of t0 is not one line",
    ),
    "externs out of order": (programs.GCD, "result\n", "result\n  extern tf, np\n", "externs are not sorted"),
    "extern that is a variable": (programs.GCD, "result\n", "result\n  extern a\n", "a is an extern and a variable"),
    "unknown callee": (programs.PARITY_CFG, "call odd", "call prime", "there is no function prime"),
    "too many arguments": (
        programs.PARITY_CFG,
        "call odd(t1)",
        "call odd(t1, t1)",
        "odd takes 1 arguments and gives 1 results",
    ),
    "too few results": (
        programs.PARITY_CFG,
        "  t1 = n - 1\n  result = call odd(t1)",
        "  result = n\n  call odd(n)",
        "odd takes 1 arguments",
    ),
    "result not assigned": (
        programs.GCD,
        "result = a",
        "other = a",
        "gcd, b2: return: result is not assigned on every path",
    ),
    "condition not assigned": (programs.GCD, "t0 = b != 0", "t9 = b != 0", "branch t0 b1 b2: t0 is not assigned"),
    "assigned on one path only": (
        programs.SQUARES,
        "t0 b2 b3",
        "t0 b2 b4",
        "b4: result = t1: t1 is not assigned on every path",
    ),
    "store to what is not assigned": (
        programs.SQUARES,
        "store array[i]",
        "store other[i]",
        "other is not assigned on every path",
    ),
    "temporary of another block": (
        programs.FIBONACCI_STACK,
        "update result = 1",
        "update result = t0",
        "the temporary t0 is not assigned before in this block",
    ),
    "condition never assigned": (programs.COUNT_STACK, "branch t0 b1 b2", "branch n0 b1 b2", "n0 is never assigned"),
    "array never assigned": (
        programs.COUNT_STACK,
        "  update result = 0",
        "  store array[n] = n\n  update result = 0",
        "array is never assigned",
    ),
    "result never assigned": (programs.COUNT_STACK, "-> result", "-> results", "b1: return: results is never assigned"),
    "primitive writes a variable": (
        programs.COUNT_STACK,
        "  update result = 0",
        "  result = 0",
        "result is assigned both by a primitive",
    ),
    "result that is temporary": (
        programs.FIBONACCI_STACK,
        "result: int32[]  register",
        "result: int32[]  temporary",
        "the result result is a temporary",
    ),
    "push on a register": (
        programs.FIBONACCI_STACK,
        "left: int32[]  cached stack",
        "left: int32[]  register",
        "left is stored as 'register'",
    ),
    "pop of a temporary": (
        programs.FIBONACCI_STACK,
        "n: int32[]  cached stack",
        "n: int32[]  temporary",
        "n is stored as 'temporary'",
    ),
    "assignment to what is shared": (
        programs.FIBONACCI_STACK,
        "result: int32[]  register",
        "result: int32[]  shared",
        "result is shared by all lanes",
    ),
    "popped more than pushed": (
        programs.COUNT_STACK,
        "push n = n - 1",
        "update n = n - 1",
        "b3: pop n: n was not pushed before in count",
    ),
    "pushed more than popped": (programs.COUNT_STACK, "  pop n\n", "", "count, b3: return: n is left on its stack"),
    "unequal stacks where paths meet": (
        programs.COUNT_STACK,
        "pushjump b0, back to b3",
        "branch n b3 b4\nb4:\n  push n = n\n  jump b3",
        "count, b3: paths meet with unequal stacks of n",
    ),
    "tail call with a full stack": (
        programs.PARITY_STACK,
        "update m = n - 1",
        "push m = n - 1",
        "jump b3, turn: m is left on its stack",
    ),
}
APPENDED = {"assigned on one path only": "b4:\n  result = t1\n  return\n"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name):
    text, passage, instead, complaint = BROKEN[name]
    assert passage in text
    found = violations(parse_program(text.replace(passage, instead, 1) + APPENDED.get(name, "")))
    for each in complaint.split("|"):
        assert any(each in violation for violation in found), found


def test_two_entries_of_one_variable_agree():
    program = parse_program(programs.PARITY_STACK)
    names = ["n", "m", "t0", "t1", "result"]

    def listed(function, storage):
        return replace(function, variables=tuple(ir.Variable(name, None, storage) for name in names))

    even, odd = program.functions
    (first, *_) = violations(replace(program, functions=(listed(even, "register"), listed(odd, "stack"))))
    assert first == "n is listed with two types, storage classes or reasons"


def primitive(**changes):
    function = parse_program(programs.GCD).entry
    entry = function.blocks[0]
    block = replace(entry, ops=(replace(entry.ops[0], **changes),))
    return ir.Program("cfg", (replace(function, blocks=(block, *function.blocks[1:])),))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"inputs": ("b", "a")}, "the expression reads inputs (0,), the op has 2"),
        ({"inputs": ()}, "the expression reads inputs (0,), the op has 0"),
        ({"code": Compute(operation("!=", Name("b"), Input(0)))}, "b is a variable, and no input of the op"),
        ({"code": Compute(operation("<", Input(1), Input(0))), "inputs": ("a", "b")}, "reads inputs (1, 0)"),
        ({"code": Compute(operation("<", Input(0), Input(1))), "inputs": ("b", "b")}, "b is two inputs"),
        ({"code": Compute(Input(0), (None, None))}, "1 outputs, not 2"),
        ({"outputs": ("t0", "t1")}, "2 outputs of one value"),
    ],
)
def test_operands_agree_with_the_expression(changes, complaint):
    assert any(complaint in violation for violation in violations(primitive(**changes)))


def test_there_is_a_function_and_it_has_blocks():
    assert violations(ir.Program("cfg", ())) == ("a program has at least one function",)
    assert violations(ir.Program("cfg", (ir.Function("f", (), (), ()),))) == ("f has no blocks",)


def test_all_violations_are_reported_at_once():
    text = programs.GCD.replace("jump b0, turn", "jump b7").replace("result = a", "push a = a")
    assert len(violations(parse_program(text))) == 2


def test_temporaries_by_storage_are_checked_as_well():
    # An update of what is kept nowhere: fine within the block, gone after it.
    text = programs.COUNT_STACK.replace("  t0 = n == 0\n", "  update t0 = n == 0\n")
    table = "  var n  stack\n  var t0  temporary\n  var result  register\nb0:"
    verify(parse_program(text.replace("b0:", table, 1)))
    found = violations(parse_program(text.replace("b0:", table, 1).replace("result = 0", "result = t0")))
    assert found == ("count, b1: update result = t0: the temporary t0 is not assigned before in this block",)
