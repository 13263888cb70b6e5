"""The IR as text. A parser in `tests/ir/` reads it back: `parse_program(print_program(p)) == p`.

    program cfg

    function gcd(a, b) -> result
      extern tf                                  free names of the code
      made t0, result                            variables that the compiler has named
      var a: int32[]  register  -- why           once types or storage are known
    b0:
      t0 = b != 0                                a primitive, as Python
      t1 = copy a                                an explicit operation (`pcbatch.ir.program` lists them)
      branch t0 b1 b2
    b1:
      a, b = (b, a % b)
      jump b0, turn                              the back edge of a loop
    b2:
      result = a
      return

A block at which lanes wait for the others is headed `b1, sync:`, a function whose author says what a row costs
`function f(x) -> result, cost 1000.0`. The other ops are `enter tf.GradientTape() as tape` and `exit`, `x = call f(y)`,
`store a[i, j] = v`, `push x = ..`, `pop x, y`, `update x = ..`; the other terminators `fault assert "AssertionError:
bad {}" x` and `pushjump b0, back to b3`. None of them can be mistaken for Python. An op has one line.
"""

from __future__ import annotations

import json
import re

from pcbatch.errors import Span
from pcbatch.ir.payload import (
    Cast,
    Choose,
    Compute,
    Constant,
    Copy,
    Field,
    Index,
    Pack,
    Replace,
    Truth,
    Unpack,
    print_targets,
)
from pcbatch.ir.program import (
    Block,
    Branch,
    Call,
    Enter,
    Exit,
    Fault,
    Function,
    Jump,
    Op,
    Pop,
    Primitive,
    Program,
    Push,
    PushJump,
    Return,
    Store,
    Terminator,
    Update,
    Variable,
    header,
    statement,
)

INDENT = "  "
LINE_COMMENT = re.compile(r"\s+# line \d+$")


def print_program(program: Program, *, lines: bool = False) -> str:
    """The text of `program`, ending in a newline; with `lines`, each op names the user's source line it comes from."""
    return "\n".join([f"program {program.dialect}\n", *(print_function(f, lines=lines) for f in program.functions)])


def print_function(function: Function, *, lines: bool = False) -> str:
    """The text of one function of a program."""
    results = f" -> {', '.join(function.results)}" if function.results else ""
    cost = "" if function.cost is None else f", cost {function.cost!r}"
    header = f"function {function.name}({', '.join(function.parameters)}){results}{cost}"
    text = [with_line(header, function.span, lines)]
    if function.externs:
        text.append(f"{INDENT}extern {', '.join(function.externs)}")
    if function.made:
        text.append(f"{INDENT}made {', '.join(function.made)}")
    text += [INDENT + print_variable(variable) for variable in function.variables]
    text += [print_block(block, lines=lines) for block in function.blocks]
    return "\n".join(text) + "\n"


def print_variable(variable: Variable) -> str:
    """`var n: int32[] stack -- read after the call in b2`; unknown parts are left out."""
    type_ = "" if variable.type is None else f": {variable.type}"
    storage = "" if variable.storage is None else f"  {variable.storage}"
    reason = f"  -- {variable.reason}" if variable.reason else ""
    return f"var {variable.name}{type_}{storage}{reason}"


def print_block(block: Block, *, lines: bool = False) -> str:
    """The text of one block, label first."""
    body = [with_line(print_op(op), op.span, lines) for op in block.ops]
    body.append(with_line(print_terminator(block.terminator), block.terminator.span, lines))
    header = f"{block.label}{', sync' if block.sync else ''}:"
    return "\n".join([header, *(INDENT + text for text in body)])


def print_op(op: Op) -> str:
    """The text of one op, without indentation."""
    match op:
        case Primitive():
            return _assignment(op)
        case Enter():
            return f"enter {_code(header(op))}"
        case Exit():
            return "exit"
        case Store(array, indices, value):
            return f"store {array}[{', '.join(indices)}] = {value}"
        case Call(outputs, function, arguments):
            targets = f"{', '.join(outputs)} = " if outputs else ""
            return f"{targets}call {function}({', '.join(arguments)})"
        case Push():
            return f"push {_assignment(op)}"
        case Pop(variables):
            return f"pop {', '.join(variables)}"
        case Update():
            return f"update {_assignment(op)}"
    raise TypeError(f"not an op: {op!r}")


def _assignment(op: Primitive | Push | Update) -> str:
    """Python, or a form that cannot be mistaken for Python: `y = copy x`, `a, (b, c) = unpack x`."""
    names = ", ".join(op.inputs)
    match op.code:
        case Compute():
            return _code(statement(op))
        case Unpack(pattern):
            return f"{print_targets(pattern, op.outputs)} = unpack {names}"
        case Copy():
            right = f"copy {names}"
        case Cast(type_):
            right = f"cast {names}: {type_}"
        case Truth():
            right = f"truth {names}"
        case Choose():
            right = f"choose {names}"
        case Constant(text=text):
            right = f"constant: {text}"
        case Pack(kind):
            right = f"pack {names}{': list' if kind == 'list' else ''}"
        case Index(key):
            right = f"index {names}: {json.dumps(key)}"
        case Field(name):
            right = f"field {names}: {name}"
        case Replace(Index(key)):
            right = f"replace index {names}: {json.dumps(key)}"
        case Replace(Field(name)):
            right = f"replace field {names}: {name}"
        case other:
            raise TypeError(f"not a payload: {other!r}")
    return f"{', '.join(op.outputs)} = {right}"


def print_terminator(terminator: Terminator) -> str:
    """The text of one terminator, without indentation."""
    match terminator:
        case Jump(target, turn):
            return f"jump {target}{', turn' if turn else ''}"
        case Branch(condition, true, false):
            return f"branch {condition} {true} {false}"
        case Return():
            return "return"
        case Fault(message, arguments, kind):
            text = f"fault {kind} {json.dumps(message, ensure_ascii=False)}"
            return f"{text} {', '.join(arguments)}" if arguments else text
        case PushJump(target, back):
            return f"pushjump {target}, back to {back}"
    raise TypeError(f"not a terminator: {terminator!r}")


def _code(code: str) -> str:
    """`code` as it stands, or, where it could not be told from the IR's own text, as a string: `code "x = .."`.

    The latter takes a string that looks like a comment, or one that spans lines: a triple-quoted f-string, which
    Python itself writes in some versions.
    """
    if "\n" not in code and "\r" not in code and not LINE_COMMENT.search(code):
        return code
    return f"code {json.dumps(code, ensure_ascii=False)}"


def with_line(text: str, span: Span | None, lines: bool) -> str:
    """`text` with the number of the user's line behind it, if that is asked for and known."""
    return text if not lines or span is None else f"{text}  # line {span.line}"
