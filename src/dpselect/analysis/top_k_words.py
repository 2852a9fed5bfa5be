"""The methods of `dpselect.top_k` in plain English: what their errors mean, and why "auto" takes one of them."""

from dpselect._numbers import shown
from dpselect.top_k import Margin, Method, NoisyCounts, OneShot, Peel, Set


def meaning(method: Method, average: str, usual: str, rare: str) -> str:
    """What the bounds of `top_k_bounds` mean, for all methods but one selection after another."""
    if method.is_free:
        return f"All {method.k:,} candidates are chosen, so the answer has no error."
    return f"{_on_average(method, average)} {_in_most_cases(method, usual, rare)}"


def _on_average(method: Method, average: str) -> str:
    if isinstance(method, Margin) and method.sizes[0] < method.sizes[1]:
        return (
            f"On average, the mean count of the chosen values is at most {average} people below that of the same number"
            " of most common ones."
        )
    return (
        f"On average, the mean count of the {method.k:,} chosen values is at most {average} people below that of the"
        f" {method.k:,} most common ones."
    )


def _in_most_cases(method: Method, usual: str, rare: str) -> str:
    if isinstance(method, (Set, Peel)):
        return f"In 95 of 100 cases the difference is less than {usual}, in 99 of 100 less than {rare}."
    if method.ordered:
        return (
            f"In 95 of 100 cases, each i-th value has less than {usual} fewer people than the i-th most common one, for"
            f" all i together; in 99 of 100, less than {rare}."
        )
    return (
        f"In 95 of 100 cases, every value that is left out has less than {usual} people more than any chosen one; in 99"
        f" of 100, less than {rare}."
    )


def remark(method: Method, within_95: float) -> str:
    """When the margin finds the true top k; nothing for other methods."""
    if not isinstance(method, Margin) or method.sizes[0] < method.sizes[1]:
        return ""
    return (
        f"If the k-th most common value leads the next one by {shown(within_95 / 2)} people or more, the {method.k:,}"
        " most common ones are chosen in 95 of 100 cases."
    )


def taken_for(method: Method, concentrated: bool, asked: str) -> str:
    """Which method answers, and why.

    >>> taken_for(Peel(1, 1000), concentrated=False, asked="auto")
    'The method is peel, because one candidate is chosen, so one selection is enough.'
    """
    if asked == method.name:
        return f"The method is {method.name}, as asked."
    if asked == OneShot.name:
        return f"The method is {method.name}: with this mechanism, one shot has the law of one selection after another."
    return f"The method is {method.name}, because {_reason(method, concentrated)}."


def _reason(method: Method, concentrated: bool) -> str:
    """Why `automatic` takes this method."""
    if method.is_free:
        return "all candidates are chosen, so nothing need be drawn or charged"
    if isinstance(method, Margin):
        return "a person changes the margin of a set by at most one, however many candidates they count for"
    if isinstance(method, OneShot):
        return _reason_for_one_shot(method)
    if isinstance(method, Peel):
        return _reason_for_peeling(method)
    currency = "in zCDP " if concentrated else ""
    if isinstance(method, NoisyCounts):
        return f"{_limit(method)}, so {currency}noise on all counts, which also pays for an order, may be the smallest"
    return f"{_limit(method)}, so {currency}one choice of a whole set needs less noise than {method.fewer:,} selections"


def _reason_for_peeling(method: Peel) -> str:
    if method.rounds == 1:
        return f"one candidate is {'chosen' if method.k == 1 else 'left out'}, so one selection is enough"
    return f"{_limit(method)}, and in zCDP {method.rounds:,} selections need less noise than the other methods"


def _reason_for_one_shot(method: Method) -> str:
    if method.ordered:
        return (
            f"{_limit(method)}, and for an answer in order, noise that is added to each count once has no larger bounds"
            f" than {method.k:,} selections"
        )
    return (
        f"{_limit(method)}, so a set needs as much noise, and for so few candidates noise that is added to each count"
        " once was better on public data"
    )


def _limit(method: Method) -> str:
    if method.max_values is None:
        return "a person may count for any number of candidates"
    return f"a person counts for at most {'one candidate' if method.values == 1 else f'{method.values:,} candidates'}"
