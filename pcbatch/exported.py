"""`pcbatch.exported`: programs that were exported, run by JAX alone.

`f.export(path, ..)` writes a file; `load(path)` reads it, where there need be no TensorFlow and no source of `f`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir import values
from pcbatch.ir.machine import LaneStatus
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.export import file, stablehlo
from pcbatch.runtime.export.stablehlo import varies
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import faults
from pcbatch.runtime.report.results import NUMPYS, StayedBehind, packed
from pcbatch.runtime.report.run import Run

__all__ = ["Exported", "load"]


def load(path: str | os.PathLike[str]) -> Exported:
    """Read an exported program.

    Arguments:
        path: the path of a file that `f.export` or `pcbatch export` wrote.

    Returns:
        An `Exported`, which is called as the function was. JAX is imported at the first call.

    Raises:
        OSError: the file cannot be read.
        UsageError: PCB590, it is damaged or no exported program; PCB591, of a format that this version does not read.
    """
    return Exported(file.read(path))


class Exported:
    """An exported program: call it, or `run` it, as one calls a batched function.

    `__signature__` has the function's parameters but for static ones, whose values `statics` tells as text; `platforms`
    the devices that it was exported for. Each number of lanes is compiled when it first occurs, by JAX.
    """

    def __init__(self, contents: file.Contents):
        self._contents = contents
        program = contents.program
        self.__name__ = program.name
        self.statics: Mapping[str, str] = contents.statics
        self.platforms: tuple[str, ...] = tuple(contents.texts)
        self.version = contents.version
        """The version of pcbatch that wrote the file."""
        self.__signature__ = inspect.Signature([_parameter(contents, name) for name in contents.parameters])
        results = [leaf for name in program.results for leaf in leaves(program.types[name])]
        shown = [leaf for name in self._shown for leaf in leaves(program.types[name])]
        gives: list[tuple[str, tuple[int | None, ...]]] = [(leaf.returned, (None, *leaf.shape)) for leaf in results]
        gives += [("int32", (None,))] * 4 + [(leaf.dtype, (None, *leaf.shape)) for leaf in shown]
        self._module = stablehlo.Module(program.name, contents.texts, contents.captured, gives)
        self._results = len(results)
        self._grows = any(varies(text)[1] for text in contents.texts.values())
        self._depth = 0
        """The number of the stacks' size that was enough for the runs before."""

    # -- running -------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a batch: arguments with a leading lane axis in, JAX's arrays out, in the structure of the results.

        Arguments are arrays of JAX, NumPy and other libraries, numbers, lists of them, and structures of these.

        Raises:
            LaneError: a lane failed; it carries the whole `Run`.
            UsageError: PCB51x, the arguments do not fit; PCB581, it cannot run here: JAX is missing, or has another
                device than it was exported for, or transforms the code around the call, where `call` is for.
        """
        return self._ran(args, kwargs).check()

    def run(self, *args: Any, **kwargs: Any) -> Run:
        """Run a batch and report: a `Run` with value, status and errors by lane. Never raises for a lane."""
        return self._ran(args, kwargs)

    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The values and the statuses, int32 `[lanes]`, as arrays of JAX, for use inside of `jax.jit` and the like.

        The number of lanes must be known there. Stacks have the size of the largest depth that the function allows (its
        option `max_depth`) at once, for they cannot grow there. Raises as a call does, but not for lanes.
        """
        if self._module.is_wide and not stablehlo.is_wide_now():
            raise UsageError(
                "PCB581",
                f"{self.__name__} gives numbers of 64 bits, which JAX has not here; say "
                "jax.config.update('jax_enable_x64', True) first",
            )
        least, most = self._contents.lanes
        with stablehlo.wide():
            lanes, arrays = self._arrays(args, kwargs)
            if lanes > most:
                raise UsageError(
                    "PCB581", f"{self.__name__} was exported for at most {most} lanes at a time, and these are {lanes}"
                )
            found = self._whole(arrays, lanes, max(lanes, least), self._contents.depths[-1])
        return packed(self._contents.program, found[: self._results]), found[self._results]

    def _ran(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Run:
        with stablehlo.wide():
            lanes, arrays = self._arrays(args, kwargs)
            if any(map(stablehlo.is_traced, arrays)):
                raise UsageError(
                    "PCB581",
                    f"inside of a transformation of JAX {self.__name__} knows no statuses that it could raise for; "
                    f"{self.__name__}.call(..) gives them beside the values",
                )
            outcome = self._outcome(self._by_lanes(arrays, lanes))
        faults.show(self._contents.program, outcome)
        return Run.of(self._contents.program, outcome)

    def _by_lanes(self, arrays: Sequence[Any], lanes: int) -> list[Any]:
        """The arrays that a run of so many lanes gives, in parts where they are more than a text serves."""
        least, most = self._contents.lanes
        if lanes <= most:
            return self._grown(arrays, lanes, max(lanes, least))
        parts = []
        for start in range(0, lanes, most):
            count = min(most, lanes - start)
            part = [
                array[start : start + count] if each.lanes else array
                for array, each in zip(arrays, self._contents.inputs, strict=True)
            ]
            parts.append(self._grown(part, count, most))
        return [stablehlo.jax().numpy.concatenate(each) for each in zip(*parts, strict=True)]

    def _grown(self, arrays: Sequence[Any], lanes: int, room: int) -> list[Any]:
        """The same of one part: made again on larger stacks as long as a lane wants them and there are any."""
        depths, number = self._contents.depths, self._depth if self._grows else len(self._contents.depths) - 1
        while True:
            found = self._whole(arrays, lanes, room, depths[number])
            wants = bool((np.asarray(found[self._results]) == LaneStatus.MAX_DEPTH).any())
            if number == len(depths) - 1 or not wants:
                break
            number += 1
        if not wants:  # what a recursion without end took, no other run is to pay for
            self._depth = number
        return found

    def _whole(self, arrays: Sequence[Any], lanes: int, room: int, depth: int) -> list[Any]:
        """The same on stacks for so many live calls, in a program of so much room."""
        numpy, present = stablehlo.jax().numpy, np.arange(room) < lanes
        given = [present]
        for array, each in zip(arrays, self._contents.inputs, strict=True):
            array = numpy.asarray(array, each.dtype)
            missing = room - lanes if each.lanes else 0
            given.append(
                numpy.concatenate([array, numpy.zeros((missing, *each.shape), each.dtype)]) if missing else array
            )
        found = self._module(given, room, depth)
        return [array[:lanes] for array in found] if room != lanes else found

    def _outcome(self, arrays: Sequence[Any]) -> Outcome:
        count, types = self._results, self._contents.program.types
        status, site, place, steps = (np.asarray(each) for each in arrays[count : count + 4])
        rest = iter(arrays[count + 4 :])
        behind = StayedBehind(
            self.__name__,
            origin="an exported program",
            has="values, statuses and errors",
            help="ask the function itself, where it was exported",
        )
        return Outcome(
            values=tuple(arrays[:count]),
            status=status,
            site=site,
            place=place,
            fault_values={name: [np.asarray(next(rest)) for _ in leaves(types[name])] for name in self._shown},
            counting=behind,
            steps=steps,
            backend=NUMPYS,
            checkpoint=behind,
        )

    @property
    def _shown(self) -> list[str]:
        """The variables that messages show."""
        return [*dict.fromkeys(name for site in self._contents.program.faults for name in site.arguments)]

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, list[Any]]:
        """Return the number of lanes, and the program's input arrays; UsageError PCB51x for misfits."""
        given = dict(kwargs)
        lanes = given.pop("lanes", None) if "lanes" not in self._contents.parameters else None
        try:
            bound = self.__signature__.bind(*args, **given)
        except TypeError as error:
            fixed = "".join(f"; {name} is {text}, as it was exported" for name, text in self.statics.items())
            raise UsageError("PCB510", f"{error}; the parameters are {self.__signature__}{fixed}") from None
        bound.apply_defaults()
        found: list[Any] = []
        lengths: dict[str, int] = {} if lanes is None else {"lanes=": int(lanes)}
        for name, value in bound.arguments.items():
            for array, has_lanes in self._leaves(name, value):
                if has_lanes:
                    lengths.setdefault(name, array.shape[0])
                found.append((array, has_lanes))
        if len({*lengths.values()}) > 1:
            sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise UsageError("PCB513", f"the arguments disagree on the number of lanes: {sizes}")
        if not lengths:
            raise UsageError("PCB514", "no argument has a batch axis; say how many lanes to run with lanes=..")
        count, operands = next(iter(lengths.values())), iter(self._contents.operands)
        arrays = []
        for each in self._contents.inputs:
            array, has_lanes = (next(operands), False) if each.leaf is None else found[each.leaf]
            if each.lanes and not has_lanes:
                array = np.broadcast_to(np.asarray(array), (count, *each.shape))
            arrays.append(array)
        return count, arrays

    def _leaves(self, name: str, value: Any) -> list[tuple[Any, bool]]:
        """The arrays of an argument, and of each whether it has a lane axis."""
        type_, found = self._contents.parameters[name], []
        try:
            parts = values.flatten(type_, value)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unfit(name, f"something else ({error})") from None
        for part, leaf in zip(parts, leaves(type_), strict=True):
            array = self._array(name, part, leaf)
            rank = len(array.shape) - len(leaf.shape)
            if rank not in (0, 1) or tuple(array.shape[rank:]) != leaf.shape:
                raise self._unfit(name, f"an array {array.dtype}{[*array.shape]}")
            if rank and name in self._contents.for_all:
                raise self._unfit(name, f"{array.shape[0]} of them, where all lanes share one")
            found.append((array, rank == 1))
        return found

    def _array(self, name: str, value: Any, leaf: TensorType) -> Any:
        """Return one leaf as an array of its dtype, which Python's own numbers take and arrays must have."""
        if hasattr(value, "dtype") and hasattr(value, "shape") and not leaf.weak:
            array = value if stablehlo.is_array(value) else np.asarray(value)
            if str(array.dtype) != leaf.dtype:
                help = f"{name}.astype('{leaf.dtype}') is one that does"
                raise self._unfit(name, f"an array of {array.dtype}", help)
            return array
        if stablehlo.is_traced(value):
            return value
        try:
            plain = np.asarray(value)
        except ValueError as error:
            raise self._unfit(name, f"no array ({error})") from None
        if plain.size and not np.can_cast(plain.dtype, leaf.dtype, "same_kind"):
            raise self._unfit(name, f"numbers of {plain.dtype}")
        found = plain.astype(leaf.dtype)
        if plain.dtype.kind in "iu" and not np.array_equal(plain, found):
            raise self._unfit(name, "numbers that are larger")
        return found

    def _unfit(self, name: str, what: str, help: str = "") -> UsageError:
        type_ = self._contents.parameters[name]
        return UsageError(
            "PCB515", f"{self.__name__} was exported for {name}: {type_}, not {what}" + (help and f"; {help}")
        )

    def __repr__(self) -> str:
        least, most = self._contents.lanes
        lanes = f"{most} lanes at a time" if least == most else "any number of lanes"
        types = ", ".join(f"{name}: {type_}" for name, type_ in self._contents.parameters.items())
        return f"<pcbatch.Exported {self.__name__}({types}) for {', '.join(self.platforms)}, {lanes}>"


def _parameter(contents: file.Contents, name: str) -> inspect.Parameter:
    """A parameter of the function."""
    kind = inspect.Parameter.KEYWORD_ONLY if name in contents.by_name else inspect.Parameter.POSITIONAL_OR_KEYWORD
    if name not in contents.defaults:
        return inspect.Parameter(name, kind)
    return inspect.Parameter(name, kind, default=values.pack(contents.parameters[name], contents.defaults[name]))
