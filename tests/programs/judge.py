"""Runs generated programs under one reading: `python -m tests.programs.judge --reading reference --count 500`.

A reading is `reference` (the cheapest way through the front end), `default`, `lockstep`, `native`,
`single`, `bare` (`single` on NumPy's own numbers) or the dotted name `package.module:run` of a function that is called
as `run(function, arguments)` (`judging.py`).

Prints one line for each kind of constructs: how many programs are right, refused, wrong (a silent wrong answer) and raw
(an error without a code). With `--alone`, `--count` programs of each kind by itself; else programs of all `--kinds` at
once, each counted under every kind that it has. The first programs that fail are made smaller and printed. Exit code
1: a program is wrong or raw.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.programs.generator import KINDS, arguments, function_of, kinds_of, program_of
from tests.programs.judging import NoProgramError, Outcome, Run, judge
from tests.programs.readings import reading
from tests.programs.table import MODULES, cases
from tests.smaller import smaller

OUTCOMES = ("right", "refused", "wrong", "raw")
Program = tuple[str, list[str], str, Outcome]
"""The name of a program, the kinds that it counts for, its source if it is generated, and its outcome."""


def main(given: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.programs.judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reading", default="reference")
    parser.add_argument("--cases", action="store_true", help="the programs written by hand instead of generated ones")
    parser.add_argument("--kinds", type=_kinds, default=list(KINDS), metavar="KIND,..", help="`-KIND,..`: all others")
    parser.add_argument("--alone", action="store_true", help="each kind by itself")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--show", type=int, default=5, help="how many failing programs are made smaller and printed")
    parser.add_argument("--smaller", type=int, default=150, metavar="TRIES", help="0 prints them as they are")
    parser.add_argument("--codes", action="store_true", help="print the codes of refusals")
    parser.add_argument("--out", type=Path, help="a folder that keeps all failing programs as they are")
    options = parser.parse_args(given)
    run, started = reading(options.reading), time.process_time()
    table: dict[str, Counter[str]] = {}
    codes: Counter[str] = Counter()
    failed = 0
    programs = written(run) if options.cases else generated(options, run)
    for name, kinds, source, outcome in programs:
        codes[outcome.detail] += outcome.kind == "refused"
        for kind in kinds:
            table.setdefault(kind, Counter())[outcome.kind] += 1
        if outcome.kind not in ("wrong", "raw"):
            continue
        failed += 1
        if options.out and source:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{outcome.kind} {name}.py").write_text(f"{source}\n# {outcome.detail}\n", encoding="utf-8")
        if source and failed <= options.show:
            source = smaller(source, like(outcome, run), options.smaller, 30.0)
            outcome = outcome_of(source, run)
        if not source or failed <= options.show:
            print(f"-- {name}: {outcome.kind}, {outcome.detail}\n{source}", flush=True)
    print("\n".join(lines_of(table)))
    if options.codes:
        print(", ".join(f"{code} {number}" for code, number in codes.most_common() if number))
    print(f"{time.process_time() - started:.0f} s of CPU")
    return 1 if failed else 0


def generated(options: argparse.Namespace, run: Run) -> Iterator[Program]:
    """The generated programs that are asked for."""
    for group in [[kind] for kind in options.kinds] if options.alone else [options.kinds]:
        for seed in range(options.seed, options.seed + options.count):
            source = program_of(seed, group)
            kinds = group if options.alone else ["all", *kinds_of(source)]
            yield f"{group[0] if options.alone else 'all'} {seed}", kinds, source, outcome_of(source, run)


def written(run: Run) -> Iterator[Program]:
    """The programs of `tests/programs/cases/`, whose kinds are the modules."""
    for name, case in cases().items():
        yield name, [name.partition(".")[0], "all"], "", judge(case.function, case.arguments, run, case.twin)


def _kinds(text: str) -> list[str]:
    named = text.removeprefix("-").split(",")
    if unknown := set(named) - {*KINDS}:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    return [kind for kind in KINDS if (kind in named) != text.startswith("-")]


def outcome_of(source: str, run: Run) -> Outcome:
    """The outcome of one program."""
    try:
        function = function_of(source)
    except Exception as error:  # a class statement may fail in any way, once it has been made smaller
        raise NoProgramError(str(error)) from error
    return judge(function, arguments(), run)


def like(outcome: Outcome, run: Run) -> Callable[[str], bool]:
    """Tells whether another program fails in the same way."""

    def fails(source: str) -> bool:
        try:
            other = outcome_of(source, run)
        except NoProgramError:
            return False
        same_error = outcome.kind == "wrong" or other.detail.split(":")[0] == outcome.detail.split(":")[0]
        return other.kind == outcome.kind and same_error

    return fails


def lines_of(table: dict[str, Counter[str]]) -> Iterator[str]:
    """The table as text."""
    yield f"{'kind':20}" + "".join(f"{name:>9}" for name in OUTCOMES)
    for kind, counts in sorted(table.items(), key=lambda item: [*KINDS, *MODULES, "plain", "all"].index(item[0])):
        yield f"{kind:20}" + "".join(f"{counts[name]:9}" for name in OUTCOMES)


if __name__ == "__main__":
    sys.exit(main())
