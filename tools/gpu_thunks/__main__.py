"""`python -m tools.gpu_thunks`: count what programs do on a GPU, without one.

    python -m tools.gpu_thunks [--program NAME ..] [--flags default "device loops"] [--turns 1] [--dearest 10]
        [--keep FOLDER] [--page]

It prints, for each of the machine's loops in each program, what is executed in a trip, with `--dearest` also the
kernels and copies that move most. With `--page` it writes the table of docs/gpu.md and docs/figures/gpu_thunks.json.
`--flags` may also be flags of XLA's, which begin with `--xla`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.gpu_thunks.compiled import FLAGS, PLUGIN, counted, is_installed
from tools.gpu_thunks.page import PAGE, Figures, dearest, drawn, rows, table, write
from tools.gpu_thunks.titles import TITLES


def main() -> None:
    """Count, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--flags", nargs="+", default=list(FLAGS), help="names of flags, or flags of XLA's")
    parser.add_argument("--turns", type=int, default=1, help="of loops in a trip whose turns nobody knows")
    parser.add_argument("--dearest", type=int, default=0, help="number of kernels and copies that move most")
    parser.add_argument("--keep", type=Path, help="a folder for what XLA dumps")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name} and the figures beside it")
    options = parser.parse_args()
    if not is_installed():
        parser.error(f"there is no {PLUGIN}: pip install 'pcbatch[gpu-compiler]'")
    figures: Figures = {}
    every = {flags: FLAGS.get(flags, flags.split()) for flags in options.flags}
    for name in options.program:
        for flags, found in counted(name, every, options.turns, options.keep).items():
            key = f"{name}: {flags}"
            figures[key] = rows(found)
            print(table({key: figures[key]}), flush=True)
            if options.dearest:
                print(dearest(found, options.dearest), flush=True)
    if options.page:
        write(figures)
        PAGE.write_text(drawn(PAGE.read_text("utf-8"), figures), encoding="utf-8")


if __name__ == "__main__":
    main()
