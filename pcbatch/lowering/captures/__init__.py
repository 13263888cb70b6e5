"""The values that a program captures from around it."""
