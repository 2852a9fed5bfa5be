"""The tests that must notice a mutant of each file: those that concern it, the fastest first."""

_CONTRACT = "tests/contract/test_selection.py"
_EXACT = "tests/mechanisms/test_exact_distribution.py"
_VISITS = "tests/mechanisms/test_visits.py"
_RUNS = "tests/mechanisms/test_runs.py"

TESTS = {
    "sampling/arrival.py": ("tests/sampling/test_arrivals.py", "tests/sampling/test_arrival.py"),
    "sampling/binomial.py": ("tests/sampling/test_binomial.py", "tests/mechanisms/test_summary.py"),
    "sampling/bits.py": ("tests/sampling/test_bits.py", _CONTRACT),
    "sampling/coin.py": ("tests/sampling/test_coin.py", _CONTRACT),
    "sampling/draws.py": ("tests/mechanisms/test_noisy_max.py", _RUNS, _CONTRACT),
    "sampling/enclosure.py": ("tests/sampling/test_enclosure.py", "tests/sampling/test_coin.py"),
    "sampling/geometric.py": ("tests/sampling/test_geometric.py",),
    "sampling/index.py": ("tests/sampling/test_index.py",),
    "sampling/noise.py": ("tests/sampling/test_noise.py", "tests/mechanisms/test_noisy_max_settling.py", _CONTRACT),
    "sampling/octets.py": ("tests/sampling/test_octets.py",),
    "mechanisms/exponential.py": (_CONTRACT, _EXACT),
    "mechanisms/flips.py": (_VISITS, _CONTRACT, _EXACT),
    "mechanisms/gaps.py": (_CONTRACT, _EXACT, _RUNS),
    "mechanisms/guarantee.py": (_CONTRACT,),
    "mechanisms/heads.py": (_VISITS, _EXACT),
    "mechanisms/hot.py": (_VISITS, _EXACT),
    "mechanisms/names.py": (_CONTRACT,),
    "mechanisms/noisy_max.py": (
        "tests/mechanisms/test_noisy_max.py",
        "tests/mechanisms/test_noisy_max_settling.py",
        _CONTRACT,
    ),
    "mechanisms/permute_and_flip.py": (_VISITS, _CONTRACT, _EXACT, "tests/mechanisms/test_summary.py"),
    "mechanisms/protocol.py": (_CONTRACT,),
    "mechanisms/record.py": (_CONTRACT, _RUNS),
    "mechanisms/runs.py": (_RUNS,),
    "mechanisms/summary.py": ("tests/mechanisms/test_summary_stateful.py", "tests/mechanisms/test_summary.py"),
}

# Too slow to run for every mutant; they run in `make test`.
LEFT_OUT = (
    "tests/mechanisms/test_summary.py::test_every_merge_tree_is_exact",
    "tests/mechanisms/test_summary.py::test_every_split_into_blocks_is_exact",
    "tests/mechanisms/test_summary.py::test_many_parts_fit",
    "tests/sampling/test_binomial.py::test_probabilities_next_to_zero_and_one_do_not_overflow",
    "tests/sampling/test_binomial.py::test_the_distribution_is_binomial",
    "tests/mechanisms/test_exact_distribution.py::test_the_envelope_is_exactly_the_softmax",
    "tests/sampling/test_coin.py::test_the_filter_agrees_with_the_exact_coin",
    "tests/mechanisms/test_runs.py::test_draws_fit_and_those_of_another_rate_do_not",
)
