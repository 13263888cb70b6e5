"""The options of a batched function, checked when they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pcbatch.diagnostics import UsageError
from pcbatch.runtime.schedules import schedule_named

STRATEGIES = ("pc", "local", "hybrid", "depth", "agenda")
BACKENDS = ("tensorflow", "jax", "reference")
InAxes = int | None | tuple[int | None, ...] | Mapping[str, int | None]


@dataclass(frozen=True)
class Options:
    """How a batched function is compiled and run; see `pcbatch.autobatch` for what each option means."""

    in_axes: Any = 0
    static_argnames: tuple[str, ...] = ()
    strategy: str = "pc"
    schedule: str = "auto"
    backend: str = "tensorflow"
    jit: bool = True
    vectorize: bool = True
    max_depth: int | None = None
    max_steps: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, STRATEGIES, built=("pc",))
        _one_of("backend", self.backend, BACKENDS, built=("tensorflow", "reference"))
        schedule_named(self.schedule)
        if self.static_argnames:
            raise UsageError("PCB503", "static_argnames is not built yet; close over static values instead")
        if self.vectorize is False:
            raise UsageError("PCB503", "vectorize=False (bodies written for whole batches) is not built yet")
        for name in ("jit", "vectorize"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError("PCB504", f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.name is not None and not isinstance(self.name, str):
            raise UsageError("PCB504", f"name must be None or a string, not {self.name!r}")
        for name in ("max_depth", "max_steps"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
                raise UsageError("PCB504", f"{name} must be None or an int of at least 0, not {limit!r}")

    def changed(self, changes: Mapping[str, Any]) -> Options:
        """The same options with `changes`; UsageError PCB501 for a name that is no option."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise UsageError("PCB501", f"there is no option {name!r}; the options are {', '.join(known)}")
        return replace(self, **changes)

    def axes(self, parameters: tuple[str, ...]) -> dict[str, int | None]:
        """The lane axis of each parameter: 0, or None where all lanes share the argument."""
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
            if axis is not None and (isinstance(axis, bool) or axis != 0):
                raise UsageError("PCB502", f"in_axes of {name!r} must be 0 or None, not {axis!r}")
        return axes


def _one_of(what: str, given: str, known: tuple[str, ...], built: tuple[str, ...]) -> None:
    if given not in known:
        raise UsageError("PCB501", f"{what} must be one of {', '.join(map(repr, known))}, not {given!r}")
    if given not in built:
        raise UsageError("PCB503", f"{what}={given!r} is not built yet; use {' or '.join(map(repr, built))}")
