"""How fast is cheap code? Eight tasks, at several numbers of lanes, against what people use today.

    python -m benchmarks.against [--lanes 1 64 1024 16384 100000] [--tasks collatz ..] [--peers numba vmap ..]
                                 [--quick] [--repeats 5] [--markdown out/against.md] [--json out/against.json] [--page]

The tasks are those of `tasks.py`, and recursions (`recursions.py`) that TensorFlow Probability's machine runs, too.
Contestants, by the names that `--peers` takes:

    pcbatch, lockstep           the form by default, and the machine in lockstep
    "pcbatch, one core"         the form by default in a process that may use one core only
    masked                      a masked loop by hand in TensorFlow, under XLA
    vectorized_map              `tf.vectorized_map` of a loop, as a graph
    vmap, "vmap, one loop"      `jax.vmap`, with the loops as they are, and of one turn of a single loop
    lax.map                     `jax.lax.map` with XLA's threshold for native loops raised, a flag of the whole process
    numba, C, numpy, python     compiled and plain loops over the lanes, and arrays by hand
    "vmap, cores", ..           the same on all cores
    tfp                         TensorFlow Probability's machine, on the recursions

Milliseconds are medians of the timed calls, which take turns: as the wall's clock has them, then of all cores together;
in brackets stands the first call in seconds. Ratios are of both clocks. pcbatch gets NumPy's arrays. All give the same
results, or this fails. Peers get environments of their own in the user's cache, made by this script. Where one
cannot be made, or takes more than `--limit` seconds (thrice that to compile), the reason stands in place of the figure.

`--page` measures how calls scale as well (`benchmarks.against.scaling`), keeps all figures in
docs/figures/cheap-code.json and draws them into docs/cheap-code.md, docs/when.md and the README.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.against import pages, scaling
from benchmarks.against.contestants import in_c
from benchmarks.against.crew import CONTESTANTS, OURS, Cell, Crew
from benchmarks.against.inputs import CHEAP, RECURSIONS
from benchmarks.against.pages import EIGHT, RECURSIVE, Found
from benchmarks.against.report import heading, line, summary
from benchmarks.environments import JAX, NUMBA, TENSORFLOW_PROBABILITY
from benchmarks.harness import arguments, load, origin, write_json, write_page

LANES = (1, 64, 1024, 16384, 100_000)
QUICK_LANES = (64, 1024)
PEERS = ("jax", "numba", "tensorflow-probability")
"""The packages whose versions are said."""
QUICK = ("pcbatch", "lockstep", "masked", "vmap", "lax.map", "numba", "C", "python")


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
    parser.add_argument("--scaling", type=int, nargs="*", metavar="lanes", help="measure how calls scale, too")
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    parser.add_argument("--page", action="store_true", help="draw the figures, those of scaling too, into the pages")
    given = parser.parse_args()
    quick, before = given.quick, load()
    tasks = given.tasks or (CHEAP if quick else (*CHEAP, *RECURSIONS))
    peers = given.peers or (QUICK if quick else CONTESTANTS)
    lanes_asked = sorted(given.lanes or (QUICK_LANES if quick else LANES))  # fewer first, to know who would take long
    groups = {EIGHT: CHEAP, RECURSIVE: RECURSIONS}
    tables: dict[str, dict[int, dict[str, Cell]]] = {title: {lanes: {} for lanes in lanes_asked} for title in groups}
    found = Found("", tables, {})
    files = [path for path in (given.json, pages.FILE if given.page else None) if path]
    with Crew(dict.fromkeys((OURS, *peers))) as crew:
        for lanes in lanes_asked:
            for title, group in groups.items():
                table = tables[title][lanes]
                for task in (task for task in group if task in tasks):
                    if not table:
                        print(f"\n{heading(lanes)}, {title}: ms/CPU ms [first call, s]")
                    table[task] = crew.measured(
                        task, lanes, repeats=given.repeats, limit=given.limit, budget=given.budget
                    )
                    print(line(task, table[task]), flush=True)
                print("".join(f"{'':>14}  {each}\n" for each in summary(table)), end="", flush=True)
            found = Found(_origin(before), tables, {})
            _write(found, given.markdown, files)  # now, as who stops a long run keeps what there is
    if given.page or given.scaling is not None:
        print("\nscaling")
        native = [task for task in scaling.TASKS if task in tasks]
        scaled = scaling.collected(scaling.measured(native, given.scaling or scaling.LANES, given.repeats))
        found = Found(_origin(before), tables, scaled)
        _write(found, given.markdown, files)
    if given.page:
        pages.draw(found)


def _origin(before: float) -> str:
    """What gave the figures, peers included."""
    peers = [each for environment in (JAX, NUMBA, TENSORFLOW_PROBABILITY) for each in environment.requirements]
    named = ", ".join(each.replace("==", " ") for each in peers if each.partition("==")[0] in PEERS)
    return f"{origin(before)} Peers: {named}; {in_c.version()}."


def _write(found: Found, markdown_path: Path | None, files: list[Path]) -> None:
    if markdown_path:
        write_page(markdown_path, pages.page(found))
    for path in files:
        write_json(path, found)


if __name__ == "__main__":
    main()
