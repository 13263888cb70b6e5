"""What type inference says to the user: PCB3xx diagnostics, and that something is changed around the program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from pcbatch.errors import SHARED_ARGUMENT, Diagnostic, LeaveOut, Method, Note, Span
from pcbatch.ir import program as ir
from pcbatch.ir.dtypes import casts_into
from pcbatch.ir.joins import ConflictError, Spelling, is_float, join
from pcbatch.ir.types import StructType, TensorType, Type
from pcbatch.lowering.inference.static import Binding, Known, plain


def quotient(function: ir.Function, name: str, users: Mapping[str, str]) -> str:
    """The user's `a / b` that is assigned to variable `name` of `function`; "" where none is."""
    for block in function.blocks:
        for op in block.ops:
            value = ir.assigned_value(op) if name in ir.writes(op) else None
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
                code = ir.statement(op).renamed(users) if isinstance(op, ir.Coded) else None
                return ast.unparse(code.value) if code is not None and code.value is not None else ""
    return ""


def conflict(name: str, first: Binding, second: Binding, why: str, quotient: str = "") -> Diagnostic:
    """A variable is given two types that do not meet; both assignments are shown. One is `quotient` perhaps."""
    reason, _, help_ = why.partition("; ")
    subject = "the result" if name == "result" else f"`{name}`"
    one, other = (plain(each.known) or each.known for each in (first, second))
    kinds = [each.dtype for each in (one, other) if isinstance(each, TensorType) and not each.shape]
    if quotient and len(kinds) == 2 and len(list(filter(is_float, kinds))) == 1:
        help_ = _whole(quotient)
    notes = (Note(first.span, f"{subject} is {one} here"),) if first.span is not None else ()
    return Diagnostic(
        "PCB301",
        f"{subject} is given two types that do not meet: {reason}",
        second.span,
        f"{subject} is {other} here",
        help_ or f"give {subject} one dtype, shape and structure on every path",
        notes,
    )


def condition(type_: Known | None, span: Span | None, spelling: Spelling) -> Diagnostic:
    """A branch is decided by something that is not one bool."""
    return Diagnostic(
        "PCB302",
        f"a condition must be one bool, this is {type_}",
        span,
        "decided here",
        f"reduce it first: {spelling('all')}(..), {spelling('any')}(..), or compare one element",
    )


def changes(what: str, span: Span | None) -> Diagnostic:
    """What is called at `span` changes something around it, or reads what something else changes: that is `what`."""
    return Diagnostic(
        "PCB424",
        f"what is called here {what}",
        span,
        "this is run when the program is traced, not for each example",
        "a helper changes nothing around it: hand over what changes as an argument and return the new value, "
        "`x, count = helper(x, count)`",
        trait="final",
    )


def never_returns(function: str, span: Span | None) -> Diagnostic:
    """No path through the function ends without calling itself again."""
    return Diagnostic(
        "PCB303",
        f"`{function}` never returns: every path through it comes back to itself or fails",
        span,
        "what this gives stays unknown",
        "give the recursion a base case that returns a value",
    )


def _whole(quotient: str) -> str:
    """What to write for a `quotient` that was to be an int."""
    whole = quotient.replace(" / ", " // ", 1)
    return f"`{quotient}` is a float: write `{whole}` for a whole number, or give the float a name of its own"


def unsettled(name: str, first: Binding, second: Binding, quotient: str = "") -> Diagnostic:
    """The fixed point was not reached: `name` has one type as long as it has another."""
    subject = "the result" if name == "result" else f"`{name}`"
    return Diagnostic(
        "PCB304",
        f"the type of {subject} does not settle: from {first.known} it becomes {second.known}, and the other way round",
        second.span,
        "assigned here",
        _whole(quotient)
        if quotient
        else f"give {subject} the same dtype, shape and structure in every turn of a loop and in every call",
    )


def two_classes(one: type, other: type, variable: str, function: ir.Function) -> Diagnostic:
    """That objects of two classes of one name are in a program."""
    spans = (op.span for block in function.blocks for op in block.ops if variable in ir.writes(op))
    where = f"{one.__module__}.{one.__qualname__} and {other.__module__}.{other.__qualname__}"
    return Diagnostic(
        "PCB314",
        f"two classes whose objects the program has are called `{one.__name__}`",
        next(spans, function.span),
        f"this may be either: {where}",
        "give one of them another name: a lane keeps the fields of an object, and makes it anew by its class's name",
    )


def store(
    op: ir.Store, type_of: Callable[[str], Type | None], function: ir.Function, spelling: Spelling
) -> Iterator[Diagnostic]:
    """What is wrong with the types of `a[i] = v`, a store of `function`."""
    array, value = type_of(op.array), type_of(op.value)
    indices = [type_of(index) for index in op.indices]
    if array is None or value is None or None in indices:
        return
    spans: list[int] = []  # lengths of the slices among the indices
    for name, type_ in zip(op.indices, indices, strict=True):
        if isinstance(type_, TensorType) and type_.shape and _is_slice(name, function):
            spans += type_.shape
        elif not isinstance(type_, TensorType) or type_.shape or is_float(type_.dtype) or type_.dtype == "bool":
            is_array = isinstance(type_, StructType) or (isinstance(type_, TensorType) and bool(type_.shape))
            help_ = (
                "store one by one, or write tf.tensor_scatter_nd_update(a, places, values)"
                if is_array
                else "use int(..)"
            )
            yield Diagnostic("PCB305", f"an index must be one integer, this is {type_}", op.span, help=help_)
            return
    assert isinstance(array, TensorType), "what goes into a structure is a part store"
    if len(array.shape) < len(indices):
        yield Diagnostic(
            "PCB306",
            f"cannot store into `{op.array}` with {len(indices)} index(es): it is {array}, which has "
            f"{len(array.shape)} axes",
            op.span,
            help=f"write one index or slice for each axis, `m[i, j] = v`; {SHARED_ARGUMENT}",
        )
        return
    element = TensorType(array.dtype, (*spans, *array.shape[len(indices) :]))
    try:
        stored: Type = value
        if isinstance(value, TensorType):  # a row or a slice takes what broadcasts to it, as in NumPy
            if not _broadcasts(value.shape, element.shape):
                raise ConflictError(f"{value} does not fit {element}; give it that shape, or one that broadcasts to it")
            stored = TensorType(value.dtype, element.shape, value.weak)
            if not value.weak and casts_into(value.dtype, array.dtype):
                return
        if join(element, stored) != element:
            raise ConflictError(f"{value} does not fit {element}")
    except ConflictError as why:
        reason, _, help_ = why.told(spelling).partition("; ")
        if isinstance(value, StructType):
            help_ = (
                f"what goes into an array is one: `{op.array}[..] = tf.stack(..)`, or write the parts out, `= (a, b)`"
            )
        yield Diagnostic(
            "PCB307",
            f"the stored value does not fit an element of `{op.array}`: {reason}",
            op.span,
            f"{value} into {element}",
            help_ or f"{spelling('cast')} the value to {spelling(array.dtype)}",
        )


def _is_slice(name: str, function: ir.Function) -> bool:
    """Whether `name` holds the positions of a slice that a store goes to, rather than an array of the user's."""
    ops = (op for block in function.blocks for op in block.ops)
    return any(
        isinstance(op, ir.Primitive) and op.outputs == (name,) and _is_call_of("__axis__", ir.assigned_value(op))
        for op in ops
    )


def _is_call_of(function: str, node: ast.expr | None) -> bool:
    """Whether `node` is a call of `function`, of what it gives perhaps a part."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    padded = (1,) * (len(to) - len(shape)) + shape
    return len(padded) == len(to) and all(size in (1, wanted) for size, wanted in zip(padded, to, strict=True))


def reserved(name: str, span: Span | None) -> Diagnostic:
    """A variable has the name by which generated code knows the array library's operations."""
    return Diagnostic(
        "PCB308",
        f"`{name}` is a name that generated code needs for itself",
        span,
        "used in this function",
        "give the variable another name",
    )


def not_kept(name: str, known: Known | None, span: Span | None) -> Diagnostic:
    """A static value that is no number is used where a lane must keep it."""
    subject = "the result" if name == "result" else f"`{name}`"
    return Diagnostic(
        "PCB404",
        f"{subject} is {str(known).removeprefix('static ')}, which a lane cannot keep",
        span,
        "needed here as a lane's value",
        "lanes keep numbers: give each text a number, `START, END = 0, 1`; texts and functions that never change may "
        "be arguments, and be used anywhere in between",
    )


def not_static(function: str, parameter: str, why: str, span: Span | None) -> Diagnostic:
    """A static parameter is given something that is not known at compile time."""
    return Diagnostic(
        "PCB310",
        f"the static parameter `{parameter}` of `{function}` must be known when it is compiled; what it is given {why}",
        span,
        f"`{parameter}` is given here",
        f"hand on literals, static parameters, captured values and what is computed from these alone, or take "
        f"`{parameter}` out of `static_argnames`",
    )


def static_assigned(name: str, span: Span | None) -> Diagnostic:
    """A static parameter gets another value on some path."""
    return Diagnostic(
        "PCB311",
        f"the static parameter `{name}` is assigned",
        span,
        "it has one value in the whole function",
        f"give the new value a name of its own: `other = {name}`",
    )


def too_many(function: str, parameters: tuple[str, ...], limit: int, span: Span | None) -> Diagnostic:
    """A recursion in which a static argument changes would be compiled for each of its values."""
    names = ", ".join(f"`{name}`" for name in parameters)
    return Diagnostic(
        "PCB312",
        f"`{function}` would be compiled for more than {limit} values of {names}",
        span,
        "each call here wants another one",
        f"make {names} an ordinary argument: take it out of `static_argnames`",
    )


def other_method(method: Method, name: str, type_: Known | None, span: Span | None) -> Diagnostic:
    """A call of a method that is a function of the program has an object whose method that is not."""
    kind = type_.kind if isinstance(type_, StructType) else str(type_)
    if method.behind is not None:
        return Diagnostic(
            "PCB425",
            f"`super().{method.name}` is `{method.owner.__name__}.{method.name}` here, and of a `{kind}` another one",
            span,
            "a class with several bases has another order of them",
            f"call the method by its class, `{method.owner.__name__}.{method.name}(self, ..)`",
        )
    return Diagnostic(
        "PCB425",
        f"`.{method.name}` is `{method.owner.__name__}.{method.name}` here, and of a `{kind}` it is another one",
        span,
        "this method is part of the program, since it branches or loops on values of a lane",
        f"call it at two places, each for the objects of one class, and a loop over both once for each; or write "
        f"one function for both, `{method.name}(p)`",
        wants=None if span is None else LeaveOut(span, method),
    )
