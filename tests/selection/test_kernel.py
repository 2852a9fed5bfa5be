"""The compiled kernel does what NumPy does, for all numbers; and it is never called with arrays that it cannot read."""

import importlib.util
import itertools
import math
import os
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect import PermuteAndFlip
from dpselect.errors import InvalidValue, ScoresChanged
from dpselect.selection import draws, kernel
from dpselect.selection.gaps import Rate, RowGaps, gaps_of
from dpselect.selection.lines import octet_tables
from tests import compiler
from tests.kernels import needs_kernel

TYPES = [np.float64, np.int64]
UNIT = Rate(Fraction(1))
SOURCE = Path(kernel.__file__).with_name("_kernel.c")


def test_the_kernel_is_there_where_a_compiler_is():
    """Otherwise the tests below would be skipped, and nobody would notice a kernel that cannot be compiled."""
    if compiler.missing() or os.environ.get("DPSELECT_KERNEL") == "no":
        pytest.skip(f"needs {compiler.missing() or 'an environment without DPSELECT_KERNEL=no'}")
    assert kernel.compiled is not None


def test_it_can_be_left_out(monkeypatch):
    monkeypatch.setenv("DPSELECT_KERNEL", "no")
    assert kernel.loaded() is None


def test_a_module_of_another_version_is_not_used(monkeypatch):
    monkeypatch.delenv("DPSELECT_KERNEL", raising=False)
    monkeypatch.setitem(sys.modules, "dpselect.selection._kernel", SimpleNamespace(VERSION=0))
    assert kernel.loaded() is None
    monkeypatch.setitem(sys.modules, "dpselect.selection._kernel", None)
    assert kernel.loaded() is None


def test_without_it_numpy_does_the_work(monkeypatch):
    monkeypatch.setattr(kernel, "compiled", None)
    values, words = np.zeros(4), np.zeros(4, np.uint32)
    positions = np.arange(4)
    assert not kernel.takes(values)
    assert kernel.maxima(values, 2) is None
    assert kernel.at_least(values, 4, values[:1], 20) is None
    assert kernel.scan(values, 4, 0.0, 1.0, 20) is None
    assert kernel.exponents(values, positions, values[:1], 4, 1.0) is None
    assert kernel.gaps(values, positions, values[:1], 4) is None
    assert kernel.octets(values, np.zeros(256), np.zeros(256), np.zeros(4, np.uint8)) is None
    assert kernel.table(values.view(np.uint64), np.zeros(4, np.uint8), np.zeros(4, np.uint8)) is None
    assert kernel.skips(words, 8, 0.0) is None
    assert kernel.successes(words, 8, 0.0, -1, 100) is None
    assert kernel.coins(values, words, 0, 0, 0.0, 4.0, 100.0) is None
    assert PermuteAndFlip(1).select([0, 0, 1000]) == 2


# What each function returns, beside what NumPy returns. `checks` also runs with kernels that were changed (below).


def check_maxima(values, width):
    maxima, is_finite = kernel.maxima(values, width)
    parts = [values[start : start + width] for start in range(0, values.size, width)]
    assert is_finite is bool(np.isfinite(values).all())
    if is_finite:
        assert maxima.tolist() == [part.max() for part in parts]


def check_scan(values, width, best, gap, most):
    """Without a gap that is negative, and with numbers that are finite."""
    lowest = np.iinfo(np.int64).min if values.dtype.kind == "i" else -np.inf
    found = kernel.scan(values, width, lowest if best is None else best, gap, most)
    largest = values.max().item() if best is None else max(values.max().item(), best)
    assert (found.best, found.is_finite) == (largest, True)
    assert found.maxima.tolist() == kernel.maxima(values, width)[0].tolist()
    floor = max(largest - gap, lowest) if values.dtype.kind == "i" else math.nextafter(largest - gap, -math.inf)
    assert found.floor == floor
    expected = np.flatnonzero(values >= floor)
    if found.hot is None:
        assert values.size + 16 > most
    else:
        assert found.hot.positions.tolist() == expected.tolist()
        assert found.hot.scores.tolist() == values[expected].tolist()


def check_at_least(values, width, floors, most):
    maxima, _ = kernel.maxima(values, width)
    floors = np.array(floors[: maxima.size] if len(floors) >= maxima.size else floors[:1], values.dtype)
    found = kernel.at_least(values, width, floors, most)
    each = np.repeat(floors, width)[: values.size] if floors.size > 1 else floors[0]
    expected = np.flatnonzero(values >= each)
    if found is None:
        assert expected.size + 16 > most
    else:
        assert found.tolist() == expected.tolist()


def check_exponents(values, width, positions, rate):
    """Against the same numbers one by one: integers modulo 2**64, floats rounded once."""
    maxima, _ = kernel.maxima(values, width)
    for bests, part in ((maxima, width), (maxima.max()[np.newaxis], values.size)):
        gaps = kernel.gaps(values, positions, bests, part)
        found, is_sound = kernel.exponents(values, positions, bests, part, rate)
        with np.errstate(over="ignore"):
            if values.dtype.kind == "i":
                exact = [int(bests[place // part]) - int(values[place]) for place in positions.tolist()]
                assert gaps.tolist() == exact
            else:
                assert gaps.tolist() == [float(bests[place // part] - values[place]) for place in positions.tolist()]
            assert found.tolist() == (gaps.astype(np.float64) * rate).tolist()
        assert is_sound is True


def check_joined(values, width, positions, floors, depths):
    """Against the same lists by NumPy. The scores of the hot candidates are those that are given."""
    parts = -(-values.size // width)
    floors = np.array((floors * parts)[:parts], values.dtype)
    first, survivors = np.array_split(positions, 2)
    hot = kernel.Hot(first, values[first] + 1)
    for own, part in ((floors, width), (floors[0], values.size)):
        is_cold = values[survivors] < (own[survivors // part] if own.ndim else own)
        for zeros in (7, np.resize(np.array(depths, np.uint8), survivors.size)):
            left = kernel.joined(values, own, part, hot, survivors, zeros)
            cold, known = survivors[is_cold], np.broadcast_to(zeros, survivors.size)[is_cold]
            assert left.positions.tolist() == [*hot.positions.tolist(), *cold.tolist()]
            assert left.scores.tolist() == [*hot.scores.tolist(), *values[cold].tolist()]
            assert left.depths.tolist() == [0] * hot.positions.size + known.tolist()


def check_skips(words, zeros, trials):
    plain, doubtful = draws._filtered_skips(words, zeros, draws.SKIP_MARGIN)
    skips, in_doubt = kernel.skips(words, zeros, draws.SKIP_MARGIN)
    assert in_doubt.tolist() == doubtful.tolist()
    clear = np.setdiff1d(np.arange(words.size), doubtful)
    assert skips[clear].tolist() == plain[clear].tolist()
    positions = (plain + 1).cumsum() + 6
    below = int((positions < trials).sum())
    found = kernel.successes(words, zeros, draws.SKIP_MARGIN, 6, trials)
    first = int(doubtful[0]) if doubtful.size else words.size
    if found is None:
        assert first <= below
    else:
        assert found.tolist() == positions[:below].tolist()
        assert first >= below


def check_octets(gaps, octets, rate):
    for table, kind in zip(octet_tables(rate), (np.float64, np.uint64), strict=True):
        edges = np.concatenate([gaps.astype(kind), table.near[octets], table.far[octets]])
        drawn = np.concatenate([octets[: gaps.size], octets, octets])
        for last, scores in ((256, False), (255, False), (255, True)):
            if kind is np.uint64 and scores:
                continue
            heads, is_open = kernel.octets(edges, table.near, table.far, drawn, last=last, scores=scores)
            reached = np.greater_equal if scores else np.less_equal
            assert heads.tolist() == (reached(edges, table.near[drawn]) & (drawn < last)).tolist()
            assert is_open.tolist() == (reached(edges, table.far[drawn]) ^ heads).tolist()
    lines = np.arange(255, -1, -5).astype(np.uint8)
    places = np.abs(gaps).astype(np.uint64)
    heads, is_open = kernel.table(places, lines, octets[: gaps.size])
    own = lines[np.minimum(places, lines.size - 1)]
    assert heads.tolist() == (octets[: gaps.size] < own).tolist()
    assert is_open.tolist() == (octets[: gaps.size] == own).tolist()


def check_coins(exponents, words, prefixes, depths):
    """The two filters may differ in what they leave in doubt by an error of `exp`, and never in what they decide."""
    bounds = draws.MARGIN, draws.SLACK, draws.VANISHED
    heads, doubtful = kernel.coins(exponents, words, prefixes, depths, *bounds)
    plain, in_doubt = draws._filtered_coins(exponents, words, prefixes, depths, draws.MARGIN)
    clear = np.setdiff1d(np.arange(words.size), np.union1d(doubtful, in_doubt))
    assert heads[clear].tolist() == plain[clear].tolist()
    assert not heads[doubtful].any()
    # Where only one of them is in doubt, the word is at the very edge of the doubt.
    edge = np.setxor1d(doubtful, in_doubt)
    cells = 2.0 ** -(32.0 + np.broadcast_to(depths, words.shape))
    lowest = words * cells + np.broadcast_to(prefixes, words.shape) * cells * 2.0**32
    boundary = np.exp(-np.minimum(exponents, 100.0))
    doubt = boundary * draws.MARGIN + draws.SLACK * cells
    assert (np.abs(np.abs(boundary - lowest) - doubt)[edge] <= 1e-14 * boundary[edge]).all()


@needs_kernel
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("base", [-1.0, 0.0, 1.7976931348623157e308, -1.7976931348623157e308])
def test_one_number_that_is_not_finite_is_noticed_wherever_it_is(bad, base):
    for place in (0, 1, 31, 32, 99, 255, 256, 298, 299):
        values = np.full(300, base)
        assert kernel.maxima(values, 256)[1] is True
        values[place] = bad
        assert kernel.maxima(values, 256)[1] is False
        with pytest.raises(InvalidValue):
            PermuteAndFlip(1).select(values)


@needs_kernel
def test_parts_may_be_longer_than_the_vector():
    values = np.arange(10.0)
    for width in (10, 11, 2**62, 2**63 - 1):
        assert kernel.compiled.maxima(False, values, width, np.empty(1)) is True
        found = kernel.compiled.scan(False, values, width, -1.0, 2.5, np.empty(1), np.empty(64, np.int64), np.empty(64))
        assert found == (True, (9.0, math.nextafter(6.5, 0)), 3)
        assert kernel.at_least(values, width, np.array(7.0), 64).tolist() == [7, 8, 9]


@needs_kernel
def test_a_scan_that_lists_too_much_still_finds_the_maxima():
    values = np.arange(10_000.0)
    found = kernel.scan(values, 256, -np.inf, 1e9, 500)
    assert found.hot is None
    assert (found.best, found.is_finite) == (9999.0, True)
    assert found.maxima.tolist() == kernel.maxima(values, 256)[0].tolist()
    values[-1] = np.nan
    assert kernel.scan(values, 256, -np.inf, 1.0, 500).is_finite is False


@needs_kernel
def test_scores_that_rose_after_the_first_look_are_noticed():
    values = np.array([1.0, np.nan, 3.0])
    best = np.array([2.0])
    for place, is_sound in ((0, True), (1, False), (2, False)):
        assert kernel.exponents(values, np.array([place]), best, 3, 1.0)[1] is is_sound
    changing = gaps_of(np.zeros(5000), UNIT)
    changing.values[7] = 1.0
    with pytest.raises(ScoresChanged):
        changing.exponents(np.array([7]))


def powers(zeros):
    """Words next to (1 - 2**-zeros)**k, where a skip changes."""
    return [
        min(max(round((1 - 2.0**-zeros) ** k * 2**32) + near, 0), 2**32 - 1) for k in range(40) for near in (-1, 0, 1)
    ]


# Arrays that it does not take.


@pytest.mark.parametrize(
    "odd",
    [
        np.arange(20_000.0)[::2],
        np.arange(10_000, dtype=np.int32),
        np.arange(10_000, dtype=np.float32),
        np.arange(10_000).astype(">i8"),
        np.frombuffer(b"\0" + np.arange(10_000.0).tobytes(), np.uint8)[1:].view(np.float64),
        np.arange(10_000, dtype=np.uint64),
    ],
    ids=["strided", "int32", "float32", "swapped", "unaligned", "uint64"],
)
def test_other_arrays_are_read_by_numpy(odd):
    values = np.array(odd)
    values = odd if values.dtype == odd.dtype and not kernel.takes(odd) else values
    assert not kernel.takes(odd)
    assert kernel.maxima(odd, 256) is None
    assert PermuteAndFlip(10).select(odd) > 9_900


@needs_kernel
def test_lengths_that_do_not_fit_are_refused():
    """Nothing is read or written outside an array, whatever the caller mistook."""
    values, few, words = np.zeros(10), np.zeros(3), np.zeros(10, np.uint32)
    at, room, octets = np.arange(10), np.zeros(10, np.uint8), np.zeros(10, np.uint8)
    module = kernel.compiled

    def joined(hot, scores, survivors, zeros=octets[:1], room=None):
        sizes = [hot.size + survivors.size] * 3 if room is None else room
        return hot, scores, survivors, zeros, *map(np.empty, sizes, (np.int64, np.float64, np.uint8))

    for call in (
        lambda: module.maxima(False, values, 0, few),
        lambda: module.maxima(False, values, 3, few),
        lambda: module.maxima(False, np.zeros(0), 3, few),
        lambda: module.at_least(False, values, 3, few, at),
        lambda: module.at_least(False, values, 10, few[:2], at),
        lambda: module.scan(False, values, 3, 0.0, 1.0, few, at, values.copy()),
        lambda: module.scan(False, values, 5, 0.0, 1.0, few[:2], at[:9], values.copy()),
        lambda: module.exponents(False, values, at + 1, few[:1], 10, 1.0, values.copy()),
        lambda: module.exponents(False, values, at - 1, few[:1], 10, 1.0, values.copy()),
        lambda: module.exponents(False, values, at, few[:2], 10, 1.0, values.copy()),
        lambda: module.exponents(False, values, at, few[:1], 10, 1.0, few),
        lambda: module.gaps(False, values, at, few, 0, values.copy()),
        lambda: module.joined(False, values, few[:1], 10, *joined(at[:0], values[:0], at + 1)),
        lambda: module.joined(False, values, few[:1], 10, *joined(at[:0], values[:0], at - 1)),
        lambda: module.joined(False, values, few[:2], 10, *joined(at[:0], values[:0], at)),
        lambda: module.joined(False, values, few[:1], 0, *joined(at[:0], values[:0], at)),
        lambda: module.joined(False, values, few[:1], 10, *joined(at, values[:9], at)),
        lambda: module.joined(False, values, few[:1], 10, *joined(at, values, at, octets[:9])),
        lambda: module.joined(False, values, few[:1], 10, *joined(at, values, at, room=(19, 20, 20))),
        lambda: module.joined(False, values, few[:1], 10, *joined(at, values, at, room=(20, 19, 20))),
        lambda: module.joined(False, values, few[:1], 10, *joined(at, values, at, room=(20, 20, 19))),
        lambda: module.skips(words, 8, 0.0, few.view(np.int64)),
        lambda: module.skips(words, 0, 0.0, at),
        lambda: module.skips(words, 51, 0.0, at),
        lambda: module.successes(words, 8, 0.0, -1, 100, few.view(np.int64)),
        lambda: module.successes(words, 8, 0.0, -2, 100, at),
        lambda: module.successes(words, 8, 0.0, 2**63 - 1, -1, at),
        lambda: module.successes(words, 8, 0.0, 0, -(2**63), at),
        lambda: module.octets(1, 256, values, few, few, octets, room),
        lambda: module.octets(1, 256, values, np.zeros(256), np.zeros(256), octets[:9], room),
        lambda: module.table(values.view(np.uint64), octets[:0], octets, room),
        lambda: module.table(values.view(np.uint64), octets[:1], octets[:9], room),
        lambda: module.coins(values, words[:9], words[:1], room[:1], 0.0, 4.0, 100.0, room),
        lambda: module.coins(values, words, words[:2], room[:1], 0.0, 4.0, 100.0, room),
        lambda: module.coins(values, words, words[:1], np.full(1, 21, np.uint8), 0.0, 4.0, 100.0, room),
        lambda: module.maxima(False, np.zeros(81, np.uint8)[1:], 3, few),
    ):
        with pytest.raises(ValueError, match=r"fit|aligned|known bits"):
            call()
    with pytest.raises((ValueError, BufferError)):
        module.maxima(False, values, 10, b"\0" * 8)  # which nobody may write


@needs_kernel
@pytest.mark.parametrize("kind", TYPES)
def test_floors_of_rows_are_those_of_vectors(kind):
    """At the ends of the type, too."""
    edges = [-(2**63), 2**63 - 1, 0, -5] if kind is np.int64 else [-1.7e308, 1.7e308, 0.0, -3e-7]
    for rate in (Fraction(1), Fraction(1, 2**70), Fraction(2**70)):
        matrix = np.array([[edge, edge] for edge in edges], kind)
        rows = RowGaps(matrix, Rate(rate)).floors(8).tolist()
        assert rows == [gaps_of(np.array(row), Rate(rate)).floor(8).item() for row in matrix]


# A kernel that is wrong by a little is noticed by the checks above.

CHANGES = {
    "a part is not read to its end": (
        "int64_t one = in_order(bits[i], flips);",
        "int64_t one = in_order(bits[start], flips);",
    ),
    "negative floats are in the wrong order": ("return bits ^ ((bits >> 63) & flips);", "return bits;"),
    "minus infinity is finite": ("least >= -infinity", "least >= -infinity - 1"),
    "infinity is finite": ("most < infinity", "most <= infinity"),
    "a value at the floor is cold": ("found += values[j] >= floor;", "found += values[j] > floor;"),
    "every part has the first floor": ("TYPE floor = floors[part * step]", "TYPE floor = floors[0 * step]"),
    "a scan leaves out what is at the floor": ("found += one >= floor;", "found += one > floor;"),
    "a scan leaves out parts at the floor": ("if (high[part] >= floor)", "if (high[part] > floor)"),
    "a scan keeps what a later best is far above": ("left += scores[left] >= floor;", "left += 1;"),
    "a scan forgets what is known to be better": ("TYPE best = *known,", "TYPE best = *known - 5,"),
    "a scan tells the floor of its first part": ("*last_floor = floor;", "*last_floor = FLOOR(high[0], gap);"),
    "a scan does not see the best of a group": ("best = high[part] > best ? high[part] : best;", "best = best;"),
    "the first row is everybody's": ("some->part = position / some->width;", "some->part = 0 / some->width;"),
    "what is left has no floor of its own": ("some.best)[part] : value <", "some.best)[0] : value <"),
    "a survivor at the floor is cold": ("value < ((const double *)", "value <= ((const double *)"),
    "all survivors have the zeros of the first": ("zeros[zeros_count > 1 ? i : 0]", "zeros[0]"),
    "survivors are not filtered": ("whole ? bits < ((const int64_t *)", "whole ? 1 | bits < ((const int64_t *)"),
    "the scores of the hot are read again": (
        "memcpy(scores, known, (size_t)",
        "for (Py_ssize_t i = 0; i < hot_count; i++)\n"
        "        scores[i] = ((const int64_t *)some.values)[hot[i]];\n"
        "    memcpy(scores, known, 0 * (size_t)",
    ),
    "hot coins start with zeros": ("memset(depths, 0,", "memset(depths, 1,"),
    "skips are decided with less doubt": ("by.scale / middle + quotient", "0.5 * by.scale / middle + quotient"),
    "skips are counted without the success": ("out[found] = last += skip + 1;", "out[found] = last += skip;"),
    "a success at the end counts": ("skip >= trials - 1 - last", "skip > trials - 1 - last"),
    "a gap at the far bound is tails": ("is_near = levels[i] REACHES", "is_near = 1.0000001 * levels[i] REACHES"),
    "a gap at the near bound is open": ("is_head = (levels[i] REACHES", "is_head = (1.0000001 * levels[i] REACHES"),
    "the last octet is like the others": ("(octet[i] < last)", "(octet[i] < 256)"),
    "the line of a gap is that of the next one": (
        "line[place < last ? place : last]",
        "line[place < last ? place + 1 : last]",
    ),
    "coins have no prefix": ("prefixes[i * per_prefix] * (cell", "0 * (cell"),
    "all coins have the first depth": ("cells[depths[i * per_depth]]", "cells[depths[0]]"),
    "coins are decided with less doubt": ("[k] * margin + slack", "[k] * margin + 0.5 * slack"),
}


def checks(seed):
    """The checks above, on random numbers."""
    generator = np.random.default_rng(seed)
    check_vectors(generator)
    check_coins_and_skips(generator)


def check_vectors(generator):
    """Numbers lie close together, or at the ends of their type."""
    largest = np.finfo(float).max
    ends = [0.0, -0.0, 5e-324, -5e-324, largest, -largest], [0, -1, 2**63 - 1, -(2**63)]
    for size in (1, 5, 17, 80, 300):
        near = generator.integers(-20, 20, size)
        close = near, near.astype(float)
        infinite = [np.where(np.arange(size) == place, far, 1.0) for place, far in ((-1 % size, -np.inf), (0, np.inf))]
        far = [np.where(generator.random(size) < 0.5, generator.choice(own, size), near) for own in ends]
        for values in (*close, *infinite, *far):
            for width in (1, 7, size):
                check_maxima(values, width)
                if np.isfinite(values).all():
                    floors = generator.integers(-21, 21, size).tolist()
                    check_at_least(values, width, floors, generator.integers(0, 2 * size))
                    check_at_least(values, width, floors[:1], size + 16)
                    for best, gap in itertools.product((None, 15, 25), (7, 0, 2**64 - 1)):
                        for room in (size + 16, 20):
                            check_scan(values, width, best, gap if values.dtype.kind == "i" else float(gap), room)
                    for rate in (1 / 3, 1e-300, 1e300):
                        check_exponents(values, width, generator.integers(0, size, 9), rate)
                if any(values is own for own in close):
                    check_joined(values, width, generator.integers(0, size, 20), floors, [3, 9, 20])


def check_coins_and_skips(generator):
    for zeros in (1, 7, 8, 20, 50, 12):
        words = np.array([*powers(zeros), *generator.integers(0, 2**32, 50), *range(20)], np.uint32)
        for trials in (7, 20 << zeros, 50 << zeros):
            for part in np.array_split(words, 10):
                check_skips(part, zeros, trials)
    plain, doubtful = draws._filtered_skips(words, 12, draws.SKIP_MARGIN)
    clear = np.setdiff1d(np.arange(words.size), doubtful)
    for end in (np.cumsum(plain[clear] + 1) + 6)[:9].tolist():
        check_skips(words[clear], 12, end)
        check_skips(words[clear], 12, end + 1)
    for rate in (Fraction(1, 2), Fraction(7, 3), Fraction(1, 10**6), Fraction(10**6)):
        check_octets(generator.integers(0, 9, 256), np.arange(256).astype(np.uint8), rate)
    exponents, depths = generator.exponential(3, 2000), generator.integers(0, 21, 2000).astype(np.uint8)
    exponents[:3] = 0.0, 1e-300, 1e308
    cells = (32 + depths.astype(int)).tolist()
    whole = [
        min(max(int(np.exp(-min(x, 100.0)) * 2.0**bits) + near, 0), 2**bits - 1)
        for x, bits, near in zip(exponents.tolist(), cells, generator.integers(-9, 9, 2000).tolist(), strict=True)
    ]
    words, prefixes = np.array([w & 0xFFFFFFFF for w in whole], np.uint32), np.array([w >> 32 for w in whole])
    check_coins(exponents, words, prefixes, depths)
    for depth in (depths, 0, 8, 20):
        check_coins(exponents, generator.integers(0, 2**32, 2000).astype(np.uint32), 0, depth)


@needs_kernel
@pytest.mark.parametrize("seed", [1, 2, 3, None])
def test_the_checks_accept_the_kernel(seed):
    checks(seed)


def compiled_again(text, folder):
    """A module from the text of the kernel, with the compiler's own choice of what is fast left out, to save time."""
    from setuptools import Distribution, Extension  # noqa: PLC0415 - with a compiler only
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    source = folder / "_kernel.c"
    source.write_text(text.replace('__attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))', ""), "utf-8")
    options = ["-O1", "-ffp-contract=off", "-fno-strict-aliasing"]
    extension = Extension("_kernel", [str(source)], extra_compile_args=options)
    command = build_ext(Distribution({"name": "x", "ext_modules": [extension]}))
    command.build_lib = command.build_temp = str(folder)
    command.ensure_finalized()
    command.run()
    [path] = command.get_outputs()
    spec = importlib.util.spec_from_file_location("_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@compiler.needs_compiler
@pytest.mark.parametrize("change", [None, *CHANGES])
def test_a_changed_kernel_is_noticed(change, tmp_path, monkeypatch):
    text = SOURCE.read_text("utf-8")
    if change is not None:
        before, after = CHANGES[change]
        assert text.count(before) == 1
        text = text.replace(before, after)
    monkeypatch.setattr(kernel, "compiled", compiled_again(text, tmp_path))
    if change is None:
        checks(seed=1)
        return
    with pytest.raises((AssertionError, ValueError, IndexError)):
        checks(seed=1)
