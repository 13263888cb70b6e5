"""Reading Python: a function interpreted once over abstract values, which carry their types; a typed program falls out.

`values` and `state` are what is known while a function is read, `emitter` the program that is made. `statements`, and
the classes beneath it, interpret Python's statements and expressions; `reading` is what all of it gives. `untyped`
reads programs without types, `static` knows the names of a file that is not imported.
"""
