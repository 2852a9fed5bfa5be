"""McKenna & Sheldon (2020), reproduced: every figure and every number, beside what the paper prints.

`dpselect paper --out DIR` is the way in; from Python it is `dpselect.research.paper.reproduce.reproduce`.
"""
