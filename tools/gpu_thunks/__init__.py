"""The work of programs on a GPU, counted without one: XLA compiles them for it, and the parts it made are counted."""
