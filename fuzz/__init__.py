"""What `make fuzz` runs: random bytes into the readers of files and the command line."""
