"""The settings of a run, numbers and names only: enough, with the density and the data, to repeat it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from pcbatch.errors import UsageError

CHOICES: dict[str, tuple[Any, ...]] = {
    "init": ("jitter", "uniform", "exact"),
    "metric": ("auto", "diag", "dense"),
    "adapt": ("per_chain", "pooled", None),
    "kernel": ("multinomial", "slice"),
    "jit": (True, False, "auto"),
    "strategy": ("pc", "local", "hybrid"),
}
AT_LEAST = {
    "chains": 1,
    "warmup": 0,
    "draws": 0,
    "max_tree_depth": 1,
    "leapfrogs_per_leaf": 1,
    "thin": 1,
    "chunk": 1,
}
AT_MOST = {"warmup": 10_000_000}
"""The longest warm-up: the purpose of each of its trajectories is written down."""
LONGEST = 2**31 - 1
"""Trajectories of a run; they are counted in int32."""
DEEPEST = 24
"""2^24 leaves are the most that float32 counts exactly."""


@dataclass(frozen=True)
class Settings:
    """The options of `sample`, under their names; `jit` and `metric` are what was chosen if "auto" was asked for."""

    chains: int
    warmup: int
    draws: int
    seed: int
    init: str
    metric: str
    target_accept: float
    max_tree_depth: int
    leapfrogs_per_leaf: int
    adapt: str | None
    kernel: str
    thin: int
    save_warmup: bool
    dtype: str
    jit: Any
    schedule: str
    chunk: int
    strategy: str = "pc"
    superchains: int | None = None
    end_weight: float = 1.0

    def __post_init__(self) -> None:
        for name, least in AT_LEAST.items():
            value = self._whole(name)
            if value < least:
                raise UsageError("PCB551", f"{name} must be an int of at least {least}, not {value!r}")
        for name, most in AT_MOST.items():
            if getattr(self, name) > most:
                raise UsageError("PCB551", f"{name} must be at most {most}, not {getattr(self, name)}")
        if self.trajectories > LONGEST:
            raise UsageError("PCB551", f"warmup + draws * thin must be at most {LONGEST}, not {self.trajectories}")
        self._whole("seed")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                listed = ", ".join(map(repr, known))
                raise UsageError("PCB551", f"{name} must be one of {listed}, not {getattr(self, name)!r}")
        if self.strategy != "pc" and (self.jit is not True or self.schedule != "auto"):
            raise UsageError("PCB551", f"strategy={self.strategy!r} has no schedule, and jit as it is: leave both away")
        target: Any = self.target_accept
        if not isinstance(target, Real) or not 0 < float(target) < 1:
            raise UsageError("PCB551", f"target_accept must be between 0 and 1, not {target!r}")
        object.__setattr__(self, "target_accept", float(target))
        weight: Any = self.end_weight
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0.5 <= float(weight) <= 1:
            raise UsageError("PCB551", f"end_weight must be between 0.5 and 1, not {weight!r}")
        if weight != 1 and self.kernel == "slice":
            raise UsageError("PCB551", "end_weight belongs to kernel='multinomial': the other kernel has no such sum")
        object.__setattr__(self, "end_weight", float(weight))
        if self.superchains is not None:
            groups = self._whole("superchains")
            if groups < 2 or self.chains % groups or self.chains == groups:
                raise UsageError(
                    "PCB551",
                    f"superchains must be at least 2 groups of several chains each, of equal sizes: {groups} do not "
                    f"divide {self.chains} chains so",
                )
        if self.max_tree_depth > DEEPEST:
            raise UsageError("PCB551", f"max_tree_depth must be at most {DEEPEST}, not {self.max_tree_depth}")
        if self.dtype not in ("float32", "float64"):
            raise UsageError("PCB551", f"dtype must be float32 or float64, not {self.dtype}")

    def _whole(self, name: str) -> int:
        """The value of an option that is an int; NumPy's become Python's, for JSON."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UsageError("PCB551", f"{name} must be an int, not {value!r}")
        object.__setattr__(self, name, int(value))
        return int(value)

    @property
    def is_compared(self) -> bool:
        """Tell whether chains run as the paper's other machines do, in which nobody waits and nothing is merged."""
        return self.strategy != "pc" or self.schedule == "switch"

    @property
    def adapts(self) -> bool:
        """Tell whether the warm-up changes anything but the positions."""
        return self.adapt is not None and self.warmup > 0

    @property
    def trajectories(self) -> int:
        """The number of trajectories that each chain makes, warm-up included: after it, `thin` for each draw."""
        return self.warmup + self.draws * self.thin

    def with_draws(self, draws: int) -> Settings:
        """The same with another number of draws."""
        return replace(self, draws=draws)

    def as_json(self) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
