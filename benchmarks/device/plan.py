"""The plan of what is measured on a card: programs, sizes and ways to run them, in the order of what matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Row = dict[str, Any]
"""A measurement: way, program, size, seconds of the first call and of a warm one."""

PROGRAMS = (
    *("fibonacci", "ackermann", "collatz", "insertion_sort", "mixed_failures", "depth_limit", "step_limit"),
    *("random_walk", "adaptive_simpson", "assert_fails", "binary_search", "bisection", "bubble_sort", "hanoi"),
    *("many_live", "mixed_ints", "rnn", "sieve", "tree_sum", "tribonacci"),
)
"""Programs of the test suite's corpus: faults, limits, stacks, arrays, draws."""

WAYS: Mapping[str, Mapping[str, str]] = {
    "kernel": {},
    "kernel, device loops": {"PCBATCH_DEVICE_LOOPS": "1"},
    "sixteen trips": {"PCBATCH_KERNELS": "0"},
    "device loops": {"PCBATCH_KERNELS": "0", "PCBATCH_DEVICE_LOOPS": "1"},
    "one trip": {"PCBATCH_KERNELS": "0"},
}
"""By name the environment of a process that runs programs so: the last three ways in lockstep throughout."""

CHEAP = {"fibonacci": (1_000, 10_000, 100_000), "collatz": (1_000, 10_000, 100_000), "sort": (256, 4_096, 65_536)}
SAMPLER = (64, 1_024, 16_384)
TREES = (16, 64, 256)


def planned(way: str) -> Iterator[tuple[str, int]]:
    """The programs that run in a way, with their sizes: the middle one first, as others may have no time."""
    if way == "NumPyro":
        yield from (("sampler", size) for size in SAMPLER)
        return
    for place in (1,) if way == "one trip" else (1, 0, 2):
        if way != "kernel, device loops":  # there the whole program is one kernel
            yield from ((name, sizes[place]) for name, sizes in CHEAP.items())
        yield "sampler", SAMPLER[place]
        if way in ("sixteen trips", "device loops"):
            yield "tree", TREES[place]
    if way in ("sixteen trips", "device loops"):
        yield "training step", TREES[1]


def name_of(way: str, program: str, size: int) -> str:
    """A measurement in words."""
    return f"{program}, {size:,}, {way}"
