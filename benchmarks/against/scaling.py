"""What a lane-step costs natively, from a thousand lanes to a million, on one core and on all, and the memory it takes.

    python -m benchmarks.against.scaling [--lanes 1000 10000 100000 1000000] [--tasks collatz ..] [--repeats 5]
                                         [--json out/scaling.json]

A step is a loop turn or a call of a lane (`Run.lane_steps`). Lanes run one after another, so a step should cost the
same however many there are, and memory should go with lanes, not with the time that they take. A call's own time, that
of one lane, is left out of a step's. Calls take turns: one process has one core, the other one all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.against.crew import OURS, START_LIMIT, Cell, Crew, Figures
from benchmarks.against.inputs import CHEAP, RECURSIONS, batch
from benchmarks.against.report import digits, heading, spaced
from benchmarks.against.texts import compiled_by
from benchmarks.environments import CORES
from benchmarks.harness import arguments, table, write_json

ONE = "pcbatch, one core"
LANES = (1000, 10_000, 100_000, 1_000_000)
TASKS = (*CHEAP, "fibonacci")
WORTH = 2e-3
"""Seconds of one core from which on two should take half."""

EXACT = 2**20
"""Bytes below which the system's count of a process's memory is too coarse."""


@dataclass
class Point:
    """A task at a number of lanes: steps of all lanes, bytes of a call on one core, seconds on one core and on all.

    Of one lane alone, `steps_alone` and the CPU `seconds_alone` of a call.
    """

    steps: int
    bytes: int | None
    one: Figures
    cores: Figures
    steps_alone: int = 0
    seconds_alone: float = 0.0

    @property
    def pace(self) -> float | None:
        """Nanoseconds of CPU time for a step, on one core, a call's own time left out."""
        seconds = self.one.median("cpu")
        return 1e9 * (seconds - self.seconds_alone) / (self.steps - self.steps_alone) if seconds else None

    @property
    def gain(self) -> float | None:
        """How many times as fast as one core all of them are; None where that is too little work for two."""
        one, cores = self.one.median(), self.cores.median()
        return one / cores if one and cores and one >= WORTH else None


Points = Mapping[int, Point]
"""Of a task, by number of lanes."""


def measured(tasks: Iterable[str], lanes: Iterable[int], repeats: int) -> Iterator[tuple[str, int, Point]]:
    """Each task at each number of lanes, as it is measured."""
    import pcbatch

    functions = compiled_by(pcbatch.autobatch)
    with Crew((OURS, ONE)) as crew:
        for task in tasks:

            def steps_of(count: int, task: str = task) -> int:
                return int(functions[task].run(*batch(task, count)).lane_steps.sum())

            alone = crew.measured(task, 1, repeats=repeats, limit=START_LIMIT, budget=0.1)[ONE].median("cpu")
            for each in lanes:
                cell: Cell = crew.measured(task, each, repeats=repeats, limit=START_LIMIT, budget=1.0)
                one, cores = cell[ONE], cell[OURS]
                room = None if one.failure else crew.memory(ONE)
                yield task, each, Point(steps_of(each), room, one, cores, steps_of(1), alone or 0.0)


def line(task: str, lanes: int, point: Point) -> str:
    """What a point says, for whoever waits."""
    if point.one.failure:
        return f"{task:>14} {lanes:>9,}  {point.one.failure}"
    gain = f", {CORES} cores {point.gain:.2f} times as fast" if point.gain else ""
    room = f", {found} bytes a lane" if (found := _room(lanes, point)) else ""
    return f"{task:>14} {lanes:>9,}  {_pace(point)} ns a step{room}{gain}"


def _pace(point: Point) -> str:
    return f"{point.pace:.3g}" if point.pace else "--"


def _room(lanes: int, point: Point) -> str:
    return digits(point.bytes / lanes) if point.bytes is not None and point.bytes >= EXACT else ""


def _rows(found: Mapping[str, Points]) -> tuple[list[int], list[str]]:
    lanes = sorted({each for points in found.values() for each in points})
    return lanes, ["task", *map(heading, lanes)]


def flatness(found: Mapping[str, Points]) -> list[str]:
    """A table for a page: nanoseconds of CPU time a step, and how far apart they are."""
    lanes, heads = _rows(found)
    rows = []
    for task, points in found.items():
        paces = [pace for point in points.values() if (pace := point.pace)]
        spread = f"{max(paces) / min(paces):.2f}" if paces else ""
        rows.append([spaced(task), *(_pace(points[each]) if each in points else "" for each in lanes), spread])
    return table([*heads, "largest over smallest"], rows)


def gains(found: Mapping[str, Points]) -> list[str]:
    """A table for a page: one core's time over that of all, where there is work for two."""
    lanes, heads = _rows(found)
    rows = []
    for task, points in found.items():
        made = [points[each].gain if each in points else None for each in lanes]
        rows.append([spaced(task), *(f"{gain:.2f}" if gain else "" for gain in made)])
    return table(heads, rows)


def memory(found: Mapping[str, Points]) -> list[str]:
    """A table for a page: bytes for each lane by which a call makes the process grow, its results included."""
    lanes, heads = _rows(found)
    rows = []
    for task, points in found.items():
        rows.append([spaced(task), *(_room(each, points[each]) if each in points else "" for each in lanes)])
    return table(heads, rows)


def collected(points: Iterable[tuple[str, int, Point]]) -> dict[str, dict[int, Point]]:
    """All points by task and number of lanes; each is printed as it comes."""
    found: dict[str, dict[int, Point]] = {}
    for task, lanes, point in points:
        print(line(task, lanes, point), flush=True)
        found.setdefault(task, {})[lanes] = point
    return found


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES)
    parser.add_argument("--tasks", nargs="+", choices=(*CHEAP, *RECURSIONS), default=TASKS, metavar="task")
    given = parser.parse_args()
    found = collected(measured(given.tasks, sorted(given.lanes), given.repeats))
    for drawing in (flatness, memory, gains):
        print("\n" + "\n".join(drawing(found)))
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()
