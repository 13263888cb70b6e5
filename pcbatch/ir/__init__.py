"""The intermediate representation: data types, printers, verifiers, analyses, rewrites."""
