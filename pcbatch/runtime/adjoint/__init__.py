"""Reverse mode: a run writes down what it did, and that is undone in reverse order."""
