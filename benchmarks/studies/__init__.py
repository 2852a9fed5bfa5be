"""Compare the mechanisms inside larger ones, and the methods for the top k: `python -m benchmarks.studies --out DIR`.

The page docs/larger.md shows and explains the results.
"""
