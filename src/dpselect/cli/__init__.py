"""The command line: parse, call, print."""

from dpselect.cli.app import main

__all__ = ["main"]
