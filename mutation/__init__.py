"""What `make mutants` runs: change one place of the code at a time, and see whether a test notices."""
