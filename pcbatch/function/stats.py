"""The cost of compiling a batched function, as its user gets to see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stats:
    """The cost of compilation so far: machine programs compiled, cache entries, seconds of tracing and compiling.

    A recursive program is compiled anew for each size of its stacks; `stack_entries` is the one that the next call
    starts with, learnt from those before it (0 for programs without stacks). `forms` has the form in which each of the
    signatures runs, those used last at the end: "native", "lockstep", or "lockstep: " and why not native; "mixed: ",
    which blocks are in lockstep, the others being native, and why; "straight, by XLA" or "straight, by kernels of
    TensorFlow", with `jit="auto"` and why.
    `rooms` has for each of them for how many lanes there are programs: one of these serves fewer lanes, too, the others
    being idle. (With `max_lanes`, or in strategies other than "pc", programs are made in other ways, and there are none
    here.)
    `notes` say which operations no rule computes for all lanes at once, so that they run lane after lane, and where.
    Where there is a cache on disk (`pcbatch.cache`), `hits` programs were found there and `misses` were not.
    """

    compilations: int
    cache_entries: int
    trace_seconds: float
    compile_seconds: float
    stack_entries: int = 0
    forms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hits: int = 0
    misses: int = 0
    rooms: tuple[tuple[int, ...], ...] = ()

    def __repr__(self) -> str:
        stacks = f", stacks of {self.stack_entries} entries" if self.stack_entries else ""
        cache = f", {self.hits} of {self.hits + self.misses} found on disk" if self.hits + self.misses else ""
        return (
            f"<pcbatch.Stats: {self.compilations} compilations of {self.cache_entries} signatures, "
            f"traced in {self.trace_seconds:.3g} s, compiled in {self.compile_seconds:.3g} s{stacks}{cache}>"
        )
