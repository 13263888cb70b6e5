"""Results of sampling."""
