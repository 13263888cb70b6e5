"""How fast are networks over trees and sentences? pcbatch beside DyNet and beside batches made by hand.

    python -m benchmarks.trees [--networks "small trees" ..] [--examples 1 16 64 256] [--peers "DyNet, agenda" ..]
                               [--repeats 5] [--page docs/figures/trees.md] [--json out/trees.json]

Networks: a binary TreeLSTM of 128 on trees of 2 to 15 and of 2 to 100 leaves, a BiLSTM tagger of 256 on sentences of 1
to 64 tokens and one of 64 on those of Wikigold, a child-sum TreeLSTM of 128 on dependency trees (these two from
PCBATCH_DATA). Figures are thousands of leaves or tokens per CPU second of one thread, of whole calls: from trees as
arrays to results as arrays, so that DyNet builds its graph and the batches by hand their schedule in each. All give the
same results, or this fails. DyNet gets a Python environment of its own in the user's cache, if there is a python3.8;
else the reason stands in place of its figures.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import arguments, load, origin, write_json, write_page
from benchmarks.trees.crew import CONTESTANTS, Cell, Crew
from benchmarks.trees.networks import NETWORKS, data
from benchmarks.trees.report import STYLES, Found, failures, line, page, picture

EXAMPLES = (1, 16, 64, 256)


def main() -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.set_defaults(repeats=5)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="network")
    parser.add_argument("--examples", nargs="+", type=int, default=EXAMPLES)
    parser.add_argument("--peers", nargs="+", choices=CONTESTANTS, metavar="contestant", help=", ".join(CONTESTANTS))
    parser.add_argument("--page", type=Path, help="where to write the page, and its picture beside it")
    given = parser.parse_args()
    before = load()
    found: Found = {}
    with Crew(dict.fromkeys(("pcbatch", *(given.peers or CONTESTANTS)))) as crew:
        for network in given.networks:
            if NETWORKS[network].data and not data(NETWORKS[network].data).is_file():
                print(f"{network}: left out, as PCBATCH_DATA has no {NETWORKS[network].data}")
                continue
            cells: dict[int, Cell] = {}
            for examples in given.examples:
                cells[examples] = crew.measured(network, examples, repeats=given.repeats)
                print(line(network, examples, cells[examples]), flush=True)
            found[network] = cells
    print("\n".join(failures(found)))
    if given.page:
        path = given.page.with_suffix(".png")
        picture(path, found, STYLES)
        write_page(given.page, page(found, path.name, origin(before)))
    if given.json:
        plain = {
            network: {examples: {who: asdict(each) for who, each in cell.items()} for examples, cell in cells.items()}
            for network, cells in found.items()
        }
        write_json(given.json, plain)


if __name__ == "__main__":
    main()
