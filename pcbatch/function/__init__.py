"""The result of `autobatch`: the object, its arguments, and how it is linked, compiled, kept and run."""
