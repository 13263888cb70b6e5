"""What type inference says to the user: PCB3xx diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pcbatch.diagnostics import Diagnostic, Note, Span
from pcbatch.ir import program as ir
from pcbatch.ir.joins import ConflictError, is_float, join
from pcbatch.ir.types import StructType, TensorType, Type
from pcbatch.lowering.instances import Binding


def conflict(name: str, first: Binding, second: Binding, why: str) -> Diagnostic:
    """A variable is given two types that do not meet; both assignments are shown."""
    reason, _, help_ = why.partition("; ")
    subject = "the result" if name == "result" else f"`{name}`"
    notes = (Note(first.span, f"{subject} is {first.type} here"),) if first.span is not None else ()
    return Diagnostic(
        "PCB301",
        f"{subject} is given two types that do not meet: {reason}",
        second.span,
        f"{subject} is {second.type} here",
        help_ or f"give {subject} one dtype, shape and structure on every path",
        notes,
    )


def condition(type_: Type | None, span: Span | None) -> Diagnostic:
    """A branch is decided by something that is not one bool."""
    return Diagnostic(
        "PCB302",
        f"a condition must be one bool, this is {type_}",
        span,
        "decided here",
        "reduce it first: tf.reduce_all(..), tf.reduce_any(..), or compare one element",
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


def unsettled(name: str, first: Binding, second: Binding) -> Diagnostic:
    """The fixed point was not reached: `name` has one type as long as it has another."""
    subject = "the result" if name == "result" else f"`{name}`"
    return Diagnostic(
        "PCB304",
        f"the type of {subject} does not settle: from {first.type} it becomes {second.type}, and the other way round",
        second.span,
        "assigned here",
        f"give {subject} the same dtype, shape and structure in every turn of a loop and in every call",
    )


def store(op: ir.Store, type_of: Callable[[str], Type | None]) -> Iterator[Diagnostic]:
    """What is wrong with the types of `a[i] = v`."""
    array, value = type_of(op.array), type_of(op.value)
    indices = [type_of(index) for index in op.indices]
    if array is None or value is None or None in indices:
        return
    for type_ in indices:
        if not isinstance(type_, TensorType) or type_.shape or is_float(type_.dtype) or type_.dtype == "bool":
            yield Diagnostic("PCB305", f"an index must be one integer, this is {type_}", op.span, help="use int(..)")
            return
    if isinstance(array, StructType) or len(array.shape) < len(indices):
        what = "a structure" if isinstance(array, StructType) else f"{array}, which has {len(array.shape)} axes"
        yield Diagnostic(
            "PCB306",
            f"cannot store into `{op.array}` with {len(indices)} index(es): it is {what}",
            op.span,
            help="only elements of tensors can be stored; build a new tuple instead of changing one",
        )
        return
    element = TensorType(array.dtype, array.shape[len(indices) :])
    try:
        if join(element, value) != element:
            raise ConflictError(f"{value} does not fit {element}")
    except ConflictError as why:
        reason, _, help_ = str(why).partition("; ")
        yield Diagnostic(
            "PCB307",
            f"the stored value does not fit an element of `{op.array}`: {reason}",
            op.span,
            f"{value} into {element}",
            help_ or f"tf.cast the value to tf.{array.dtype}",
        )


def reserved(name: str, span: Span | None) -> Diagnostic:
    """A variable has the name by which generated code knows the array library's operations."""
    return Diagnostic(
        "PCB308",
        f"`{name}` is a name that generated code needs for itself",
        span,
        "used in this function",
        "give the variable another name",
    )
