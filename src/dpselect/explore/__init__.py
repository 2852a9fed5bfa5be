"""The explorer: a local web page for choosing epsilon by eye. Needs `pip install 'dpselect[explore]'`.

Use public, synthetic or your own scores: anyone who sees the page sees the scores. Nothing here releases an answer.
"""
