"""A reproduction of McKenna & Sheldon (2020): every figure and every number, next to those in the paper.

Run `dpselect paper --out DIR`, or call `dpselect.research.paper.reproduce.reproduce` from Python.
"""
