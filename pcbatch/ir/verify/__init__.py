"""The rules of the IR."""
