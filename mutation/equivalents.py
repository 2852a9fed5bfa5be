"""Why some mutants cannot be killed: they do what the code does."""

from functools import cache

from cosmic_ray.work_item import MutationSpec

from mutation.places import Span, reason, spans


def reason_of(name: str, source: str, mutated: str, mutation: MutationSpec) -> str | None:
    """Why this mutant is equivalent; None if it must be tried."""
    return reason(mutation.start_pos, _spans(source))


@cache
def _spans(source: str) -> list[tuple[Span, str]]:
    return list(spans(source))
