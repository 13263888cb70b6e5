"""What each pass is worth over the corpus: `python -m tests.optimize.effects` writes the table of `docs/passes.md`.

Every program of the corpus is compiled with all passes, and once with each of them left out. Blocks, stacks and pushes
are read off the programs; trips are counted on runs of 17 lanes as a plain graph (the machine takes the same trips
under XLA). Passes over stacks leave the blocks and so the trips alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from pcbatch.ir.printer import print_program
from pcbatch.ir.program import Program
from pcbatch.ir.rewrite import pushed, variables
from pcbatch.lowering.calls import lower_calls
from pcbatch.optimize.pipeline import CFG_PASSES, PASSES, STACK_PASSES, optimize
from tests.harness import BATCH, NAMES, load

PAGE = Path(__file__).parents[2] / "docs" / "passes.md"
BEGIN, END = "<!-- effects: begin -->\n", "<!-- effects: end -->\n"
SCHEDULES = ("earliest", "sweep")


@dataclass(frozen=True)
class Effect:
    """Sums over the corpus."""

    blocks: int
    temporaries: int
    registers: int
    stacks: int
    cached: int
    pushes: int
    trips: tuple[int, ...]


@contextmanager
def without(name: str | None) -> Iterator[None]:
    """Compile without the pass `name`."""
    for dialect, passes in PASSES.items():
        if name in passes:
            with patch.dict(PASSES, {dialect: {key: run for key, run in passes.items() if key != name}}):
                yield
            return
    yield


@cache
def typed(program: str) -> Program:
    """The typed cfg program of a corpus program."""
    found = load(program)
    return found.function.pipeline(*found.arguments(BATCH)).cfg


def compiled(program: str, left_out: str | None) -> Program:
    """The optimised program of a corpus program."""
    with without(left_out):
        return optimize(lower_calls(optimize(typed(program))))


def trips(program: str, left_out: str | None, schedule: str) -> int:
    """Trips of a run of a corpus program."""
    found = load(program)
    with without(left_out):
        function = found.function.options(name=f"{program}_without_{left_out}", jit=False, schedule=schedule)
        return function.run(*found.arguments(BATCH)).trips


def effects() -> dict[str | None, Effect]:
    """The sums for the programs with all passes (None), and with each pass left out."""
    programs: dict[str | None, dict[str, Program]] = {
        left_out: {name: compiled(name, left_out) for name in NAMES} for left_out in (None, *CFG_PASSES, *STACK_PASSES)
    }
    counted: dict[tuple[str, str], tuple[int, ...]] = {}
    for left_out in (None, *CFG_PASSES):
        for name, program in programs[left_out].items():
            key = (name, print_program(program))
            if key not in counted:
                counted[key] = tuple(trips(name, left_out, schedule) for schedule in SCHEDULES)
    return {
        left_out: _effect(found, counted if left_out in (None, *CFG_PASSES) else None)
        for left_out, found in programs.items()
    }


def _effect(programs: Mapping[str, Program], counted: Mapping[tuple[str, str], tuple[int, ...]] | None) -> Effect:
    storage = [v.storage for program in programs.values() for v in variables(program).values()]
    turns = () if counted is None else [counted[name, print_program(program)] for name, program in programs.items()]
    return Effect(
        sum(len(list(program.blocks())) for program in programs.values()),
        storage.count("temporary"),
        storage.count("register"),
        storage.count("stack") + storage.count("cached stack"),
        storage.count("cached stack"),
        sum(len(pushed(block)) for program in programs.values() for block in program.blocks()),
        tuple(map(sum, zip(*turns, strict=True))),
    )


def table() -> str:
    """The table as Markdown."""
    found = effects()
    rows = [
        "| left out | blocks | temporaries | registers | stacks | cached | pushes | trips, earliest | trips, sweep |"
    ]
    rows.append("|---" + "|--:" * 8 + "|")
    for left_out, effect in found.items():
        turns = effect.trips or ("as with all",) * len(SCHEDULES)
        cells = (
            effect.blocks,
            effect.temporaries,
            effect.registers,
            effect.stacks,
            effect.cached,
            effect.pushes,
            *turns,
        )
        name = "nothing" if left_out is None else f"`{left_out}`"
        rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return f"{len(NAMES)} programs of {BATCH} lanes; sums:\n\n" + "\n".join(rows) + "\n"


def page(text: str, new: str) -> str:
    """The page with its table replaced."""
    return text[: text.index(BEGIN) + len(BEGIN)] + new + text[text.index(END) :]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table()), encoding="utf-8")
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))
