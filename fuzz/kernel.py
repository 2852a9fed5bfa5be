"""Random calls of every function of the compiled kernel: `python -m fuzz.kernel [SECONDS] [SEED]`.

About half of the calls have arguments that fit together, and in the others one argument is replaced. A call returns, or
raises one of `REFUSALS`. What it does to memory shows only in a kernel that was compiled for that: `fuzz.sanitize`
compiles one and runs this. The same seed makes the same calls, whatever the time.
"""

import secrets
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from dpselect.selection import kernel

REFUSALS = (ValueError, TypeError, OverflowError, BufferError)
_SIZES = sorted({max(2**k + near, 0) for k in range(10) for near in (-1, 0, 1)})
_LARGE = [2**16 - 1, 2**16, 2**16 + 1, 2**17 + 1]  # from 65,536 on, a function releases Python's lock
_INTEGERS = [
    0,
    1,
    -1,
    2,
    -2,
    *(sign * 2**k + near for sign in (1, -1) for k in (31, 62, 63, 64) for near in (-1, 0, 1)),
]
_FLOATS = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.0**-1022,
    1.0,
    -1.0,
    1e16,
    1.8e308 / 2,
    -1.8e308,
    *map(float, ("inf", "-inf", "nan")),
]
_NAN_WITH_BITS = struct.unpack("<d", struct.pack("<Q", 0xFFF0000000000001))[0]


class Maker:
    """Makes arguments. All of it follows from one source of randomness."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def size(self, least: int = 0) -> int:
        """A length: zero, one, or next to a power of two; rarely a large one."""
        return max(self.random.choice(_LARGE if self.random.random() < 0.01 else _SIZES), least)

    def width(self, count: int) -> int:
        """The length of a part: any, and also longer than all values together."""
        near = [count - 1, count, count + 1, 2 * count, *_SIZES, 2**31, 2**61, 2**62, 2**63 - 1]
        return max(self.random.choice(near), 1)

    def values(self, count: int, whole: bool) -> Any:
        """Numbers: all bits, small ones, equal ones, or some at the ends of the type."""
        kind = self.random.randrange(4)
        if kind == 0:
            return np.frombuffer(self.random.randbytes(8 * count), np.int64 if whole else np.float64).copy()
        found = np.frombuffer(self.random.randbytes(count), np.int8).astype(np.int64 if whole else np.float64)
        if kind == 1:
            found[:] = 7
        if kind == 2 and count:
            edges = [-(2**63), 2**63 - 1, 0, -1] if whole else [*_FLOATS, _NAN_WITH_BITS]
            for _ in range(self.random.randrange(1, 5)):
                found[self.random.randrange(count)] = self.random.choice(edges)
        return found

    def positions(self, count: int, below: int) -> Any:
        """Positions of some of `below` values."""
        words = np.frombuffer(self.random.randbytes(4 * count), np.uint32).astype(np.int64)
        return words % max(below, 1)

    def octets(self, count: int, most: int = 255) -> Any:
        """Numbers of eight bits."""
        return np.minimum(np.frombuffer(self.random.randbytes(count), np.uint8), np.uint8(most))

    def words(self, count: int) -> Any:
        """Numbers of 32 bits: any, or at the ends."""
        found = np.frombuffer(self.random.randbytes(4 * count), np.uint32).copy()
        if count and self.random.randrange(2):
            found[self.random.randrange(count)] = self.random.choice([0, 1, 2**31, 2**32 - 1])
        return found

    def number(self) -> float:
        """A float of any kind."""
        return self.random.choice([*_FLOATS, _NAN_WITH_BITS, 1e-13, 0.5, 4.0, 100.0])

    def some(self, one: Any, count: int) -> Any:
        """The first number for all, or all of them."""
        return one[:1].copy() if self.random.randrange(2) and count else one

    def odd(self, argument: Any) -> Any:
        """Something in the place of an argument that a function may have to refuse."""
        if isinstance(argument, np.ndarray):
            return self._odd_array(argument)
        if isinstance(argument, float):
            return self.random.choice([*_FLOATS, _NAN_WITH_BITS, None, "1", 10**400])
        return self.random.choice([*_INTEGERS, None, "1", 0.5])

    def _odd_array(self, array: Any) -> Any:
        raw, size = array.tobytes(), array.itemsize
        shifted = np.frombuffer(bytearray(b"\0" + raw), np.uint8)[1:]
        forms: list[Callable[[], Any]] = [
            lambda: self._read_only(array),
            lambda: np.repeat(array, 2)[::2],
            lambda: array[::-1],
            array[:-1].copy,
            array[:0].copy,
            lambda: np.append(array, array[:1] if array.size else np.zeros(1, array.dtype)),
            lambda: shifted,
            lambda: shifted.view(array.dtype),
            lambda: shifted[: -1 if size > 1 else None],
            lambda: bytearray(raw),
            lambda: bytearray(raw[:-1]),
            lambda: bytes(raw),
            lambda: memoryview(bytearray(raw)),
            lambda: memoryview(raw)[::2],
            lambda: array.reshape(-1, 1),
            lambda: np.asfortranarray(np.stack([array, array])),
            lambda: np.array([], array.dtype),
            lambda: self._changed(array),
            lambda: _Nowhere(array.dtype.str),
            lambda: np.asarray(_Nowhere(array.dtype.str)),
            lambda: None,
            lambda: "text",
            lambda: array.tolist()[:9],
        ]
        return self.random.choice(forms)()

    def _read_only(self, array: Any) -> Any:
        array = array.copy()
        array.flags.writeable = False
        return array

    def _changed(self, array: Any) -> Any:
        """The same with one number of other bits: a position outside, or more known bits than there are."""
        array = array.copy()
        if array.size:
            place = self.random.randrange(array.size)
            array.view(np.uint8).reshape(array.size, -1)[place] = self.random.choice([0x00, 0x7F, 0x80, 0xFF])
        return array


class _Nowhere:
    """An empty array without an address."""

    def __init__(self, kind: str) -> None:
        self.__array_interface__ = {"shape": (0,), "typestr": kind, "data": (0, False), "version": 3}


def _parts(count: int, width: int) -> int:
    return -(-count // width)


def _type(whole: int) -> type:
    return np.int64 if whole else np.float64


def _room(make: Maker, count: int) -> int:
    """How many may be listed: none, too few, or enough."""
    return make.random.choice([0, 1, 15, 16, 17, count // 2, count + 15, count + 16])


def _maxima(make: Maker) -> list[Any]:
    whole, count = make.random.randrange(2), make.size(1)
    width = make.width(count)
    return [whole, make.values(count, bool(whole)), width, np.empty(_parts(count, width), _type(whole))]


def _scan(make: Maker) -> list[Any]:
    whole, values, width, out = _maxima(make)
    room = _room(make, values.size)
    best = make.random.choice([-(2**63), 2**63 - 1, 0, 7]) if whole else make.number()
    gap = make.random.choice([0, 1, 2**63, 2**64 - 1]) if whole else make.number()
    return [whole, values, width, best, gap, out, np.empty(room, np.int64), np.empty(room, values.dtype)]


def _at_least(make: Maker) -> list[Any]:
    whole, values, width, out = _maxima(make)
    floors = make.some(make.values(out.size, bool(whole)), out.size)
    return [whole, values, width, floors, np.empty(_room(make, values.size), np.int64)]


def _exponents(make: Maker) -> list[Any]:
    whole, values, positions, bests, width, out = _gaps(make)
    return [whole, values, positions, bests, width, make.number(), out.astype(np.float64)]


def _gaps(make: Maker) -> list[Any]:
    whole, values, width, out = _maxima(make)
    bests = make.some(make.values(out.size, bool(whole)), out.size)
    positions = make.positions(make.size(), values.size)
    return [whole, values, positions, bests, width, np.empty(positions.size, values.dtype)]


def _joined(make: Maker) -> list[Any]:
    whole, values, survivors, floors, width, _ = _gaps(make)
    hot = make.positions(make.size(), values.size)
    zeros = make.some(make.octets(survivors.size), survivors.size)
    if not survivors.size:
        zeros = make.octets(1)
    known, most = make.values(hot.size, bool(whole)), hot.size + survivors.size
    lists = np.empty(most, np.int64), np.empty(most, values.dtype), np.empty(most, np.uint8)
    return [whole, values, floors, width, hot, known, survivors, zeros, *lists]


def _octets(make: Maker) -> list[Any]:
    kind, count = make.random.randrange(3), make.size()
    last = make.random.choice([0, 1, 255, 256, -1, 2**31 - 1, -(2**31)])
    whole = kind == 0
    near, far = make.values(256, whole), make.values(256, whole)
    return [kind, last, make.values(count, whole), near, far, make.octets(count), np.empty(count, np.uint8)]


def _table(make: Maker) -> list[Any]:
    count = make.size()
    return [make.values(count, whole=True), make.octets(make.size(1)), make.octets(count), np.empty(count, np.uint8)]


def _skips(make: Maker) -> list[Any]:
    count = make.size()
    return [make.words(count), make.random.randrange(1, 51), make.number(), np.empty(count, np.int64)]


def _successes(make: Maker) -> list[Any]:
    words, zeros, margin, out = _skips(make)
    last, trials = (make.random.choice([least, 0, 1, 10**6, 2**62, 2**63 - 2, 2**63 - 1]) for least in (-1, 0))
    return [words, zeros, make.random.choice([margin, 1e-13]), last, trials, out]


def _coins(make: Maker) -> list[Any]:
    count = make.size()
    known = (
        make.some(own, count) if count else own[:1]
        for own in (make.words(max(count, 1)), make.octets(max(count, 1), 20))
    )
    bounds = make.number(), make.number(), make.number()
    return [make.values(count, whole=False), make.words(count), *known, *bounds, np.empty(count, np.uint8)]


CALLS: dict[str, Callable[[Maker], list[Any]]] = {
    "maxima": _maxima,
    "scan": _scan,
    "at_least": _at_least,
    "exponents": _exponents,
    "gaps": _gaps,
    "joined": _joined,
    "octets": _octets,
    "table": _table,
    "skips": _skips,
    "successes": _successes,
    "coins": _coins,
}


def calls(module: Any, seed: int) -> Iterator[tuple[str, bool]]:
    """Call functions of a module without end; yields the name of each, and whether it took its arguments."""
    make = Maker(Random(seed))
    while True:
        name = make.random.choice(list(CALLS))
        arguments = CALLS[name](make)
        if make.random.randrange(2):
            place = make.random.randrange(len(arguments))
            arguments[place] = make.odd(arguments[place])
        try:
            getattr(module, name)(*arguments)
        except REFUSALS:
            yield name, False
        else:
            yield name, True


def main() -> None:
    """Call until the time is over, and print how often each function took and refused its arguments."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbits(32)
    if kernel.compiled is None:
        sys.exit("there is no compiled kernel: install the clone where a C compiler is, without DPSELECT_KERNEL=no")
    print(f"fuzz.kernel: seed {seed}, {seconds:g} s", flush=True)
    end, seen = time.monotonic() + seconds, Counter[tuple[str, bool]]()
    for call in calls(kernel.compiled, seed):
        seen[call] += 1
        if time.monotonic() > end:
            break
    for name in CALLS:
        print(f"{name:<10} took {seen[name, True]:>9,} and refused {seen[name, False]:>9,}")
    print(f"{seen.total():,} calls, and no report")


if __name__ == "__main__":
    main()
