"""The questions that the page offers, in their order, and the one that a request states."""

from dpselect.errors import InvalidValue
from dpselect.explore.asked import Asked
from dpselect.explore.by_scores import MostCommon, OwnScores, TopCandidates
from dpselect.explore.over_range import OfPeople
from dpselect.explore.score_set import ScoreSet
from dpselect.explore.settings import Fields, spending_of, text

QUESTIONS: dict[str, type[Asked]] = {kind.name: kind for kind in (MostCommon, TopCandidates, OfPeople, OwnScores)}


def asked_of(fields: Fields, scores: ScoreSet | None = None) -> Asked:
    """The question that a request states, on these scores."""
    name = text(fields, "question", MostCommon.name)
    if name not in QUESTIONS:
        raise InvalidValue(f"question must be one of {', '.join(QUESTIONS)}")
    return QUESTIONS[name].read(fields, spending_of(fields), scores)
