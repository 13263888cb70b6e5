"""Analyses of a program: call graph, dataflow, scopes, costs of statements."""
