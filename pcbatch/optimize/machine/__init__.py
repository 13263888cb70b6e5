"""Passes over machine programs: they remove computations, storage and checks from blocks."""
