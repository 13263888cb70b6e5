"""From checked sources to a "cfg" program: statements into basic blocks, names, element stores."""
