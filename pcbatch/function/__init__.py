"""What `autobatch` returns: the object, its arguments, how it is linked, compiled, kept and run."""
