"""How fast is cheap code? Eight tasks, at several numbers of lanes, against what people use today.

    python -m benchmarks.against [--lanes 1 64 1024 16384 100000] [--tasks collatz ..] [--peers numba vmap ..]
                                 [--quick] [--repeats 5] [--markdown out/against.md] [--json out/against.json]

The tasks are those of `tasks.py`, and recursions (`recursions.py`) that TensorFlow Probability's machine runs, too.
Contestants, by the names that `--peers` takes:

    pcbatch, lockstep           the form by default, and the machine in lockstep
    masked                      a masked loop by hand in TensorFlow, under XLA
    vectorized_map              `tf.vectorized_map` of a loop, as a graph
    vmap, "vmap, one loop"      `jax.vmap`, with the loops as they are, and of one turn of a single loop
    lax.map                     `jax.lax.map` with XLA's threshold for native loops raised, a flag of the whole process
    numba, numpy, python        compiled and plain loops over the lanes, and arrays by hand
    "vmap, cores", ..           the same on all cores
    tfp                         TensorFlow Probability's machine, on the recursions

Milliseconds are of the best of the timed calls, which take turns; in brackets stands the first call in seconds. All
give the same results, or this fails. Peers get environments of their own in out/peers, made by this script. Where one
cannot be made, or takes more than `--limit` seconds (thrice that to compile), the reason stands in place of the figure.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.against.crew import CONTESTANTS, Cell, Crew
from benchmarks.against.inputs import CHEAP, RECURSIONS
from benchmarks.against.report import failures, firsts, line, markdown, overview, summary
from benchmarks.harness import arguments, write_json

LANES = (1, 64, 1024, 16384, 100_000)
QUICK_LANES = (64, 1024)
QUICK = ("pcbatch", "lockstep", "masked", "vmap", "lax.map", "numba", "python")


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--quick", action="store_true", help="fewer lanes and contestants, the eight tasks only")
    parser.add_argument("--lanes", type=int, nargs="+")
    parser.add_argument("--tasks", nargs="+", choices=(*CHEAP, *RECURSIONS), metavar="task")
    parser.add_argument("--peers", nargs="+", choices=CONTESTANTS, metavar="contestant", help=", ".join(CONTESTANTS))
    parser.add_argument("--limit", type=float, default=10, help="seconds after which a warm call is given up")
    parser.add_argument(
        "--budget", type=float, default=0.7, help="seconds of timed calls of one contestant in one cell"
    )
    parser.add_argument("--markdown", type=Path, help="where to write the tables of docs/cheap-code.md")
    given = parser.parse_args()
    quick = given.quick
    tasks = given.tasks or (CHEAP if quick else (*CHEAP, *RECURSIONS))
    peers = given.peers or (QUICK if quick else CONTESTANTS)
    lanes_asked = sorted(given.lanes or (QUICK_LANES if quick else LANES))  # fewer first, to know who would take long
    groups = {"eight tasks": CHEAP, "recursions": RECURSIONS}
    found: dict[str, dict[int, dict[str, Cell]]] = {title: {lanes: {} for lanes in lanes_asked} for title in groups}
    with Crew(dict.fromkeys(("pcbatch", *peers))) as crew:
        for lanes in lanes_asked:
            for title, group in groups.items():
                table = found[title][lanes]
                for task in (task for task in group if task in tasks):
                    if not table:
                        print(f"\n{lanes:,} {'lane' if lanes == 1 else 'lanes'}, {title}: ms [first call, s]")
                    table[task] = crew.measured(
                        task, lanes, repeats=given.repeats, limit=given.limit, budget=given.budget
                    )
                    print(line(task, table[task]), flush=True)
                print("".join(f"{'':>14}  {each}\n" for each in summary(table)), end="", flush=True)
            _write(found, given.markdown, given.json)  # now, as who stops a long run keeps what there is


def _write(found: dict[str, dict[int, dict[str, Cell]]], markdown_path: Path | None, json_path: Path | None) -> None:
    if markdown_path:
        markdown_path.parent.mkdir(parents=True, exist_ok=True)
        markdown_path.write_text("\n".join(_page(found)) + "\n")
    if json_path:
        plain = {
            title: {
                lanes: {task: {who: asdict(f) for who, f in cell.items()} for task, cell in table.items()}
                for lanes, table in tables.items()
            }
            for title, tables in found.items()
        }
        write_json(json_path, plain)


def _page(found: dict[str, dict[int, dict[str, Cell]]]) -> list[str]:
    """The tables as Markdown."""
    said = []
    for title, tables in found.items():
        if tables := {lanes: table for lanes, table in tables.items() if table}:
            said += [f"## The {title}", "", *overview(tables), ""]
            for lanes, table in tables.items():
                said += [f"### {lanes:,} {'lane' if lanes == 1 else 'lanes'}", "", *markdown(table), ""]
            said += ["### First calls, seconds", "", *firsts(tables), ""]
            missing = [f"- {each}" for each in failures(tables)]
            said += ["### What is missing", "", *missing, ""] if missing else []
    return said


if __name__ == "__main__":
    main()
