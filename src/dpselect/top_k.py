"""The k candidates that most people have, from counts of your own, by one of five methods (`questions.methods`)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpselect import _validate
from dpselect._scores import as_vector, copied
from dpselect._types import Number
from dpselect.accounting.budget import AUTO, Price
from dpselect.accounting.charge import What
from dpselect.errors import InvalidValue
from dpselect.mechanisms.base import checked_labels, counted_question
from dpselect.mechanisms.privacy import Guarantee
from dpselect.questions.methods import Method, method_for
from dpselect.release import Answer, Payer, Release, repr_digest, scores_digest


def select_top_k(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = AUTO,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    mechanism: str = AUTO,
) -> list[int]:
    """Return the positions of k candidates with large counts of people, privately.

    The selection is not recorded anywhere. Use `release_top_k` to charge a ledger first.

    Args:
        scores: the number of people per candidate: a list, NumPy array, pandas or polars Series or Arrow array.
            Adding a person raises each of them by at most one and lowers none. Secret.
        k: how many candidates to return. With method "margin" also a pair of the smallest and the largest number, of
            which the method finds the one with a clear cut.
        epsilon: the privacy loss of the whole answer: a number, or a string such as "0.1", which is taken exactly.
        rho: the privacy loss in zCDP; give either epsilon or rho.
        method: "auto", or "set" (needs max_values), "margin", "one-shot", "peel" or "noisy-counts" (needs max_values).
            docs/top-k.md says which one is taken, and what to expect from each.
        max_values: for how many candidates one person counts at most. You must have made sure of that before you
            counted; `open_table` does it for you.
        ordered: whether to return them in order, best first, which costs accuracy. The methods "one-shot", "peel" and
            "noisy-counts" always do so if they are asked for by name.
        monotonic: True if a person may be added or removed, and False if a person may be replaced by another one.
        mechanism: "auto", "permute-and-flip" or "exponential".

    Returns:
        The positions. If they are not in order, they are listed as the candidates are: never by count. If k is the
        number of candidates, all of them, whatever their scores.

    Raises:
        InvalidType: an argument has the wrong type, or the scores cannot be read.
        InvalidValue: an argument is out of range, `max_values` is missing, `ordered` is asked of a set, or scores are
            not counts for the margin.

    >>> select_top_k([3, 500, 2, 400, 300], 3, epsilon=1, max_values=1)
    [1, 3, 4]
    >>> select_top_k([3, 500, 2, 400, 300], 3, epsilon=1, max_values=1, ordered=True)
    [1, 3, 4]
    """
    vector = copied(as_vector(scores))
    price = Price(epsilon, rho, mechanism)
    drawing = method_for(k, len(vector), method=method, max_values=max_values, ordered=ordered, price=price)
    drawing.check_scores(vector)
    draw = drawing.draw(price, None, 1, _validate.boolean(monotonic=monotonic))
    return drawing.chosen(draw.mechanism, vector)


def release_top_k(  # noqa: PLR0913 - one parameter for each public choice
    scores: Any,
    k: int | tuple[int, int],
    labels: Sequence[Any] | None = None,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    method: str = AUTO,
    max_values: int | None = None,
    ordered: bool = False,
    monotonic: bool = True,
    mechanism: str = AUTO,
    ledger: Payer | None = None,
    what: What = "top_k",
    request_id: str | None = None,
) -> Answer:
    """Charge a ledger, choose k candidates with large counts of people privately, and return them as an answer.

    Args:
        scores: the number of people per candidate, as for `select_top_k`. Secret.
        k: how many candidates to return. For other parameters, see `select_top_k`.
        labels: the public names of the candidates, one for each score. The answer's value then has labels instead of
            positions.
        mechanism: "auto" (by the budget of the ledger), "permute-and-flip" or "exponential".
        ledger: the `Ledger` that is charged before anything is drawn. With None, nothing is recorded.
        what: the question for the ledger: a string or a mapping of public parameters. Never put a score here.
        request_id: makes a retry safe. It needs a ledger.

    Returns:
        The answer. Its value is a list of labels or positions. If k is the number of candidates, it cost nothing.

    Raises:
        InvalidValue, InvalidType: an argument is invalid; nothing was charged.
        BudgetExceeded: the budget is too small; nothing was drawn.
        RequestConflict: the request id was used for another question, or for other scores or labels.
        RequestUnanswered: the request was charged before, but its answer was not stored.
        LedgerError: the ledger cannot be used; nothing was drawn.

    >>> drinks = ["tea", "coffee", "water", "milk"]
    >>> release_top_k([700, 900, 20, 10], 2, drinks, epsilon="0.1", max_values=1).value
    ['tea', 'coffee']
    """
    vector = copied(as_vector(scores))  # the same scores are checked, digested and drawn from
    price = Price(epsilon, rho, mechanism)
    names = None if labels is None else checked_labels(labels, len(vector))
    budget = getattr(ledger, "budget", None)
    drawing = method_for(
        k, len(vector), method=method, max_values=max_values, ordered=ordered, price=price, budget=budget
    )
    drawing.check_scores(vector)
    draw = drawing.draw(price, budget, 1, _validate.boolean(monotonic=monotonic))
    asked = _asked(what, drawing, len(vector))
    if drawing.is_free:
        return free_answer(list(range(len(vector))) if names is None else names, ledger, request_id)
    answer = Release(asked, draw.part, draw.count, price.rho).draw(
        lambda: drawing.chosen(draw.mechanism, vector),
        ledger=ledger,
        request_id=request_id,
        content=lambda: f"{scores_digest(vector)} {repr_digest(names)}",
    )
    return answer if names is None else replace(answer, value=[names[position] for position in answer.value])


def free_answer(value: Any, ledger: Payer | None, request_id: str | None) -> Answer:
    """The answer that all candidates are chosen. It costs nothing, so a request is not stored."""
    if request_id is not None and ledger is None:
        raise InvalidValue("request_id needs a ledger that stores it: give the ledger too")
    return Answer(value, "none", Guarantee(Fraction(0), 0.0), Fraction(0))


def _asked(what: What, drawing: Method, count: int) -> Any:
    # A user's mapping may repeat the public parameters, but not deny them.
    asked = {"question": what} if isinstance(what, str) else what
    if not isinstance(asked, Mapping):
        return asked  # type: ignore[unreachable] # a caller's mistake, which the charge refuses
    parameters = drawing.parameters()
    for name, value in parameters.items():
        if asked.get(name, value) != value:
            raise InvalidValue(f"what must not state another {name}: this question has {value}")
    counted: Any = counted_question(asked, count)
    return {**parameters, **counted}
