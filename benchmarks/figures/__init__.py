"""The batching paper's figures of the sampler, measured anew: the commands `throughput` and `utilization`.

Radul, Patton, Maclaurin, Hoffman, Saurous, "Automatically Batching Control-Intensive Programs for Modern Accelerators",
MLSys 2020, figures 6 and 7. Each command writes a page and a picture into `docs/figures/`.
"""
