"""The tests of pcbatch: a corpus of small programs in every mode, generated programs, goldens and properties."""
