"""All texts of at most so many bytes of UTF-8 as numbers: enumerative coding (Cover 1973).

Texts are ordered by their number of bytes, and those of equal length by their characters in the order of Unicode. With
a_w characters of w bytes, the number of texts of n bytes is

    c[0] = 1,    c[n] = a_1 c[n - 1] + a_2 c[n - 2] + a_3 c[n - 3] + a_4 c[n - 4],

because the rest after the first character is any text of the bytes that are left. All of Unicode has a = (128, 1920,
61440, 1048576): surrogates are not characters.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

Run = tuple[int, int]

# The code points of one, two, three and four bytes of UTF-8, first and last.
_WIDTHS: tuple[tuple[Run, ...], ...] = (
    ((0x0, 0x7F),),
    ((0x80, 0x7FF),),
    ((0x800, 0xD7FF), (0xE000, 0xFFFF)),
    ((0x10000, 0x10FFFF),),
)
_LAST_OF_WIDTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_EVERYTHING = tuple(run for runs in _WIDTHS for run in runs)


def runs_of(characters: Iterable[str] | None) -> tuple[Run, ...]:
    """Different characters as runs of code points that follow each other, each of one width; None is all of Unicode.

    >>> runs_of("CABx")
    ((65, 67), (120, 120))
    """
    if characters is None:
        return _EVERYTHING
    runs: list[Run] = []
    for code in sorted(map(ord, characters)):
        if runs and runs[-1][1] == code - 1 and code - 1 not in _LAST_OF_WIDTH:
            runs[-1] = runs[-1][0], code
        else:
            runs.append((code, code))
    return tuple(runs)


class _Characters(NamedTuple):
    """The characters of one width: the runs, and how many characters come before each."""

    firsts: list[int]
    lasts: list[int]
    before: list[int]
    size: int

    def character(self, place: int) -> int:
        run = bisect_right(self.before, place) - 1
        return self.firsts[run] + place - self.before[run]

    def place(self, code: int) -> int | None:
        run = bisect_right(self.firsts, code) - 1
        return self.before[run] + code - self.firsts[run] if run >= 0 and code <= self.lasts[run] else None


def _of_width(runs: Iterable[Run]) -> _Characters:
    runs = list(runs)
    *before, size = accumulate((last - first + 1 for first, last in runs), initial=0)
    return _Characters([first for first, _ in runs], [last for _, last in runs], before, size)


def width(code: int) -> int:
    """The number of bytes of a character in UTF-8."""
    return 1 + sum(code > last for last in _LAST_OF_WIDTH)


@lru_cache(maxsize=2)
def _counts(sizes: tuple[int, ...], longest: int) -> tuple[int, ...]:
    """c[0] to c[longest]. For 1,000 bytes these are about half a megabyte."""
    counts = [1]
    for n in range(1, longest + 1):
        counts.append(sum(size * counts[n - w] for w, size in enumerate(sizes, 1) if w <= n))
    return tuple(counts)


@dataclass(frozen=True)
class TextOrder:
    """The order of all texts of at most `max_bytes` bytes, of characters in these runs.

    >>> order = TextOrder(2, runs_of("ab"))
    >>> order.size, [order.text(place) for place in range(order.size)]
    (7, ['', 'a', 'b', 'aa', 'ab', 'ba', 'bb'])
    """

    max_bytes: int
    runs: tuple[Run, ...] = field(repr=False)

    @cached_property
    def _widths(self) -> list[_Characters]:
        return [_of_width(run for run in self.runs if width(run[0]) == w) for w in (1, 2, 3, 4)]

    @property
    def _counts(self) -> tuple[int, ...]:
        return _counts(tuple(characters.size for characters in self._widths), self.max_bytes)

    @cached_property
    def size(self) -> int:
        """Return the number of texts."""
        return sum(self._counts)

    def text(self, place: int) -> str:
        """Return the text at a place of the order."""
        counts, length, codes = self._counts, 0, []
        while place >= counts[length]:
            place -= counts[length]
            length += 1
        while length:
            code, place, length = self._first(place, length, counts)
            codes.append(code)
        return "".join(map(chr, codes))

    def _first(self, place: int, length: int, counts: tuple[int, ...]) -> tuple[int, int, int]:
        """The first character of the text at a place among those of one length, and place and length of the rest."""
        for w, characters in enumerate(self._widths, 1):
            if w > length:
                break
            block = characters.size * counts[length - w]
            if place < block:
                which, rest = divmod(place, counts[length - w])
                return characters.character(which), rest, length - w
            place -= block
        raise IndexError

    def place(self, text: str) -> int | None:
        """Return the place of a text; None if it is too long or has another character."""
        codes = [ord(character) for character in text]
        length = sum(map(width, codes))
        if length > self.max_bytes:
            return None
        counts = self._counts
        place = sum(counts[:length])
        for code in codes:
            w = width(code)
            within = self._widths[w - 1].place(code)
            if within is None:
                return None
            narrower = enumerate(self._widths[: w - 1], 1)
            place += sum(characters.size * counts[length - v] for v, characters in narrower)
            length -= w
            place += within * counts[length]
        return place
