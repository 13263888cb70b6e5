"""The sampler's kernel, written for one chain."""
