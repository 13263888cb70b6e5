"""Lowering: type and shape inference, calls to stacks, and emission of the Python that runs."""
