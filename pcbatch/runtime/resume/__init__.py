"""Runs in slices, saved and gone on with."""
