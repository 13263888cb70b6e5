"""From an optimised program to the Python that runs."""
