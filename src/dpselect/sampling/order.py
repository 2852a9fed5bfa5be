"""Fisher & Yates (1938), a uniform random order, drawn as it is walked: it remembers only what it has touched."""

from collections.abc import Callable, Iterator


def random_order(count: int, index: Callable[[int], int]) -> Iterator[int]:
    """The numbers of range(count) in random order; `index` draws a uniform integer below a bound."""
    moved: dict[int, int] = {}
    for left in range(count, 0, -1):
        slot = index(left)
        yield moved.get(slot, slot)
        moved[slot] = moved.get(left - 1, left - 1)
