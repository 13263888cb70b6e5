"""Training steps of the same networks in different systems, each in a process of its own."""
