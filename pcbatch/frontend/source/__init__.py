"""The user's source: captured, its names, its hints."""
