"""The passes, each a pure function from program to program, one to a file; their order is in `pipeline.py`."""
