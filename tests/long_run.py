"""Runs many generated programs, once: `python -m tests.long_run --mode interpreter --programs 3000`.

Program number k of a mode is always the same one, whatever was run before. Where a run stands is kept in its file, one
line of JSON for each program, so that the same command goes on where it was stopped; programs that failed lie beside it
as text, which may go to `tests/found/` with a docstring. Parts 1/2 and 2/2 share the work between two processes. Exit
code 1: programs failed, or more were refused than REFUSED allows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pcbatch.errors import CompileError
from tests.generated_runs import REFUSED, check_interpreted, check_run, check_single, refused, truth
from tests.generator import program_of
from tests.harness import AUTO, GRAPH, REFERENCE, XLA, Mode, leaves
from tests.smaller import smaller

ENGINES: dict[str, tuple[Mode, ...]] = {"reference": REFERENCE, "graph": GRAPH, "xla": XLA, "auto": (AUTO,)}
FIRST = {
    "interpreter": 0,
    "single": 4_000_000,
    "reference": 1_000_000,
    "graph": 2_000_000,
    "xla": 3_000_000,
    "auto": 5_000_000,
}
"""The number of the first program of each mode, beside `--seed` times ten million."""


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.long_run", description=__doc__)
    parser.add_argument("--mode", choices=list(FIRST), default="interpreter")
    parser.add_argument("--programs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="which of how many equal parts this process runs")
    parser.add_argument("--out", type=Path, default=Path("out/long_run"), help="the folder of what is found")
    parser.add_argument("--smaller", type=int, default=0, metavar="TRIES", help="make what fails smaller")
    given = parser.parse_args(arguments)
    part, parts = map(int, given.part.split("/"))
    first = given.seed * 10_000_000 + FIRST[given.mode]
    numbers = range(first + part - 1, first + given.programs, parts)
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / f"{given.mode}-{given.seed}-{part}of{parts}.jsonl"
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    done = {entry["number"]: entry["outcome"] for entry in map(json.loads, lines)}
    started, used = time.perf_counter(), time.process_time()
    with record.open("a", encoding="utf-8") as file:
        for number in numbers:
            if number in done:
                continue
            source = program_of(number)
            done[number] = outcome = outcome_of(source, given.mode, number)
            file.write(json.dumps({"number": number, "outcome": outcome}) + "\n")
            file.flush()
            if not outcome.startswith(("right", "refused")):
                print(f"program {number}: {outcome}", flush=True)
                if given.smaller:
                    source = smaller(source, same_as(outcome, given.mode, number), given.smaller, 30.0)
                (given.out / f"{given.mode}_{number}.py").write_text(source, encoding="utf-8")
            elif (number - first) // parts % 50 == 0:
                seconds = f"{time.perf_counter() - started:.0f} s, {time.process_time() - used:.0f} s of CPU"
                print(f"program {number}: {seconds}", flush=True)
    counts = Counter(done[number].split(":")[0] for number in numbers)
    print(f"{given.mode}: {len(numbers)} programs, " + ", ".join(f"{n} {name}" for name, n in counts.most_common()))
    print(f"{time.perf_counter() - started:.0f} s, {time.process_time() - used:.0f} s of CPU")
    allowed = counts["refused"] <= max(1, REFUSED * len(numbers))
    return 0 if allowed and counts["right"] + counts["refused"] == len(numbers) else 1


def outcome_of(source: str, mode: str, number: int) -> str:
    """`right`, or `refused`, `refused wrongly`, `wrong` or `raised`, a colon, and what is to say of it."""
    try:
        if mode == "interpreter":
            check_interpreted(source)
        elif mode == "single":
            check_single(source)
        else:
            check_run(source, ENGINES[mode][number % len(ENGINES[mode])])
    except CompileError as error:
        codes = ", ".join(sorted({diagnostic.code for diagnostic in error.diagnostics}))
        return f"refused: {codes}" if refused(error) else f"refused wrongly: {codes}: {error.diagnostics[0].message}"
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:300]}"
    except Exception as error:  # whatever it is, it is to be told
        return f"raised: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "right:"


def same_as(outcome: str, mode: str, number: int) -> Callable[[str], bool]:
    """Whether another program, which also has numbers for an answer, fails as `outcome` says."""

    def kind(text: str) -> list[str]:
        first, second, *_ = text.split(":")
        return [first] if first == "wrong" and mode != "interpreter" else [first, second]

    def same(text: str) -> bool:
        functions = any(callable(leaf) for lane in truth(text) for leaf in leaves(lane.value))
        return not functions and kind(outcome_of(text, mode, number)) == kind(outcome)

    def fails(text: str) -> bool:
        try:
            return same(text)
        except TimeoutError:
            raise
        except Exception:  # it is no program
            return False

    return fails


if __name__ == "__main__":
    sys.exit(main())
