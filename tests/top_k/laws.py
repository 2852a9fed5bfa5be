"""The probability of every answer of a top-k, by brute force, from a method, the mechanism that draws, and counts.

Nothing here is shared with what draws, but the probabilities of single selections (`pmf`). A method states only public
numbers: k, whether the answer is ordered, and whether the candidates that are left out are chosen instead.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

from dpselect import PermuteAndFlip
from dpselect.mechanisms.base import MechanismBase
from dpselect.questions.methods import Margin, Method, NoisyCounts, OneShot, Peel, Set
from tests.reference import Law, exponential_orders, laplace_orders, peeled_orders
from tests.top_k.exact import margin, total


def law_of(method: Method, mechanism: MechanismBase, counts: Sequence[int]) -> Law:
    """The probability of every answer: positions in order, or ascending if the answer is not ordered."""
    if isinstance(method, (Set, Margin)):
        sizes = method.sizes if isinstance(method, Margin) else (method.k, method.k)
        score = margin if isinstance(method, Margin) else total
        answers = [own for k in range(sizes[0], sizes[1] + 1) for own in combinations(range(len(counts)), k)]
        found = mechanism.pmf([score(tuple(counts), own) for own in answers])
        return dict(zip(answers, found.tolist(), strict=True))
    if isinstance(method, NoisyCounts):
        return _as_answers(laplace_orders(counts, float(mechanism.rate), method.k), method)
    assert isinstance(method, (OneShot, Peel))
    leaves_out = not method.ordered and 2 * method.k > method.candidates
    scores = [-count for count in counts] if leaves_out else list(counts)
    size = len(counts) - method.k if leaves_out else method.k
    orders = peeled_orders(scores, mechanism, size) if isinstance(method, Peel) else _one_shot(scores, mechanism, size)
    if leaves_out:
        everyone = set(range(len(counts)))
        return _sums(orders, lambda out: tuple(sorted(everyone.difference(out))))
    return _as_answers(orders, method)


def _as_answers(orders: Law, method: Method) -> Law:
    return orders if method.ordered else _sums(orders, lambda order: tuple(sorted(order)))


def _sums(orders: Law, answer: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Law:
    found: Law = {}
    for order, probability in orders.items():
        found[answer(order)] = found.get(answer(order), 0.0) + probability
    return found


def _one_shot(scores: Sequence[int], mechanism: MechanismBase, k: int) -> Law:
    assert isinstance(mechanism, PermuteAndFlip)
    return exponential_orders(scores, float(mechanism.rate), k)
