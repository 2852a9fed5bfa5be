"""What `make fuzz` and `make sanitize` run: random bytes for the readers and the command line, random kernel calls."""
