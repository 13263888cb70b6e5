"""How fast are networks over trees and sentences trained? pcbatch beside DyNet, JAX and gradients made by hand.

    python -m benchmarks.training [--networks "small trees" ..] [--examples 1 16 64 256] [--peers "DyNet, agenda" ..]
                                  [--lengths 50 100 200 400 800] [--repeats 5] [--cores 2]
                                  [--page docs/figures/training.md] [--json out/training.json]

Networks: a binary TreeLSTM of 128 on trees of 2 to 15 and of 2 to 100 leaves, an LSTM of 128 to 256 on sentences of 1
to 99 tokens, a BiLSTM tagger of 256 on sentences of 1 to 64. Figures are thousands of leaves or tokens per CPU second
of one thread, of whole training steps: results, loss, gradients of all weights, which are the same in all, or this
fails. Then what a step takes beside inference, and the memory of a step by length. With more `--cores` seconds are
those of the clock, and DyNet stays on one. DyNet and JAX get Python environments of their own in the user's cache;
DyNet wants a python3.8, else the reason stands in place of its figures.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import arguments, load, origin, write_json, write_page
from benchmarks.training.crew import CONTESTANTS, POLICIES, Cell, Crew
from benchmarks.training.report import PICTURED, STYLES, Found, line, page
from benchmarks.trees.networks import LSTM, TRAINED
from benchmarks.trees.report import failures, picture

EXAMPLES = (1, 16, 64, 256)
LENGTHS = (50, 100, 200, 400, 800)
SENTENCES = 64
"""How many sentences memory is measured on."""


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--networks", nargs="+", choices=TRAINED, default=list(TRAINED), metavar="network")
    parser.add_argument("--examples", nargs="+", type=int, default=EXAMPLES)
    parser.add_argument("--peers", nargs="+", choices=CONTESTANTS, metavar="contestant", help=", ".join(CONTESTANTS))
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS, help="of sentences, for memory")
    parser.add_argument("--cores", type=int, default=1, help="of each contestant")
    parser.add_argument("--page", type=Path, help="where to write the page, and its picture beside it")
    given = parser.parse_args()
    before, lengths = load(), sorted(given.lengths)
    found: Found = {}
    with Crew(("pcbatch", *(given.peers or CONTESTANTS)), given.cores) as crew:
        for network in given.networks:
            cells: dict[int, Cell] = {}
            for examples in given.examples:
                cells[examples] = crew.measured(network, examples, repeats=given.repeats)
                print(line(network, examples, cells[examples]), flush=True)
            found[network] = cells
    memory: dict[str, list[int]] = {}
    if lengths:
        with Crew({*POLICIES} & {"pcbatch", *(given.peers or CONTESTANTS)}) as crew:
            memory = crew.memory(LSTM.name, SENTENCES, lengths)
    for name, sizes in memory.items():
        shown = (f"{length} tokens {size / 2**20:.0f} MB" for length, size in zip(lengths, sizes, strict=True))
        print(f"memory of a step on {SENTENCES} sentences, {name}: {', '.join(shown)}")
    print("\n".join(failures(found)))
    if given.page:
        picture(given.page.with_name(PICTURED), found, STYLES)
        write_page(given.page, page(found, memory, lengths, SENTENCES, origin(before), given.cores))
    if given.json:
        plain = {
            network: {examples: {who: asdict(each) for who, each in cell.items()} for examples, cell in cells.items()}
            for network, cells in found.items()
        }
        write_json(given.json, {"steps": plain, "memory": {"lengths": lengths, **memory}})


if __name__ == "__main__":
    main()
