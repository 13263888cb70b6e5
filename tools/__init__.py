"""Writers of generated pages of the documentation."""
