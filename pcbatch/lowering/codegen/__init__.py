"""The generation of Python from an optimised program."""
