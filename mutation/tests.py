"""The tests that must notice a mutant of each file: those that concern it, the fastest first."""

_CONTRACT = "tests/contract/test_selection.py"
_EXACT = "tests/mechanisms/test_exact_distribution.py"
_VISITS = "tests/mechanisms/test_visits.py"
_RUNS = "tests/mechanisms/test_runs.py"

_RECORDS = "tests/contract/test_records.py"

TESTS = {
    "sampling/arrival.py": (_RECORDS, "tests/sampling/test_arrivals.py", "tests/sampling/test_arrival.py"),
    "sampling/binomial.py": ("tests/sampling/test_binomial.py", "tests/mechanisms/test_summary.py"),
    "sampling/bits.py": ("tests/sampling/test_bits.py", _CONTRACT),
    "sampling/coin.py": ("tests/sampling/test_coin.py", _CONTRACT),
    "sampling/draws.py": ("tests/mechanisms/test_noisy_max.py", _RUNS, _CONTRACT),
    "sampling/enclosure.py": ("tests/sampling/test_enclosure.py", "tests/sampling/test_coin.py"),
    "sampling/geometric.py": ("tests/sampling/test_geometric.py",),
    "sampling/index.py": ("tests/sampling/test_index.py",),
    "sampling/noise.py": (
        _RECORDS,
        "tests/sampling/test_noise.py",
        "tests/mechanisms/test_noisy_max_settling.py",
        _CONTRACT,
    ),
    "sampling/octets.py": (
        _RECORDS,
        "tests/sampling/test_octets.py",
    ),
    "mechanisms/exponential.py": (_CONTRACT, _EXACT),
    "mechanisms/flips.py": (_VISITS, _CONTRACT, _EXACT),
    "mechanisms/gaps.py": (_RECORDS, _CONTRACT, _EXACT, _RUNS),
    "mechanisms/guarantee.py": (
        _RECORDS,
        _CONTRACT,
    ),
    "mechanisms/heads.py": (_VISITS, _EXACT),
    "mechanisms/hot.py": (_RECORDS, _VISITS, _EXACT),
    "mechanisms/names.py": (_CONTRACT,),
    "mechanisms/noisy_max.py": (
        "tests/mechanisms/test_noisy_max.py",
        "tests/mechanisms/test_noisy_max_settling.py",
        _CONTRACT,
    ),
    "mechanisms/permute_and_flip.py": (_VISITS, _CONTRACT, _EXACT, "tests/mechanisms/test_summary.py"),
    "mechanisms/protocol.py": (_CONTRACT,),
    "mechanisms/record.py": (_RECORDS, _CONTRACT, _RUNS),
    "mechanisms/runs.py": (_RUNS,),
    "mechanisms/summary.py": (
        _RECORDS,
        "tests/mechanisms/test_summary_stateful.py",
        "tests/mechanisms/test_summary.py",
    ),
}

# For a file that is not listed.
ALL = ("tests/sampling", "tests/mechanisms", "tests/contract")

_SUMMARY = "tests/mechanisms/test_summary.py"
_BINOMIAL = "tests/sampling/test_binomial.py"

# Too slow to run for every mutant; they run in `make test`.
LEFT_OUT = (
    *(
        f"{_SUMMARY}::{name}[{losses}"
        for name in ("test_every_merge_tree_is_exact", "test_every_split_into_blocks_is_exact")
        for losses in ("[3, 1, 0, 1, 2]", "[2, 2, 0, 9, 0]", "[5, 0, 5, 1]]", "[0, 7, 1, 0]]")
    ),
    f"{_SUMMARY}::test_many_parts_fit",
    f"{_BINOMIAL}::test_probabilities_next_to_zero_and_one_do_not_overflow",
    f"{_BINOMIAL}::test_large_counts_have_the_right_mean_and_spread",
    *(f"{_BINOMIAL}::test_the_distribution_is_binomial[{count}-exponent{i}]" for count in (2, 3) for i in range(3)),
    *(f"{_EXACT}::test_the_envelope_is_exactly_the_softmax[losses{case}" for case in (1, 2)),
    "tests/sampling/test_coin.py::test_the_filter_agrees_with_the_exact_coin",
    f"{_RUNS}::test_draws_fit_and_those_of_another_rate_do_not",
)
