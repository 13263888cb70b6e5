"""From nothing to a least effective size, warm-up and compiling included: `python -m benchmarks.nuts.end_to_end`."""
