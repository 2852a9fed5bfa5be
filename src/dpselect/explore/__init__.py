"""The explorer: a local web page for choosing epsilon by eye. It needs starlette and uvicorn.

Use public, synthetic or your own scores: anyone who sees the page sees the scores. Nothing here releases an answer.
"""
