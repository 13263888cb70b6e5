"""Figures: one file per question, all on `benchmarks.harness`. Run as `python -m benchmarks.NAME`."""
