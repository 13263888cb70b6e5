"""The options of a batched function, checked when they are given.

`in_axes` says of structured arguments which leaves have a lane axis, by a tree that is a prefix of the argument.
As in JAX: 0 or None stands for everything below it; a tuple, list, dict, named tuple or dataclass goes on inside.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.ir.types import StructType, Type
from pcbatch.runtime.machine.state import LARGEST
from pcbatch.runtime.schedules import schedule_named

# -- axes --------------------------------------------------------------------------------------------------------------


def check_axes(axes: Any, path: str) -> None:
    """UsageError PCB502 for a tree in which something is neither 0 nor None."""
    parts = _parts(axes)
    if parts is not None:
        for key, part in parts.items():
            check_axes(part, path + _step(key, record=_is_record(axes)))
    elif axes is not None and (isinstance(axes, bool) or axes != 0):
        raise UsageError("PCB502", f"in_axes of {path!r} must be 0 or None, not {axes!r}")


def leaf_axes(axes: Any, type_: Type, path: str) -> Iterator[tuple[str, int | None]]:
    """`(path, 0 or None)` for each leaf of an argument of `type_`, left to right.

    UsageError PCB516 where `axes` goes on inside something that has no such parts.
    """
    parts = _parts(axes)
    if not isinstance(type_, StructType):
        if parts is not None:
            raise UsageError("PCB516", f"in_axes of {path!r} is {axes!r}, but the argument is one array there")
        yield path, axes
        return
    record = bool(type_.keys) and type_.kind != "dict"
    keys: tuple[Any, ...] = type_.keys or tuple(range(len(type_.items)))
    if parts is not None and (set(parts) != set(keys) or _is_foreign(axes, type_)):
        raise UsageError("PCB516", f"in_axes of {path!r} is {axes!r}, which does not fit the argument: {type_}")
    for key, item in zip(keys, type_.items, strict=True):
        yield from leaf_axes(axes if parts is None else parts[key], item, path + _step(key, record))


def _parts(axes: Any) -> dict[Any, Any] | None:
    """The parts of a tree by key, field or position; None for a leaf of it."""
    match axes:
        case Mapping():
            return dict(axes)
        case list():
            return dict(enumerate(axes))
        case tuple() if not hasattr(axes, "_fields"):
            return dict(enumerate(axes))
    return values.fields_of(axes)


def _is_record(axes: Any) -> bool:
    return values.fields_of(axes) is not None


def _is_foreign(axes: Any, type_: StructType) -> bool:
    """Return whether `axes` is of another class than the argument; a dict by field serves for every record."""
    return _is_record(axes) and type(axes).__name__ != type_.kind


def _step(key: Any, record: bool) -> str:
    return f".{key}" if record else f"[{key!r}]"


# -- options -----------------------------------------------------------------------------------------------------------


Strategy = Literal["pc", "local", "hybrid", "depth", "agenda"]
ScheduleName = Literal["auto", "earliest", "busiest", "sweep", "adaptive", "switch"]
Form = Literal["auto", "native", "lockstep"]
TapeName = Literal["keep", "replay"]
BackendName = Literal["tensorflow", "reference"]
Output = Literal["tensors", "numpy"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
ON_THE_FLY = ("depth", "agenda")
"""The strategies that build a graph of what is to run."""
BACKENDS: tuple[str, ...] = get_args(BackendName)
FORMS: tuple[str, ...] = get_args(Form)
TAPES: tuple[str, ...] = get_args(TapeName)
OUTPUTS: tuple[str, ...] = get_args(Output)


class OptionValues(TypedDict, total=False):
    """The options as type checkers know them, for `autobatch` and `Batched.options`; the fields of `Options`.

    `in_axes` is a tree of 0 and None, a prefix of the arguments (see `leaf_axes`).
    """

    in_axes: Any
    static_argnames: str | tuple[str, ...]
    strategy: Strategy
    schedule: ScheduleName
    form: Form
    backend: BackendName
    jit: bool | Literal["auto"]
    max_depth: int | None
    max_steps: int | None
    max_lanes: int | None
    fork: bool | Literal["auto"]
    deterministic: bool
    tape: TapeName
    max_tape: int | None
    trace: int
    name: str | None
    progress: bool
    notice: bool | Literal["auto"]
    resume: str | os.PathLike[str] | None
    output: Output


@dataclass(frozen=True)
class Options:
    """The options for compiling and running a batched function; see `pcbatch.autobatch` for their meaning."""

    in_axes: Any = 0
    static_argnames: tuple[str, ...] = ()
    strategy: str = "pc"
    schedule: str = "auto"
    form: str = "auto"
    backend: str = "tensorflow"
    jit: bool | Literal["auto"] = True
    max_depth: int | None = None
    max_steps: int | None = None
    max_lanes: int | None = None
    fork: bool | Literal["auto"] = False
    deterministic: bool = False
    tape: str = "keep"
    max_tape: int | None = None
    trace: int = 0
    name: str | None = None
    progress: bool = False
    notice: bool | Literal["auto"] = "auto"
    resume: str | None = None
    output: str = "tensors"

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, STRATEGIES)
        _one_of("backend", self.backend, BACKENDS)
        _one_of("form", self.form, FORMS)
        _one_of("tape", self.tape, TAPES)
        _one_of("output", self.output, OUTPUTS)
        schedule_named(self.schedule)
        self._check_strategy()
        object.__setattr__(self, "static_argnames", _names(self.static_argnames))
        if not isinstance(self.jit, bool) and self.jit != "auto":
            raise UsageError("PCB504", f"jit must be True, False or 'auto', not {self.jit!r}")
        if not isinstance(self.fork, bool) and self.fork != "auto":
            raise UsageError("PCB504", f"fork must be True, False or 'auto', not {self.fork!r}")
        if not isinstance(self.notice, bool) and self.notice != "auto":
            raise UsageError("PCB504", f"notice must be True, False or 'auto', not {self.notice!r}")
        for name in ("deterministic", "progress"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError("PCB504", f"{name} must be True or False, not {getattr(self, name)!r}")
        object.__setattr__(self, "resume", _path(self.resume))
        if self.in_slices and self.backend == "reference":
            raise UsageError(
                "PCB565", "backend='reference' runs lane by lane and not in slices; leave progress and resume away"
            )
        if self.name is not None and not isinstance(self.name, str):
            raise UsageError("PCB504", f"name must be None or a string, not {self.name!r}")
        for name in ("max_depth", "max_steps"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
                raise UsageError("PCB504", f"{name} must be None or an int of at least 0, not {limit!r}")
            if limit is not None and limit > LARGEST:
                raise UsageError("PCB504", f"{name} must be at most {LARGEST} (int32), not {limit!r}")
        for name in ("max_lanes", "max_tape"):
            most = getattr(self, name)
            if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= LARGEST):
                raise UsageError("PCB504", f"{name} must be None or an int from 1 to {LARGEST}, not {most!r}")
        self._check_trace()

    @property
    def in_slices(self) -> bool:
        """True if a run returns to Python now and then, so that it can show its progress and be interrupted."""
        return self.progress or self.resume is not None

    @property
    def of_programs(self) -> Options:
        """These options, with defaults for those that matter to a call alone and not to its compilation."""
        return replace(self, progress=False, notice="auto", resume=None, output="tensors")

    @property
    def may_fork(self) -> bool:
        """True if independent calls may be run by lanes of their own, if the program has some."""
        return self.fork_obstacle is None

    @property
    def may_defer(self) -> bool:
        """True if work of loops' turns may be deferred, to be done for all turns at once."""
        at_once = self.strategy == "pc" and self.schedule != "switch"
        return at_once and self.backend != "reference" and self.form != "native"

    @property
    def fork_obstacle(self) -> str | None:
        """The reason why independent calls are not run by lanes of their own; None if they may be."""
        obstacles = {
            "fork=False; `fork=True` makes them at the same time": self.fork is False,
            f"strategy={self.strategy!r}": self.strategy != "pc",
            f"backend={self.backend!r}": self.backend == "reference",
            f"form={self.form!r}": self.form == "native",
            f"schedule={self.schedule!r}": self.schedule == "switch",
            "trips are to be recorded": bool(self.trace),
            f"max_lanes={self.max_lanes}": self.max_lanes is not None,
        }
        return next((why for why, holds in obstacles.items() if holds), None)

    @property
    def is_unmerged(self) -> bool:
        """True if the program runs block by block as the source has them: launches are to be counted by hand."""
        return self.strategy != "pc" or self.schedule == "switch"

    def _check_strategy(self) -> None:
        """Refuse options that the host's frames cannot serve: PCB535."""
        if self.strategy == "pc":
            return
        kept = "graphs" if self.strategy in ON_THE_FLY else "frames"
        others = {
            "progress": (self.progress, False),
            "resume": (self.resume, None),
            "trace": (self.trace, 0),
            "schedule": (self.schedule, "auto"),
            "form": (self.form, "auto"),
            "backend": (self.backend, "tensorflow"),
            "jit": (self.jit, True),
            "max_lanes": (self.max_lanes, None),
            "fork": (self.fork, False),
        }
        for name, (given, default) in others.items():
            if given is not default and given != default:
                raise UsageError(
                    "PCB535",
                    f"strategy={self.strategy!r} keeps its {kept} on the host, which decides what runs next, "
                    f"so {name}={given!r} has no meaning there; leave it away, or strategy='pc' has it",
                )

    def _check_trace(self) -> None:
        trips = self.trace
        if isinstance(trips, bool) or not isinstance(trips, int) or not 0 <= trips <= LARGEST:
            raise UsageError(
                "PCB504", f"trace must be how many trips are recorded, an int of at least 0, not {trips!r}"
            )
        if trips and self.backend == "reference":
            raise UsageError(
                "PCB560", "backend='reference' runs lane by lane: there is no schedule for trace to record"
            )

    def changed(self, changes: Mapping[str, Any]) -> Options:
        """The same options with `changes`; UsageError PCB501 for a name that is no option, PCB503 for one that was."""
        known = [field.name for field in fields(self)]
        changes = _without_old(changes)
        for name in changes:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                raise UsageError("PCB501", f"there is no option {name!r}{meant}; the options are {', '.join(known)}")
        return replace(self, **changes)

    def check_names(self, parameters: tuple[str, ...]) -> None:
        """Refuse options that do not fit a function with these parameters: UsageError PCB502, PCB508."""
        for name in self.static_argnames:
            if name not in parameters:
                raise UsageError("PCB508", f"static_argnames has {name!r}, which is no parameter")
        self.axes(parameters)

    def axes(self, parameters: tuple[str, ...]) -> dict[str, Any]:
        """The lane axis of each parameter: 0, None where all lanes share the argument, or a tree of these."""
        given = self.in_axes
        if isinstance(given, Mapping):
            unknown = [name for name in given if name not in parameters]
            if unknown:
                raise UsageError("PCB502", f"in_axes names {unknown[0]!r}, which is no parameter")
            axes = {name: given.get(name, 0) for name in parameters}
        elif isinstance(given, tuple):
            if len(given) != len(parameters):
                raise UsageError("PCB502", f"in_axes has {len(given)} entries for {len(parameters)} parameters")
            axes = dict(zip(parameters, given, strict=True))
        else:
            axes = dict.fromkeys(parameters, given)
        for name, axis in axes.items():
            check_axes(axis, name)
        return axes


def _names(given: Any) -> tuple[str, ...]:
    """Return one name, or several, as a tuple."""
    names = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise UsageError("PCB508", f"static_argnames are names of parameters, not {given!r}")
    return names


def _path(given: Any) -> str | None:
    path = os.fspath(given) if isinstance(given, os.PathLike) else given
    if path is not None and (not isinstance(path, str) or not path or "\0" in path):
        raise UsageError("PCB504", f"resume must be None or a path, not {given!r}")
    return path


def _one_of(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError("PCB501", f"{what} must be {' or '.join(map(repr, known))}, not {given!r}")


def _without_old(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """`changes` without the option `vectorize`, of which only the default, True, ever did anything: that warns."""
    if "vectorize" not in changes:
        return changes
    if changes["vectorize"] is not True:
        raise UsageError("PCB503", "the option vectorize is gone; write the body for one example, pcbatch batches it")
    warnings.warn("the option vectorize is gone; leave vectorize=True away", DeprecationWarning, stacklevel=5)
    return {name: value for name, value in changes.items() if name != "vectorize"}
