"""Passes over machine programs: what blocks need not compute, keep or look at."""
