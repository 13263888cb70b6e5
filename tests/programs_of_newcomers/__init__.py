"""Programs that were written from the pages of the documentation alone, and committed before any of them was run.

Each module has them in `PROGRAMS`, by name, each with its arguments for four lanes. `test_programs_of_newcomers.py`
runs them, against the undecorated functions.

At the first try 38 of the 46 were right: `lz78`, `morse` (a dict's key that is a tuple of a lane's), `merge_sort`
(`dtype=xs.dtype`), `inventory` (the sum of a list that nothing has been put into so far), `topological_order` (a
generator handed to `deque`) and `quadtree` were refused, `huffman` crashed, and `elevators` was wrong (`is` of an
IntEnum).
"""
