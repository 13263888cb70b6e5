"""The world of a file that is not imported, as far as its text says."""
