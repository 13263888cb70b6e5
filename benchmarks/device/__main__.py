"""All that a card is to be asked, in five minutes: `python -m benchmarks.device`.

    python -m benchmarks.device [--seconds 300] [--json FILE] [--page] [--numpyro PYTHON]

First programs of the test suite run on the card, each lane against `f.single`. Then programs are timed under each way
to run them: one kernel, or kernels between gradients, with and without loops on the device; and in lockstep, with
sixteen trips between two looks of the host, one trip, or loops on the device. NumPyro runs beside them, and a training
step inside a `tf.function`. What there is no time for is named. `--page` writes docs/figures/device.json and the tables
of docs/gpu.md, from which `pcbatch/runtime/costs/device.py` has its numbers.

Without a GPU only the first part runs, on the CPU in the form for a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.conversation import ContestantError, Process
from benchmarks.device import page
from benchmarks.device.plan import PROGRAMS, WAYS, Row, name_of, planned
from benchmarks.environments import JAX_ON_GPU, PeerUnavailableError
from benchmarks.harness import load, origin

RIGHT = 75.0
"""Seconds for the first part: the programs that are left then are named."""
START = 60.0
"""Seconds in which a process has to be ready."""


class Session:
    """The measurements of one card, until the time is over."""

    def __init__(self, seconds: float, numpyro: str | None):
        self._end, self._numpyro = time.monotonic() + seconds, numpyro
        self.found: dict[str, Any] = {"card": None, "right": {}, "missing": {}, "rows": []}

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self._end - time.monotonic(), 0.0)

    def run(self, programs: tuple[str, ...] = PROGRAMS) -> dict[str, Any]:
        """Ask everything; the times only of a card."""
        with_card = self._right(programs)
        if with_card:
            for way in WAYS:
                self._times(way)
            self._peer()
        return self.found

    def _right(self, programs: tuple[str, ...]) -> bool:
        """Run programs lane by lane against Python; return whether there is a card."""
        process = Process("benchmarks.device.worker", variables=WAYS["kernel"])
        try:
            self.found["card"] = process.ask(START, do="start")["card"]
            started = time.monotonic()
            for name in programs:
                allowed = min(RIGHT - (time.monotonic() - started), self.left)
                if allowed <= 0:
                    self.found["missing"][name] = "no time was left"
                    continue
                self.found["right"][name] = process.ask(allowed + 30, do="right", name=name)["wrong"]
                said = self.found["right"][name]
                print(f"{name}: {said or 'right'}", flush=True)
        except ContestantError as why:
            self.found["missing"]["right results"] = str(why)
        finally:
            process.close()
        return self.found["card"] is not None

    def _times(self, way: str) -> None:
        process = Process("benchmarks.device.worker", variables=WAYS[way])
        try:
            process.ask(START, do="start")
            for program, size in planned(way):
                self._one(process, way, program, size)
        except ContestantError as why:
            self.found["missing"][way] = str(why)
        finally:
            process.close()

    def _one(self, process: Process, way: str, program: str, size: int) -> None:
        if self.left < 5:
            self.found["missing"][name_of(way, program, size)] = "no time was left"
            return
        reply = process.ask(self.left, do="time", way=way, program=program, size=size)
        self._note({"way": way, "program": program, "size": size, **reply})

    def _note(self, row: Row) -> None:
        self.found["rows"].append(row)
        print(f"{row['program']}, {row['size']:,}, {row['way']}: {1e3 * row['seconds']:.3f} ms", flush=True)

    def _peer(self) -> None:
        """NumPyro on the same card."""
        try:
            python = self._numpyro or JAX_ON_GPU.python()
            process = Process("benchmarks.nuts.contestants.numpyro_sampler", python)
        except PeerUnavailableError as why:
            self.found["missing"]["NumPyro"] = str(why)
            return
        try:
            process.ask(START, do="start")
            for program, size in planned("NumPyro"):
                asked = {"target": "logistic-small", "chains": size, "trajectories": 10, "variant": ""}
                first = process.ask(self.left, do="prepare", **asked)["seconds"]
                walls = [process.ask(self.left, do="run", seed=seed, draws=None)["wall"] for seed in range(1, 4)]
                self._note(
                    {"way": "NumPyro", "program": program, "size": size, "first": first, "seconds": sorted(walls)[1]}
                )
        except ContestantError as why:
            self.found["missing"]["NumPyro"] = str(why)
        finally:
            process.close()


def main(arguments: list[str] | None = None) -> int:
    """Ask, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300, help="for everything")
    parser.add_argument("--json", type=Path, help="a file for what was found")
    parser.add_argument("--page", action="store_true", help=f"write {page.PAGE.name} and the figures beside it")
    parser.add_argument("--numpyro", metavar="PYTHON", help="an interpreter that has NumPyro, and JAX for the card")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS, metavar="NAME")
    options = parser.parse_args(arguments)
    before = load()
    found = Session(options.seconds, options.numpyro).run(tuple(options.programs))
    found["origin"] = origin(before)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    wrong = [name for name, said in found["right"].items() if said]
    if found["card"] is None:
        print("no card was found: programs ran on the CPU in the form for a GPU, and nothing was timed")
    elif options.page:
        page.write(found)
    return 1 if wrong or "right results" in found["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
