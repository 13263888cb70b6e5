"""The solver and its analyses on programs whose answers can be worked out by hand."""

import pytest

from pcbatch.ir import program as ir
from pcbatch.ir.analysis.dataflow import Analysis, definitely_assigned, live_after_each_op, liveness, solve
from tests.ir import programs
from tests.ir.parser import parse_program


def shown(facts):
    return {label: (" ".join(sorted(fact.start)), " ".join(sorted(fact.end))) for label, fact in facts.items()}


def test_liveness_of_a_loop():
    assert shown(liveness(parse_program(programs.GCD).entry)) == {
        "b0": ("a b", "a b"),
        "b1": ("a b", "a b"),
        "b2": ("a", "result"),
    }


def test_liveness_across_calls():
    assert shown(liveness(parse_program(programs.FIBONACCI_CFG))) == {
        "b0": ("n", "n"),
        "b1": ("", "result"),
        "b2": ("n", "result"),
    }


def test_arguments_of_a_fault_are_live():
    facts = shown(liveness(parse_program(programs.CHECKED)))
    assert facts["b1"] == ("x", "")
    assert facts["b3"] == ("n x", "")


def test_a_store_reads_its_array():
    assert shown(liveness(parse_program(programs.SQUARES)))["b2"] == ("array i n", "array i n")


def test_liveness_after_each_op():
    function = parse_program(programs.FIBONACCI_CFG).entry
    block = function.blocks[2]
    live = live_after_each_op(block, liveness(function)["b2"].end)
    assert [" ".join(sorted(each)) for each in live] == ["n t1", "left n", "left t2", "left right", "result"]
    entry = function.blocks[0]
    assert live_after_each_op(entry, frozenset({"n"})) == ({"n", "t0"},)  # the terminator reads t0


def test_liveness_of_tops_follows_calls_and_returns():
    program = parse_program(programs.FIBONACCI_STACK)
    facts = liveness(program)
    assert shown(facts) == {
        "b0": ("n", "n"),
        "b1": ("", "result"),
        "b2": ("n", "n"),
        "b3": ("result", "n"),
        "b4": ("result", "result"),
    }
    # Before the push the top of left is alive, for b4 pops back to it; behind it the new one is dead.
    live = live_after_each_op(program.entry.blocks[3], facts["b3"].end)
    assert [" ".join(sorted(each)) for each in live] == ["n result", "left n", "left n", "n"]


def test_a_push_keeps_the_top_below_it_alive():
    text = """\
program stack

function f(x) -> result
b0:
  push x = 0
  jump b1
b1:
  pop x
  update result = x
  return
"""
    program = parse_program(text)
    facts = liveness(program)
    assert shown(facts) == {"b0": ("x", ""), "b1": ("", "result")}
    assert live_after_each_op(program.entry.blocks[1], facts["b1"].end) == ({"x"}, {"result"})


def test_liveness_across_tail_calls():
    facts = shown(liveness(parse_program(programs.PARITY_STACK)))
    assert facts["b2"] == ("n", "m")
    assert facts["b4"] == ("", "result")  # odd returns for even, the entry


def test_a_stack_function_alone_is_refused():
    with pytest.raises(ValueError, match="whole program"):
        liveness(parse_program(programs.COUNT_STACK).entry)


def test_definite_assignment():
    assert shown(definitely_assigned(parse_program(programs.SQUARES).entry)) == {
        "b0": ("array n", "array i n"),
        "b1": ("array i n", "array i n t0"),
        "b2": ("array i n t0", "array i n t0 t1"),
        "b3": ("array i n t0", "array i n result t0"),
    }


def test_everything_is_assigned_where_control_never_comes():
    text = programs.GCD + "b3:\n  jump b2\n"
    facts = shown(definitely_assigned(parse_program(text).entry))
    assert facts["b3"] == ("a b result t0", "a b result t0")
    assert facts["b2"] == ("a b t0", "a b result t0")


def test_an_analysis_is_a_value():
    """Shortest distances from the entry, in blocks: a forward analysis that merges by minimum."""
    function = parse_program(programs.FIBONACCI_CFG).entry
    distances = Analysis("forward", {"b0": 0}, 99, min, lambda block, distance: distance + 1)
    assert {label: fact.start for label, fact in solve(function.blocks, distances).items()} == {
        "b0": 0,
        "b1": 1,
        "b2": 1,
    }


def test_long_chains_do_not_recurse():
    count = 5000
    blocks = [ir.Block(f"b{i}", (), ir.Jump(f"b{i + 1}")) for i in range(count)] + [
        ir.Block(f"b{count}", (), ir.Return())
    ]
    facts = liveness(ir.Function("f", (), ("result",), tuple(blocks)))
    assert facts["b0"].start == {"result"}
