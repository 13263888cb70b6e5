"""The documentation site: what is made of `docs/` when MkDocs builds it."""
