"""The sampler beside other vectorised No-U-Turn samplers, in one run: `python -m benchmarks.nuts`."""
