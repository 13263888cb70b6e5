"""What is said of a store or a change that Python would show under another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.frontend.translate.changed_objects import changed_name
from pcbatch.frontend.translate.constructors import DEFAULT
from pcbatch.frontend.translate.sequences import ELEMENT
from pcbatch.ir.program import Call, Function, Op, Primitive, reads, statement, writes


@dataclass(frozen=True)
class Violation:
    """A store or a change of what `text` says, an object or an array, which has other names.

    `texts` say which parts of the `others` it is; a `method` of the user's changes it.
    """

    op: Op
    text: str
    others: tuple[str, ...]
    is_object: bool
    texts: Mapping[str, str]
    method: str = ""


def refused(violation: Violation, function: Function, user_names: Set[str]) -> Diagnostic:
    """Why a store or a change is refused in a function whose variables the user knows by these names."""
    op, text, others = violation.op, violation.text, violation.others
    is_store = not violation.is_object
    what, kind = (f"an element of `{text}` is assigned", "array") if is_store else (f"`{text}` is changed", "object")
    written = (name for block in function.blocks for each in block.ops for name in writes(each))
    variables = {*function.parameters, *written}
    elsewhere = [name for name in others if name not in variables]
    if elsewhere:
        copied = f"tf.identity({elsewhere[0]})" if is_store else f"copy.copy({elsewhere[0]})"
        advice = f"copy it first, `own = {copied}`, and return the result"
        if elsewhere[0].startswith(DEFAULT):
            advice = "make it anew in each call: `log=None` as the default, and `[] if log is None else log`"
        return Diagnostic(
            "PCB204",
            f"{what}, which may be the same {kind} as `{elsewhere[0]}`",
            op.span,
            "this belongs to another scope",
            advice,
        )
    changing = {text.partition(".")[0].partition("[")[0], *others}
    earlier = _earlier(function, op, changing)
    parts = [violation.texts.get(other, other) for other in others if other in user_names]
    listed = ", ".join(f"`{part}`" for part in parts)
    is_part = is_store and any(part not in others for part in parts)
    by = f", by `{violation.method}`" if violation.method else ""
    if not listed and not _is_gone_over(function, {*others}):
        return Diagnostic(
            "PCB205",
            f"`{text}` is changed here{by}, and what was taken from it before may be read later",
            op.span,
            "Python would show the change there too",
            f"copy it where it is taken, `copy.copy({text})`, or change it in a statement before or after this",
            tuple(Note(span, "taken here") for span in earlier[-1:]),
        )
    if not listed:
        copied = f"for x in {'tf.identity' if is_store else 'copy.copy'}({text}):"
        return Diagnostic(
            "PCB205",
            f"`{text}` is changed here, while a loop goes over it",
            op.span,
            "Python would show the change to the loop too",
            f"loop over a copy, `{copied}`, or over the positions, `range(len(..))`",
            tuple(Note(span, "the loop") for span in earlier[-1:]),
        )
    if not is_store and _is_element(function, changing):
        help_ = (
            "make new ones, `ps = [dataclasses.replace(p, x=..) for p in ps]`, or write the steps out: "
            "`ps[0].x = ..`, `ps[1].x = ..`"
        )
    elif not is_store and len(changing) == 1:
        help_ = (
            "one object stands at two places of it: make each of them anew, `[Body(0.0) for _ in range(n)]`, "
            "`[[0.0] * 3 for _ in range(n)]`, or copy it, `copy.copy(p)`"
        )
    elif is_part:
        kind = "array or list"
        help_ = (
            "copy it where it gets its second name, `b = tf.identity(a)` of an array, `ys = [*xs]` of a list, "
            "or use one name only"
        )
    elif is_store:
        help_ = "copy the array where it gets its second name, `b = tf.identity(a)`, or use one name only"
    else:
        help_ = _COPY
    return Diagnostic(
        "PCB205",
        f"`{text}` is changed here{by}, and the same {kind} may be read later as {listed}",
        op.span,
        f"Python would show the change in {listed} too",
        help_,
        tuple(Note(span, "a second name may come from here") for span in earlier[-1:]),
    )


def changed_by_method(
    call: Call, method: str, changed: str, others: Sequence[str], changed_at: Span | None
) -> Diagnostic:
    """Why the call of a method that is part of the program is refused, which changes what has `others` for names."""
    what = changed if changed == AN_OBJECT else f"`{changed}`"
    listed = ", ".join(f"`{each}`" for each in others) or what
    return Diagnostic(
        "PCB205",
        f"{what} is changed here, by `{method}`, and the same object may be read later as {listed}",
        call.span,
        f"Python would show the change in {listed} too",
        _COPY,
        (Note(changed_at, "changed here"),) if changed_at is not None else (),
    )


AN_OBJECT = "an object"
"""What is changed, if it has no name."""
_COPY = (
    "use one name only; or copy the object where it gets its second name, `q = copy.copy(p)`, `ys = [*xs]`, `e = {**d}`"
)


def _is_element(function: Function, names: set[str]) -> bool:
    """Whether one of `names` is what a loop takes from another."""
    ops = (each for block in function.blocks for each in block.ops if isinstance(each, Primitive))
    taking = (each for each in ops if names & set(writes(each)) and names & set(reads(each)))
    return any(ELEMENT in statement(each).text for each in taking)


def _is_gone_over(function: Function, names: set[str]) -> bool:
    """Whether a loop goes over one of `names`."""
    ops = (each for block in function.blocks for each in block.ops if isinstance(each, Primitive))
    return any(ELEMENT in statement(each).text and names & set(reads(each)) for each in ops)


def _earlier(function: Function, op: Op, names: set[str]) -> list[Span]:
    """Places before `op` from which the second name may come: what reads one of `names` and assigns another."""
    ops = [each for block in function.blocks for each in block.ops]
    assigning = [each for each in ops if names & set(writes(each)) and changed_name(each) is None]
    linking = [each for each in ops if len(names & {*reads(each), *writes(each)}) > 1 and names & set(writes(each))]
    for found in (linking, assigning):
        spans = [each.span for each in found if each.span is not None and op.span is not None]
        if earlier := [span for span in spans if op.span is not None and span < op.span]:
            return earlier
    return []
