"""Passes over stacks."""
