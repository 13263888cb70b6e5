"""Measurements of programs on a GPU, in five minutes: right results first, then times of each form."""
