"""Sizes, axes and counts: of what shapes depend on, which must be one number for all lanes, and why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pcbatch.errors import Diagnostic, Note
from pcbatch.ir import program as ir
from pcbatch.lowering.inference.instances import Instance
from pcbatch.lowering.inference.static import Known, Sources, Static

LARGEST = (
    "take the largest size, a constant, and mask what is too much, or write a loop, `for i in range(n)`: arrays have "
    "the same shape in all lanes"
)
LONGEST = (
    "take the largest length, a constant, or `pcbatch.bounded(shape, dtype, capacity)`, to which a loop appends, "
    "`for i in range(n):`; `sum(.. for i in range(n))`, `any`, `all`, `min` and `max` are loops, too"
)


@dataclass(frozen=True)
class Numbers:
    """What is known of the entry's arguments on which shapes may depend.

    `defaults` are the numbers of parameters that are left to them, `shared` the parameters that all lanes share.
    `fixed`: no shape may depend on what lanes compute, not even inside a piece.
    """

    defaults: Mapping[str, Static] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    fixed: bool = False

    def may_be_shared(self, function: ir.Function, *, is_entry: bool) -> frozenset[str]:
        """The parameters that all lanes may share: such a number is one for all, if no constant."""
        written = {name for block in function.blocks for op in block.ops for name in ir.writes(op)}
        unchanged = frozenset(function.parameters) - written
        return unchanged & self.shared if is_entry else unchanged


NOTHING = Numbers()


def sized_parameters(instance: Instance) -> frozenset[str]:
    """The parameters, static ones apart, on which shapes depend."""
    sources = Sources(instance.function)
    every = {each for name in instance.sized for each in sources.of(name)}
    return frozenset(every & {*instance.function.parameters}) - instance.statics.keys()


def unfit(instance: Instance, name: str, *, of_list: bool = False) -> Diagnostic:
    """The shape of something, or the length `of_list`, depends on a number that is not the same for all lanes."""
    user, function = instance.users.get(name, name), instance.function
    subject = "a size" if name in function.made else f"`{user}`"
    varied = instance.varied.get(name)
    help_ = largest = LONGEST if of_list else LARGEST
    notes: tuple[Note, ...] = ()
    if name in function.parameters and name not in instance.varied:
        why = "it is an argument, which is not known when this is compiled"
        help_ = f"make it a static argument, static_argnames={user!r}, or {largest}"
    elif varied is not None:
        why = "it has another value on another path"
        notes = tuple(
            Note(each.span, f"{subject} is {_of_path(each.known)} here") for each in varied if each.span is not None
        )
    else:
        ops = [op for block in function.blocks for op in block.ops if name in ir.writes(op) and op.span is not None]
        why = "it is computed from values of the lanes" if len(ops) == 1 else "it is changed by what lanes do"
        notes = tuple(Note(op.span, f"{subject} comes from here") for op in ops if op.span is not None)
    return Diagnostic(
        "PCB313",
        f"{subject} is used as a size, an axis or a count, which must be one number for all lanes: {why}",
        instance.sized[name],
        f"{'the length of a list' if of_list else 'the shape of something'} depends on {subject}",
        help_,
        notes,
    )


def _of_path(known: Known | None) -> str:
    return str(known.value) if isinstance(known, Static) else f"{known}"
