"""What the syntax check refuses: codes, messages and what to write instead, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """What is wrong with a construct, a label for its carets and what to write instead."""

    code: str
    message: str
    label: str
    help: str


TRY = Refusal(
    "PCB101",
    "`try` is not supported",
    "a lane that fails cannot be caught here",
    "test the condition with `if` beforehand; read a failed lane's status from `f.run(..)`",
)
DEFINITION = Refusal(
    "PCB102",
    "a definition inside a batched function is not supported",
    "defined here",
    "define it outside, next to the batched function",
)
SCOPE = Refusal(
    "PCB103",
    "assigning variables of another scope is not supported",
    "declared here",
    "return the new value and assign it where the function is called",
)
DELETE = Refusal("PCB104", "`del` is not supported", "deleted here", "leave it out: unused values cost nothing")
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
WITH = Refusal(
    "PCB107",
    "`with` is not supported",
    "here",
    "move the block into a plain function without batched calls and call that",
)
MATCH = Refusal("PCB108", "`match` is not supported", "here", "write `if .. elif .. else`")
FOR = Refusal(
    "PCB109",
    "`for` loops over `range(..)` only",
    "this is not a range",
    "loop over the positions: `for i in range(len(xs)):` with `x = xs[i]`",
)
FOR_TARGET = Refusal(
    "PCB109", "the target of a loop over a range is one name", "this is not a name", "write `for i in range(..)`"
)
RANGE_ARGUMENTS = Refusal(
    "PCB109", "`range` takes one to three positional arguments", "here", "write `range(start, stop, step)`"
)
RANGE_ZERO = Refusal("PCB109", "the step of a range cannot be 0", "this is 0", "write a step that moves")
STARRED = Refusal(
    "PCB110", "starred expressions are not supported", "unpacked here", "write the elements out, one by one"
)
STAR_PARAMETER = Refusal(
    "PCB110",
    "`*args` and `**kwargs` parameters are not supported",
    "this takes any number of arguments",
    "name the parameters one by one, or pass one tuple",
)
DISCARDED = Refusal(
    "PCB111",
    "the value of this statement is discarded",
    "this could only act by a side effect, which would happen once for the whole batch",
    "assign the value, or remove the statement",
)
STORE_ATTRIBUTE = Refusal(
    "PCB112",
    "assigning an attribute is not supported",
    "assigned here",
    "keep the value in a local variable and return it",
)
STORE_SLICE = Refusal(
    "PCB112",
    "only single elements can be assigned",
    "this is not an integer index",
    "store element by element in a loop, `a[i] = v`, or build a new array with TensorFlow operations",
)
STORE_KEY = Refusal(
    "PCB112",
    "entries of a dict cannot be assigned",
    "this is a key",
    "make a new dict: `d = {.., key: v}`, or keep the value in a variable of its own",
)
STORE_NESTED = Refusal(
    "PCB112",
    "only elements of a local variable can be assigned",
    "assigned here",
    "write `a[i, j] = v` for `a[i][j] = v`",
)
SET = Refusal("PCB112", "sets are not supported", "a set", "use a tuple, or an array of bools")
IDENTITY = Refusal(
    "PCB113", "`is` and `is not` are not supported", "compares identities", "compare values with `==` and `!=`"
)
MEMBERSHIP = Refusal(
    "PCB113", "`in` and `not in` are not supported", "here", "write `x == a or x == b`, or `tf.reduce_any(xs == x)`"
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
    "make it a tensor outside the function, `BIG = tf.constant(.., tf.int64)`, and use that name",
)
COMPLEX = Refusal("PCB117", "complex literals are not supported", "here", "write `tf.complex(real, imaginary)`")
RETURN_NOTHING = Refusal(
    "PCB121", "a batched function returns a value", "nothing is returned here", "return a number, a tensor or a tuple"
)
TYPES = Refusal("PCB123", "type aliases and type parameters are not supported", "here", "leave the types out")
PYTHON_2 = Refusal("PCB125", "this is syntax of Python 2", "here", "write Python 3")
