"""Passes over control flow."""
