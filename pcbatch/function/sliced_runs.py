"""Long runs: in slices, with a bar, stopped by Ctrl-C, saved, and resumed in another process.

A file holds the machine's state, the arguments and results of every example, and the arguments that all share; captured
arrays are the function's, and read from it anew. What a file says of its program is only ever compared: nothing in it
is imported or executed.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

from pcbatch import version
from pcbatch.errors import UsageError
from pcbatch.function.arguments import Arguments
from pcbatch.function.executing import in_order
from pcbatch.ir.types import StructType, TensorType, Type, leaves, records
from pcbatch.ir.values import is_record_class
from pcbatch.options import Options
from pcbatch.runtime.machine import generated
from pcbatch.runtime.machine.forked import padded
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.segments import Snapshot
from pcbatch.runtime.resume import checkpoint
from pcbatch.runtime.resume.checkpoint import Checkpoint, Saved, run_slices
from pcbatch.runtime.resume.savefile import interpreting
from pcbatch.runtime.schedules import schedule_named

FREE = ("in_axes", "static_argnames", "name", "backend", "form", "progress", "resume", "max_lanes", "output")
"""The options under which a saved run need not go on. What `in_axes` and `max_lanes` said is in the file, and it is in
lockstep."""

LATER: Mapping[str, Any] = {"strategy": "pc"}
"""The options of runs whose files do not mention them: options newer than the format."""

DTYPES = frozenset(
    ["bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
LARGEST_ARRAY = 2**40
"""Numbers in one argument of one lane; a file that says more says anything."""


@dataclass(frozen=True)
class LongRun:
    """A program about to run in slices.

    `given` maps the program's parameters and shared parameters to those of the user's function, `operands` the leaves
    of captured arrays, `digest` is the program's (see `identity`), `blocks` its number of blocks: forks may have more
    than the machine. `guard` is entered for each leg (see `run_slices`).
    """

    machine: Machine
    given: Mapping[str, str]
    options: Options
    digest: str
    blocks: int
    operands: Mapping[str, Sequence[Any]]
    guard: Callable[[Snapshot], AbstractContextManager[Any]] = lambda snapshot: contextlib.nullcontext()

    def start(self, arguments: Arguments, flat: Arguments, parameters: Sequence[Any]) -> Outcome:
        """A new run on `parameters`, the `[lanes, ...]` leaves of the program's, which are those of `flat`."""
        self._refuse_in_graph(flat.lanes)
        shared = {
            name: self._arrays(name, flat.leaves[self.given[name]])
            for name in self._program.shared
            if self._is_given(name)
        }
        return self._run(self.machine.begin(parameters, flat.lanes), shared, arguments)

    def resume(self, saved: Saved, arguments: Arguments) -> Outcome:
        """Go on from where `saved` stands; `arguments` are those of `saved_arguments`. PCB592, PCB594 if it cannot."""
        self._refuse_in_graph(0)
        if saved.header["program"] != self.digest:
            raise saved.refusal(
                "PCB592", f"{self._program.name} is another program now, in its code or in what it reads from around it"
            )
        shared = {}
        for name in filter(self._is_given, self._program.shared):
            types = [(leaf.dtype, leaf.shape) for leaf in leaves(self._program.shared_types[name])]
            shared[name] = self._arrays(name, saved.shared(name, types))
        return self._run(saved.snapshot(self.machine.legs), shared, arguments, saved)

    def _run(
        self, snapshot: Snapshot, shared: dict[str, list[Any]], arguments: Arguments, saved: Saved | None = None
    ) -> Outcome:
        program = self._program
        # Read once: a variable that changed in mid-run, or a large array copied for each slice, would both be wrong.
        captured = {n: self._arrays(n, self.operands[n]) for n in program.shared if not self._is_given(n)}
        if saved is not None:
            saved.check_captured(captured)
        every = {**shared, **captured}
        operands = in_order({name: every[name] for name in program.shared})
        shown = checkpoint.bar(program, int(snapshot.examples)) if self.options.progress else contextlib.nullcontext()
        with shown as watch:
            standing = run_slices(self.machine, snapshot, operands, watch, self.guard)
        origin = {"program": self.digest, "options": compared(self.options), **_described(arguments)}
        left = Checkpoint(standing.snapshot, shared, captured, origin, version.__version__, standing.interrupted)
        outcome = standing.outcome
        return replace(outcome, checkpoint=left, counting=lambda: padded(outcome.counts, self.blocks))

    @property
    def _program(self) -> Any:
        return self.machine.program

    def _is_given(self, name: str) -> bool:
        """Return whether a shared operand is an argument rather than a captured array."""
        return name in self.given

    def _arrays(self, name: str, given: Sequence[Any]) -> list[Any]:
        """The leaves of a shared operand as arrays of its dtypes."""
        pairs = zip(leaves(self._program.shared_types[name]), given, strict=True)
        return [self.machine.backend.array(leaf, type_.dtype) for type_, leaf in pairs]

    def _refuse_in_graph(self, lanes: Any) -> None:
        backend = self.machine.backend
        if not isinstance(lanes, int) or not backend.is_concrete(backend.constant(0)):
            raise UsageError(
                "PCB565",
                f"{self._program.name} with progress or resume runs in slices, from Python, and so not inside a "
                f"{backend.spelling('function')}; call it outside, or leave these options away",
            )


def compared(options: Options) -> dict[str, Any]:
    """The options under which a run must go on, for JSON."""
    found = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in FREE}
    return {**found, "schedule": schedule_named(options.schedule).name}


def read(options: Options) -> Saved:
    """The run that `options` say to resume: OSError, PCB590, PCB591, or PCB593 if the options are not its own."""
    saved = checkpoint.read(options.resume or "", version.__version__)
    saved.check_options(compared(options), LATER)
    return saved


def _described(arguments: Arguments) -> dict[str, Any]:
    """The arguments' types, for JSON."""
    classes = (record for type_ in arguments.types.values() for record in records(type_))
    return {
        "types": {name: str(type_) for name, type_ in arguments.types.items()},
        "shared": sorted(arguments.shared),
        "defaults": dict(arguments.defaults),
        "records": list(dict.fromkeys(f"{record.__module__}:{record.__qualname__}" for record in classes)),
    }


def saved_arguments(
    saved: Saved, signature: inspect.Signature, options: Options, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arguments:
    """The arguments that a saved run began with, types only; their values are in the file.

    `args` and `kwargs` give static parameters their values again, and nothing else: PCB567. PCB592 where the parameters
    are others now.
    """
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError as error:
        raise UsageError("PCB567", f"a resumed run takes no arguments but static ones: {error}") from None
    surplus = [name for name in bound.arguments if name not in options.static_argnames]
    if surplus:
        raise UsageError(
            "PCB567", f"a resumed run takes no arguments but static ones, and {surplus[0]!r} is none: it is in the file"
        )
    statics = {}
    for name in (name for name in signature.parameters if name in options.static_argnames):
        default = signature.parameters[name].default
        if name not in bound.arguments and default is inspect.Parameter.empty:
            raise UsageError("PCB567", f"a resumed run must be given the static argument {name!r} anew")
        statics[name] = bound.arguments.get(name, default)
    types = _types(saved)
    if [name for name in signature.parameters if name not in statics] != list(types):
        raise saved.refusal("PCB592", f"its parameters are {', '.join(types) or 'none'}, those of this are {signature}")
    shared = frozenset(saved.header["shared"])
    if not shared <= types.keys():
        raise saved.refusal("PCB592", f"{sorted(shared - set(types))} are shared arguments, and no parameters")
    defaults = saved.header["defaults"]
    if not defaults.keys() <= types.keys():
        raise saved.refusal(
            "PCB592", f"{sorted(defaults.keys() - types.keys())} are left to defaults, and no parameters"
        )
    return Arguments({}, types, shared, None, statics, defaults=defaults)


def _types(saved: Saved) -> dict[str, Type]:
    classes = []
    for place in saved.header["records"]:
        module, _, path = place.partition(":")
        found: Any = sys.modules.get(module)
        for name in path.split("."):
            found = vars(found).get(name) if isinstance(found, type | ModuleType) else None
        if not is_record_class(found):
            raise saved.refusal(
                "PCB592", f"its arguments have the class {path} of the module {module}; import it first"
            )
        classes.append(found)
    with interpreting(saved.path):
        types = generated.types(*classes, **saved.header["types"])
        for type_ in types.values():
            _check_type(type_)
    return types


def _check_type(type_: Type) -> None:
    """ValueError where no argument can have this type."""
    match type_:
        case TensorType(dtype=dtype, shape=shape):
            if dtype not in DTYPES or math.prod(shape) > LARGEST_ARRAY:
                raise ValueError(f"there are no arrays of {type_!s:.60}")
        case StructType(kind=kind, items=items, constructor=constructor):
            if constructor is None and kind not in ("tuple", "list", "dict", "None"):
                raise ValueError(f"there is no class {kind!r:.60}")
            for item in items:
                _check_type(item)
