"""Compiled programs on disk, for the next process: `opening` is where it begins. Knows no array library."""
