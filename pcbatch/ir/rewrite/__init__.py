"""Helpers with which passes rebuild programs."""
