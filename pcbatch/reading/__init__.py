"""Reading Python: a function interpreted once over abstract values, which carry their types; a typed program falls out.

`values` and `state` are what is known while a function is read, `emitter` the program that is made, `reader` and its
parts Python's statements and expressions, `reading` what all of it gives.
"""
