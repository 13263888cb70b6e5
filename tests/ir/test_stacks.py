"""A model of the stack dialect: Push, Pop and Update against Python lists, over blocks and calls."""

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from pcbatch.ir.verifier import verify
from tests.ir.evaluation import copy_store, python_evaluate
from tests.ir.interpreter import interpret
from tests.ir.parser import parse_program

VARIABLES = ("x", "y", "z")
LOG = "  update log = log + ((x, y, z),)\n"

# A callee that saves, overwrites and restores: its caller's stacks must not show it.
BALANCED = """
function balanced() -> log
c0:
  push x = log
  push x, y = (y, x)
  jump c1
c1:
  pop y, x
  update x = -7
  push z = x
  jump c2
c2:
  pop z, x
  return
"""


@cache
def values():
    """`(source text, function of the model's stacks)` of what is pushed."""
    constants = st.integers(-9, 9).map(lambda n: (str(n), lambda _: n))
    copies = st.sampled_from(VARIABLES).map(lambda v: (v, lambda stacks: stacks[v][-1]))
    sums = st.tuples(*[st.sampled_from(VARIABLES)] * 2).map(
        lambda p: (f"{p[0]} - {p[1]}", lambda stacks: stacks[p[0]][-1] - stacks[p[1]][-1])
    )
    return constants | copies | sums


@cache
def assignments():
    """Up to three variables given values at once: `("x, y", "(y, 3)", functions)`."""
    one = st.tuples(st.sampled_from(VARIABLES), values())
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda pair: pair[0])


def code(assigned):
    targets, sources = ", ".join(v for v, _ in assigned), ", ".join(text for _, (text, _) in assigned)
    return f"{targets} = ({sources})"


@given(st.data())
@settings(max_examples=60)
def test_stacks_are_lists(data):
    start = (1, 20, 300)
    stacks = {name: [value] for name, value in zip(VARIABLES, start, strict=True)}
    expected = []
    blocks = []

    def block(pops, updates, pushes, call):
        """Emit a block and do the same to the model."""
        text = f"  pop {', '.join(pops)}\n" if pops else ""
        for name in pops:
            stacks[name].pop()
        for assigned in updates:
            text += f"  update {code(assigned)}\n"
            for name, value in [(name, value(stacks)) for name, (_, value) in assigned]:
                stacks[name][-1] = value
        text += LOG
        expected.append(tuple(stacks[name][-1] for name in VARIABLES))
        for assigned in pushes:
            text += f"  push {code(assigned)}\n"
            for name, value in [(name, value(stacks)) for name, (_, value) in assigned]:
                stacks[name].append(value)
        after = f"b{len(blocks) + 1}"
        blocks.append(text + (f"  pushjump c0, back to {after}\n" if call else f"  jump {after}\n"))

    for _ in range(data.draw(st.integers(1, 8), label="blocks")):
        full = [name for name in VARIABLES if len(stacks[name]) > 1]
        pops = data.draw(st.lists(st.sampled_from(full), unique=True) if full else st.just([]), label="pops")
        updates = data.draw(st.lists(assignments(), max_size=2), label="updates")
        pushes = data.draw(st.lists(assignments(), max_size=2), label="pushes")
        block(pops, updates, pushes, data.draw(st.booleans(), label="call"))
    while any(len(stack) > 1 for stack in stacks.values()):  # everything that was saved comes to light again
        block([name for name in VARIABLES if len(stacks[name]) > 1], [], [], False)

    body = "".join(f"b{number}:\n{text}" for number, text in enumerate(blocks))
    text = f"program stack\n\nfunction f(x, y, z, log) -> log\n{body}b{len(blocks)}:\n  return\n{BALANCED}"
    program = parse_program(text)
    verify(program)
    outcome = interpret(program, (*start, ()), python_evaluate({}), copy_store)
    assert outcome.status == "OK"
    assert outcome.value == tuple(expected)
