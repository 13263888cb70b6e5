"""What the syntax check refuses: codes, messages and what to write instead, as data."""

from __future__ import annotations

from typing import Any

from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.refusal import Refusal

TRY = Refusal(
    "PCB101",
    "`try` is not supported",
    "a lane that fails cannot be caught here",
    "test the condition with `if` beforehand; read a failed lane's status from `f.run(..)`",
)
DEFINITION = Refusal(
    "PCB102",
    "a class inside a batched function is not supported",
    "defined here",
    "define it outside, next to the batched function",
)
DECORATED = Refusal(
    "PCB102",
    "a function inside a batched function has no decorators",
    "what it does would be lost",
    "leave it away: a function inside a batched function is part of it",
)
SCOPE = Refusal(
    "PCB103",
    "assigning variables of another scope is not supported",
    "declared here",
    "return the new value and assign it where the function is called",
)
DELETE = Refusal(
    "PCB104",
    "`del` is supported for entries only",
    "this is no entry of a dict or a list",
    "leave it out: unused values cost nothing; delete entries by `del d[key]`",
)
GENERATOR = Refusal(
    "PCB105", "generators are not supported", "suspended here", "store the values in an array and return that"
)
ASYNC = Refusal("PCB105", "`async` and `await` are not supported", "here", "write a plain function")
IMPORT = Refusal(
    "PCB106",
    "`import` inside a batched function is not supported",
    "imported here",
    "move the import to the top of the module",
)
WITH_CONTROL = Refusal(
    "PCB107",
    "control flow inside `with` is not supported",
    "this may leave the block, or branch in it",
    "keep assignments in the block and decide after it; what a tape is to see write with tf.where and "
    "tf.while_loop(.., maximum_iterations=n); a block that decides by no value of a lane may stand in a plain function",
)
WITH_STORE = Refusal(
    "PCB107",
    "an element is assigned inside `with`",
    "assigned here",
    "keep the value in a variable and store it after the block",
)
PATTERN = Refusal(
    "PCB108",
    "only literals, names, `|` and sequences of fixed length are supported as patterns",
    "this pattern is something else",
    "capture the whole and test its parts in a guard: `case p if p.x == 0:`",
)
PATTERN_ALTERNATIVES = Refusal(
    "PCB108",
    "a pattern with alternatives captures nothing",
    "a name is captured here",
    "write one `case` for each alternative",
)
PATTERN_LOCAL = Refusal(
    "PCB108",
    "a pattern compares with literals and with values from outside the function",
    "this is a local variable",
    "compare in a guard: `case x if x == p.limit:`",
)
LOOP_TARGET = Refusal(
    "PCB109",
    "the target of a loop is a name or a tuple of names",
    "this is neither",
    "loop with a name, `for x in xs:`, and assign in the loop's body",
)
SEQUENCE_ARGUMENTS = Refusal(
    "PCB129",
    "these arguments are not supported in a loop",
    "here",
    "write `enumerate(xs)`, `enumerate(xs, start)`, `zip(xs, ys)` or `reversed(xs)`",
)
REVERSED = Refusal(
    "PCB129",
    "`enumerate` and `zip` cannot be reversed",
    "Python would raise TypeError",
    "reverse what is inside: `zip(reversed(xs), reversed(ys))`",
)
FOR_TARGET = Refusal(
    "PCB109", "the target of a loop over a range is one name", "this is not a name", "write `for i in range(..)`"
)
RANGE_ARGUMENTS = Refusal(
    "PCB109", "`range` takes one to three positional arguments", "here", "write `range(start, stop, step)`"
)
RANGE_ZERO = Refusal("PCB109", "the step of a range cannot be 0", "this is 0", "write a step that moves")
STARRED_STORE = Refusal(
    "PCB110",
    "a starred target next to an element or an attribute is not supported",
    "takes the rest",
    "unpack into names first, then assign the element or the attribute",
)
STAR_PARAMETER = Refusal(
    "PCB110",
    "`**kwargs` parameters are not supported",
    "this takes any number of arguments",
    "name the parameters one by one, or pass one dict",
)
DISCARDED = Refusal(
    "PCB111",
    "the value of this statement is discarded",
    "this could only act by a side effect, which would happen once for the whole batch",
    "assign the value, or remove the statement",
)
STORE_RECEIVER = Refusal(
    "PCB112",
    "the object that the method belongs to is the same for all lanes and cannot be changed",
    "assigned here",
    "pass what changes as an argument of its own, and return it: `def step(self, state)` with `state.x = v`",
)
STORE_INDEX = Refusal(
    "PCB112",
    "only elements and slices can be assigned",
    "this is neither an integer index nor a slice",
    "write one index or slice for each axis: `a[i, j:j + 2] = v`; `a[...] = v` alone takes the whole array",
)
STORE_NESTED = Refusal(
    "PCB112",
    "only parts of a local variable can be assigned",
    "assigned here",
    "assign by one index or slice for each axis, `m[i + k, j] = v`; or give a copy a name and put it back: "
    "`rows = tf.identity(m[i:j])`, `rows[k] = v`, `m[i:j] = rows`",
)
SET = Refusal("PCB112", "sets are not supported", "a set", "use a tuple, or an array of bools")
IDENTITY = Refusal(
    "PCB113",
    "`is` and `is not` are supported with `None` only",
    "compares identities",
    "compare values with `==` and `!=`",
)
STRING = Refusal(
    "PCB114",
    "strings made from values are not supported outside `assert` and `raise`",
    "formatted here",
    "keep the number, or use the text as the message of an `assert` or a `raise`",
)
FORMAT_SPEC = Refusal(
    "PCB114", "the format of a message must be fixed", "a field within a format", "write the format out: `{x:.3f}`"
)
INNER_WALRUS = Refusal(
    "PCB115",
    "a lambda or comprehension cannot assign",
    "assigned here",
    "assign in a statement of its own",
)
RAISE_FORM = Refusal(
    "PCB116",
    "only `raise Error` and `raise Error(message)` are supported",
    "here",
    'name the exception\'s class: `raise ValueError("..")`',
)
RAISE_CAUSE = Refusal("PCB116", "an exception of a lane has no cause", "the cause", "leave out `from ..`")
RAISE_ARGUMENTS = Refusal(
    "PCB116",
    "an exception takes one message",
    "here",
    'put the values into the text: `raise ValueError(f"bad {x}")`',
)
INT32 = Refusal(
    "PCB117",
    "this integer does not fit in int32",
    "larger than 2147483647",
    "say of which dtype it is: `np.int64(..)`, `np.uint32(..)` or `tf.constant(.., tf.int64)`",
)


def gives_back(tree: Any, name: str) -> str:
    """What to write where a function changes arrays that it is given and returns nothing; "" where it changes none."""
    given = [each.id for each in (*tree.args.posonlyargs, *tree.args.args)]
    changed = [each for each in given if each in changed_in(tree.body)]
    if not changed:
        return ""
    one = changed[0] if len(changed) == 1 else f"{', '.join(changed)}"
    return f"arrays are values: `return {one}` on every path, and where it is called write `{one} = {name}({one}, ..)`"


RETURN_NOTHING = Refusal(
    "PCB121", "a batched function returns a value", "nothing is returned here", "return a number, a tensor or a tuple"
)
SYNC_VALUE = Refusal(
    "PCB126",
    "`pcbatch.sync()` is a statement",
    "it has no value",
    "write it on a line of its own, where lanes are to wait for the others: `pcbatch.sync()`",
)
SYNC_ARGUMENTS = Refusal("PCB126", "`pcbatch.sync()` takes no arguments", "given here", "write `pcbatch.sync()`")
DEBUG_VALUE = Refusal(
    "PCB131",
    "`pcbatch.debug(..)` is a statement, and stands outside `with`",
    "here it cannot be",
    'write it on a line of its own, before or behind a `with` block: `pcbatch.debug("x = {}", x)`',
)
DEBUG_ARGUMENTS = Refusal(
    "PCB131",
    "`pcbatch.debug` takes a text that is written there, and values",
    "these do not fit",
    'write a plain string with a field `{}` for each value, or with none: `pcbatch.debug("x = {}, n = {:3d}", x, n)`',
)
COST_VALUE = Refusal(
    "PCB127",
    "a row cannot cost this",
    "not a positive number",
    "say about how many multiply-adds one row takes: `@pcbatch.cost(1000.0)`",
)
COST_LITERAL = Refusal(
    "PCB128",
    "this cost is not a literal, so it is not known without running the file",
    "known only when the file runs",
    "write the number here: `@pcbatch.cost(1000.0)`",
)
TYPES = Refusal("PCB123", "type aliases and type parameters are not supported", "here", "leave the types out")
