"""What user code reads while a program is traced, and whether it is still the same at the next call.

A helper, a method, a property or a callable object of the user's runs while a piece is traced, and what it reads then
is part of the program. The reads of all user code that really runs are followed (by events of Python's, before 3.12 by
a trace function, only while something is traced), `stored` looks values up without running code, `record` keeps them in
flat lists and compares.

A static walk over the code, the other way, would see neither which object a loop, a property or TensorFlow hands to a
method, nor which of two arms is taken; it would record too little for the first and compile too often for the second.
To follow adds about a half to the time in which types are inferred, a tenth to the whole first call without
XLA and less with it, and nothing where a program reaches no code of the user's. To compare at a call costs 3 us without
values, 6 with 10 and 17 with 100, beside 1.2 ms of the call itself.
"""

from pcbatch.lowering.captures.reads.record import Record
from pcbatch.lowering.captures.reads.watching import watching

__all__ = ["Record", "watching"]
