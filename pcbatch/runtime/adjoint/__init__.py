"""Reverse mode: a run is recorded and undone in reverse order."""
