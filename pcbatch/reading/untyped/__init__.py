"""The reading of programs without types: the same interpreter, for which all of a lane's values are unknown."""
