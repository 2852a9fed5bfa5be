"""What every selection mechanism offers, and the one way from scores to a selection.

A mechanism knows everything about itself: its `name` and `title`, how it selects, its probabilities, its privacy `loss`
and its `worst` errors. Public parameters are fields; scores are arguments. To add a mechanism, derive a class from
`MechanismBase`, give it these four facts, and define `_choose`, `_choose_rows` and `_probabilities`.
"""

import re
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpselect import _validate
from dpselect._numbers import shortest_text
from dpselect._scores import as_rows, as_vector, copied
from dpselect._types import Floats, Number, Selections
from dpselect.errors import InvalidType, InvalidValue, NotConverged
from dpselect.mechanisms.laws import WorstErrors
from dpselect.mechanisms.parameters import Claim, stated
from dpselect.mechanisms.privacy import PURE_LOSS, Guarantee, PrivacyLoss
from dpselect.selection.draws import Draws
from dpselect.selection.gaps import SHORT, Gaps, Rate, RowGaps, exponents_of, gaps_of

if TYPE_CHECKING:  # releases and charges take as long to import as all mechanisms
    from dpselect.accounting.charge import What
    from dpselect.release import Answer, Payer


@runtime_checkable
class Mechanism(Protocol):
    """A differentially private selection mechanism."""

    @property
    def epsilon(self) -> Fraction:
        """The exact privacy parameter."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """The largest change of any single score when one person changes."""
        ...

    @property
    def monotonic(self) -> bool:
        """Whether one person moves all scores in the same direction."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What one selection guarantees."""
        ...

    def select(self, scores: Any) -> int:
        """Return the index of the selected candidate."""
        ...

    def select_rows(self, scores: Any) -> npt.NDArray[np.int64]:
        """Return an independent selection for each row."""
        ...

    def pmf(self, scores: Any) -> npt.NDArray[np.float64]:
        """Return the probability of selecting each candidate."""
        ...

    def simulate(self, scores: Any, draws: int, seed: int | None = None) -> npt.NDArray[np.int64]:
        """Return many simulated selections in floats, for research only."""
        ...


# The mechanisms by name, in the order of definition, which is the order of display.
MECHANISMS: dict[str, type["MechanismBase"]] = {}


# "auto" lets the budget choose; the others are releases of which only the pure epsilon, or only rho, is known.
_RESERVED = ("auto", "exponential-found", "one-shot", "partition-selection", "pure", "zcdp")


def is_mechanism_name(name: Any) -> bool:
    """Whether a mechanism may have this name. Those of releases whose mechanism is not known are reserved."""
    return isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9-]*", name) is not None and name not in _RESERVED


def name_of(mechanism: Any) -> str:
    """The name of a mechanism. A subclass has none, because it may draw in another way."""
    name = getattr(mechanism, "name", None)
    if not isinstance(name, str) or MECHANISMS.get(name) is not type(mechanism):
        raise InvalidType(f"mechanism must be one of dpselect's, got {type(mechanism).__name__}: give a PermuteAndFlip")
    return name


_CHUNK = 256 * 1024
# Nothing forces the computed probabilities to sum to one, so their sum checks all of them.
_SUM_TOLERANCE = 1e-12


@dataclass(frozen=True, init=False, repr=False)
class MechanismBase(ABC):
    """A mechanism that selects by the gaps between the scores and the best one, and its exact public parameters."""

    # Two mechanisms are equal if they state the same. A score range of two draws like a sensitivity of one, but is a
    # different statement about the data. A class with a `name` is a mechanism: ledgers, accountants, plans and the
    # command line find it by that name. The facts below are all that other files ask about it.

    name: ClassVar[str]  # ledgers keep it for years, so its meaning never changes
    title: ClassVar[str]  # for readers of tables and figures
    loss: ClassVar[PrivacyLoss] = PURE_LOSS  # how its privacy composes
    worst: ClassVar[WorstErrors]  # the largest errors over all scores
    # A candidate whose exponent is larger by t than that of another one wins with probability at most this times
    # exp(-t). None if it is not known: then the mechanism cannot choose among values that nobody listed.
    far_below: ClassVar[Fraction | None] = None
    # Whether the choice, given that it is one of some candidates, is that of the mechanism among these alone (Luce).
    is_luce: ClassVar[bool] = False
    # Permute-and-flip is the exponential mechanism that waits (theorem 11 of docs/theory.md).
    waits: ClassVar[bool] = False
    # What it offers beyond `select`. Questions about tables need runs, and use the other two where they exist.
    has_runs: ClassVar[bool] = False  # `select_runs`
    has_steady: ClassVar[bool] = False  # `select(..., steady=True)`
    has_summary: ClassVar[bool] = False  # `summary`
    has_sets: ClassVar[bool] = False  # `select_set`, `select_margin` and `select_bounded`
    has_one_shot: ClassVar[bool] = False  # whether `select_order` is anything but one selection after another

    epsilon: Fraction
    claim: Claim

    def __init_subclass__(cls) -> None:
        # Register the mechanism under its name.
        super().__init_subclass__()
        if "name" not in vars(cls):
            return
        if not is_mechanism_name(cls.name):
            raise InvalidValue(
                f"a mechanism's name must be lower-case letters, digits and hyphens, and none of {', '.join(_RESERVED)}"
            )
        for fact in ("loss", "far_below", "is_luce"):
            if fact not in vars(cls):  # it may draw in another way than its base
                setattr(cls, fact, getattr(MechanismBase, fact))
        known = MECHANISMS.get(cls.name)
        if known is not None and _home(known) != _home(cls):  # a notebook may define a class again
            raise InvalidValue(f"there is already a mechanism named {cls.name!r}: give another name")
        MECHANISMS[cls.name] = cls

    def __init__(
        self,
        epsilon: Number,
        sensitivity: Number | None = None,
        monotonic: bool = False,
        *,
        score_range: Number | None = None,
    ) -> None:
        # Give either `score_range`, or `sensitivity` and `monotonic`. The class describes the arguments.
        object.__setattr__(self, "epsilon", _validate.exact_positive(epsilon=epsilon))
        object.__setattr__(self, "claim", stated(sensitivity, monotonic, score_range))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={shortest_text(self.epsilon)}, {self.claim.code()})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the public parameters only, not the tables that follow from them.
        return _made, (type(self), self.epsilon, self.claim.arguments())

    @property
    def sensitivity(self) -> Fraction:
        """How much one person can change any single score; half of the score range if that was stated."""
        return self.claim.sensitivity

    @property
    def monotonic(self) -> bool:
        """Whether one person moves all scores in the same direction."""
        return self.claim.monotonic

    @property
    def score_range(self) -> Fraction:
        """How much one person can change any difference of two scores."""
        return self.claim.score_range

    @property
    def guarantee(self) -> Guarantee:
        """What one selection guarantees: pure epsilon, and the zCDP of the mechanism's privacy loss."""
        return Guarantee(self.epsilon, self.loss.zcdp(self.epsilon))

    def with_sensitivity(self, sensitivity: Number) -> Self:
        """Return the same mechanism at the same epsilon, for scores of another sensitivity.

        Args:
            sensitivity: the largest change of any single score when one person changes.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip("0.5").with_sensitivity(3)
        PermuteAndFlip(epsilon=0.5, sensitivity=3, monotonic=False)
        """
        return type(self)(self.epsilon, sensitivity, self.monotonic)

    def terms(self) -> dict[str, Any]:
        """Return what a ledger entry states in addition to name and epsilon, in the types of JSON."""
        name_of(self)  # refuses a subclass, which may draw in another way
        return self.claim.to_dict()

    @cached_property
    def _rate(self) -> Rate:
        return Rate(self.claim.rate(self.epsilon))

    @property
    def rate(self) -> Fraction:
        """The factor c of exp(-c (q* - q)): epsilon / score_range."""
        return self._rate.exact

    def select(self, scores: Any, *, steady: bool = False) -> int:
        """Return the index of the selected candidate. See `PermuteAndFlip.select`; `steady` must be False."""
        self._refuse_steady(steady)
        return self._choose(gaps_of(as_vector(scores), self._rate), Draws())

    def select_runs(self, scores: Any, lengths: Any, *, steady: bool = False) -> int:  # noqa: ARG002 - for others
        """Return a position in the vector in which each score is repeated. See `PermuteAndFlip.select_runs`."""
        raise InvalidType(
            f"mechanism must have select_runs, which {type(self).__name__} has not: use PermuteAndFlip or"
            " ExponentialMechanism"
        )

    def release(  # noqa: PLR0913 - one parameter for each public choice
        self,
        scores: Any,
        labels: Sequence[Any] | None = None,
        *,
        ledger: "Payer | None" = None,
        what: "What" = "select",
        request_id: str | None = None,
        rho: Number | None = None,
    ) -> "Answer":
        """Charge a ledger, draw a private selection, and return it as an answer.

        Args:
            scores: one score per candidate, as for `select`. They are secret.
            labels: the public names of the candidates, one for each score. The answer's value is then the label of
                the selected candidate; without labels it is the index.
            ledger: the `Ledger` that is charged before anything is drawn. With None, nothing is recorded.
            what: the question for the ledger: a string or a mapping of public parameters. Never put a score here.
            request_id: makes a retry safe. The same id with the same question, scores and labels returns the stored
                answer and costs nothing. It needs a ledger.
            rho: the rho that a ledger in zCDP is charged, at least that of this mechanism. If omitted, it follows from
                epsilon.

        Raises:
            InvalidValue, InvalidType: an argument is invalid; nothing was charged.
            BudgetExceeded: the budget is too small; nothing was drawn.
            RequestConflict: the request id was used for another question, or for other scores or labels.
            RequestUnanswered: the request was charged before, but its answer was not stored.
            LedgerError: the ledger cannot be used; nothing was drawn.

        >>> import tempfile
        >>> from dpselect import Ledger, PermuteAndFlip
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/survey.ledger", budget="1")
        ...     answer = PermuteAndFlip("0.1").release(
        ...         [3, 10**6], ["tea", "coffee"], ledger=ledger, what="favourite drink"
        ...     )
        ...     answer.value, answer.ledger_id, ledger.remaining
        ('coffee', 1, pure('0.9'))
        """
        from dpselect.release import Release, repr_digest, scores_digest  # noqa: PLC0415 - imported when first used

        vector = copied(as_vector(scores))  # the same scores are checked, digested and drawn from
        gaps_of(vector, self._rate)  # refuses scores that are not finite, before anything is charged
        name_of(self)  # refuses a subclass, which may draw in another way
        names = None if labels is None else checked_labels(labels, len(vector))
        charged = None if rho is None else _validate.exact_positive(rho=rho)
        answer = Release(counted_question(what, len(vector)), self, rho=charged).draw(
            lambda: self.select(vector),
            ledger=ledger,
            request_id=request_id,
            content=lambda: f"{scores_digest(vector)} {repr_digest(names)}",
        )
        return answer if names is None else replace(answer, value=names[answer.value])

    def select_rows(self, scores: Any) -> Selections:
        """Return the index of an independent selection for each row of a matrix. See `PermuteAndFlip.select_rows`."""
        return self._selected_rows(scores, self._choose, self._choose_rows)

    def _selected_rows(
        self,
        scores: Any,
        choose: Callable[[Gaps, Draws], int],
        choose_rows: Callable[[RowGaps, Draws], Selections],
        steady: bool = False,
    ) -> Selections:
        rows, draws = as_rows(scores), Draws()
        if not (isinstance(rows, np.ndarray) and rows.shape[1] <= SHORT and self._rate.is_moderate):
            return np.array([choose(gaps_of(row, self._rate, steady=steady), draws) for row in rows], dtype=np.int64)
        selected = np.empty(len(rows), np.int64)
        step = max(1, _CHUNK // rows.shape[1])
        room = np.empty((2, min(step, len(rows)) * rows.shape[1]))  # used again, so that its pages stay in the cache
        for start in range(0, len(rows), step):
            chunk = RowGaps(rows[start : start + step], self._rate, steady, room)
            selected[start : start + step] = choose_rows(chunk, draws)
        return selected

    def simulate(self, scores: Any, draws: int, seed: int | None = None) -> Selections:
        """Return many independent selections, drawn in floats from a seeded generator.

        For research on public or synthetic scores only. Never release a result of `simulate`: its floats and its
        generator have no privacy guarantee.

        Args:
            scores: one score per candidate.
            draws: the number of selections to draw.
            seed: a non-negative integer that makes the draws repeatable; None for different draws each time.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1).simulate([0, 0, 1000], draws=3, seed=1).tolist()
        [2, 2, 2]
        """
        count = _validate.count(draws=draws)
        generator = np.random.default_rng(None if seed is None else _validate.count(seed=seed))
        probabilities = self.pmf(scores)
        # First how often each candidate is drawn, then the draws in random order: constant time per draw.
        often = generator.multinomial(count, probabilities / probabilities.sum())
        return generator.permutation(np.repeat(np.arange(often.size), often))

    def pmf(self, scores: Any) -> Floats:
        """Return the probability of selecting each candidate, in float64, with a relative error of at most 1e-12.

        The probabilities of private scores are private too: use it on public, synthetic or your own scores.

        Args:
            scores: one score per candidate.

        Raises:
            NotConverged: an integral missed its accuracy.

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(epsilon=1).pmf([2, 0]).round(4)
        array([0.8161, 0.1839])
        """
        probabilities = self._probabilities(exponents_of(copied(as_vector(scores)), self._rate))
        if not abs(float(np.add.reduce(probabilities)) - 1) <= _SUM_TOLERANCE:
            raise NotConverged("the probabilities do not sum to one: please report the shape of these scores")
        return probabilities

    def _refuse_steady(self, steady: Any) -> None:
        if _validate.boolean(steady=steady):
            raise InvalidValue(f"{type(self).__name__} has no steady schedule: use PermuteAndFlip, or leave steady out")

    @abstractmethod
    def _choose(self, gaps: Gaps, draws: Draws) -> int:
        """Select one candidate."""

    @abstractmethod
    def _choose_rows(self, gaps: RowGaps, draws: Draws) -> Selections:
        """Select one candidate in each row."""

    @abstractmethod
    def _probabilities(self, exponents: Floats) -> Floats:
        """The probability of each candidate from its exponent c (q* - q)."""

    def _expected_evaluations(self, exponents: Floats) -> float:  # noqa: ARG002 - for mechanisms that select lazily
        raise InvalidType(f"mechanism must have select_lazily: {type(self).__name__} needs all scores")

    @staticmethod
    def noise(generator: "np.random.Generator", shape: tuple[int, ...]) -> Floats:  # noqa: ARG004 - for those that have it
        """Return noise whose sum with c q is largest at the selection. For simulations in floats only.

        Args:
            generator: the source of the noise. It has no privacy guarantee.
            shape: the shape of the array to draw.
        """
        raise InvalidType("mechanism must be known to be an argmax of noisy scores: give PermuteAndFlip")


def is_mechanism_class(kind: Any) -> bool:
    """Whether this is a class of mechanisms that can be instantiated."""
    return isinstance(kind, ABCMeta) and MechanismBase in kind.__mro__ and not isabstract(kind)


def checked_mechanism(mechanism: Any) -> MechanismBase:
    """The mechanism, checked to be one of this package or derived from its base."""
    if not isinstance(mechanism, MechanismBase):
        raise InvalidType(
            f"mechanism must be one of dpselect's, got {type(mechanism).__name__}: give for example"
            " PermuteAndFlip(epsilon=1)"
        )
    return mechanism


def counted_question(what: "What", count: int) -> "What":
    """The question with the number of candidates."""
    asked = {"question": what} if isinstance(what, str) else what
    if not isinstance(asked, Mapping):
        return asked  # type: ignore[unreachable] # a caller's mistake, which the charge refuses
    if asked.get("candidates", count) != count:
        raise InvalidValue(f"what must not state another number of candidates: there are {count} scores")
    return {"candidates": count, **asked}


def checked_labels(labels: Any, count: int) -> list[Any]:
    """The public names of the candidates, as Python's own objects."""
    names = next((getattr(labels, name)() for name in ("to_pylist", "tolist") if hasattr(labels, name)), labels)
    if isinstance(names, (str, bytes, Mapping, Set)) or not isinstance(names, Iterable):  # sets have no order
        raise InvalidType(f"labels must be a list with one label per score, got {type(labels).__name__}")
    listed = list(names)
    if len(listed) != count:
        raise InvalidValue("labels must have one label per score: give both the same length")
    return listed


def _home(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _made(kind: type[MechanismBase], epsilon: Fraction, arguments: dict[str, Any]) -> MechanismBase:
    return kind(epsilon, **arguments)
