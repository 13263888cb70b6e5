"""The figures of four papers, measured anew; each command writes a page and pictures into `docs/figures/`.

Of Radul et al., "Automatically Batching Control-Intensive Programs for Modern Accelerators", MLSys 2020: `stacks`
(figures 1 and 3), `throughput` and `utilization` (6 and 7). Of DyNet's paper `dynet`, of pfor's `pfor`, of Fold's
`fold`, which share `curves`. `docs/figures/papers.md` lists all.
"""
