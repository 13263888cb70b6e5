"""The intermediate representation: data types, printer, parser, verifier, interpreter, dataflow."""
