"""The batching paper's figures 1 and 3: all lanes' stacks in the middle of a run, under local batching and by counters.

    python -m benchmarks.figures.stacks [--folder docs/figures]

Draws the pictures of `examples/stacks.py`, by `run.plot_stacks`. Nothing is timed. Writes stacks.md, stacks_local.png
and stacks_pc.png.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.figures import curves, pages, paper

NAME = "stacks"


def page(numbers: str, step: int) -> list[str]:
    """The parts of the page."""
    return [
        "# Program counters and stacks",
        pages.paragraph(
            f"`python -m benchmarks.figures.{NAME}` writes this page: figures 1 and 3 of {paper.PAPER}. Four lanes "
            f"compute Fibonacci numbers, `fibonacci({numbers})`, and stand here after {step} steps. "
            "[`examples/stacks.py`](../../examples/stacks.py) draws them by `run.plot_stacks`. Entries of a stack lie "
            "one above another, the top above all. Lanes whose program counters have one colour wait at the same block."
        ),
        "## Local batching (figure 1)",
        pages.paragraph(
            "Calls lie on the host's stack, as frames: a star marks the lanes that made a call together. Only lanes of "
            "the frame on top run. The others wait until it has returned, though some wait at the same block."
        ),
        f"![Frames, program counters and stacks under local batching]({NAME}_local.png)",
        "## By program counters (figure 3)",
        pages.paragraph(
            "Each lane has a stack of program counters and one for each variable that lives through a call. Lanes at "
            "different depths wait at the same block, which runs for all of them."
        ),
        f"![Program counters and stacks by program counters]({NAME}_pc.png)",
    ]


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=pages.FOLDER, help="of the page and the pictures")
    parser.add_argument("--small", action="store_true", help="changes nothing: it takes seconds")
    options = parser.parse_args()
    example = curves.example("stacks")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        example.main(Path(folder))
        for name in ("local", "pc"):
            (options.folder / f"{NAME}_{name}.png").write_bytes((Path(folder) / f"{name}.png").read_bytes())
    pages.write(NAME, page(str(example.NUMBERS.numpy().tolist()), example.STEP), options.folder)


if __name__ == "__main__":
    main()
