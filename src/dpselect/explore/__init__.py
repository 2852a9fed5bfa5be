"""The explorer: a local web page on which an epsilon is chosen by looking. Needs `pip install 'dpselect[explore]'`.

For public, synthetic or the owner's own scores: whoever sees the page sees the scores. Nothing here releases an answer.
"""
