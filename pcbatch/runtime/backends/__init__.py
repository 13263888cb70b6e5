"""Array-library backends behind one small protocol."""
