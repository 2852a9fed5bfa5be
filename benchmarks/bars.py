"""What a row promises: a limit on our figure, alone or relative to the reference's."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.units import percent, seconds, times


@dataclass(frozen=True)
class Figures:
    """What was measured: ours, and the reference's where there is one."""

    ours: float
    reference: float | None = None

    @property
    def ratio(self) -> float:
        """Ours relative to the reference's; not a number where there is no reference."""
        return float("nan") if self.reference is None else self.ours / self.reference


@dataclass(frozen=True)
class Bar:
    """A limit in words, the ratio that the row shows, and whether the limit holds (None where there is no limit)."""

    text: str
    ratio: Callable[[Figures], str]
    is_met: Callable[[Figures], bool | None]


def at_most_times(factor: float) -> Bar:
    """Ours is at most `factor` times the reference's."""
    return Bar(f"<= {factor:g} x", lambda figures: times(figures.ratio), lambda figures: figures.ratio <= factor)


def times_faster(factor: float) -> Bar:
    """Ours is at least `factor` times faster than the reference."""
    return Bar(
        f"{factor:g} x faster",
        lambda figures: times(1 / figures.ratio),
        lambda figures: 1 / figures.ratio >= factor,
    )


def at_most_seconds(limit: float) -> Bar:
    """Ours takes at most `limit` seconds; a reference is there for information."""
    return Bar(
        f"<= {seconds(limit)}",
        lambda figures: "" if figures.reference is None else times(figures.ratio),
        lambda figures: figures.ours <= limit,
    )


def at_most(limit: float, show: Callable[[float], str]) -> Bar:
    """Ours is at most a limit, in whatever the row shows."""
    return Bar(f"<= {show(limit)}", lambda _: "", lambda figures: figures.ours <= limit)


def at_most_share(share: float) -> Bar:
    """Ours is at most `share` of the reference's."""
    return Bar(f"<= {percent(share)}", lambda figures: percent(figures.ratio), lambda figures: figures.ratio <= share)


def no_bar() -> Bar:
    """Both are there for information."""
    return Bar("", lambda figures: "" if figures.reference is None else times(figures.ratio), lambda _: None)
