"""The tests that must notice a mutant of each file: those that concern it and are fast, the fastest first.

What survives them may still be killed by slower ones, in `make test`; it is worth a fast test of its own.
"""

_ARROW = "tests/mechanisms/test_summary_arrow.py"
_COLD = "tests/selection/test_cold.py"
_CONTRACT = "tests/contract/test_selection.py"
_CURRENCIES = "tests/release/test_charging.py"
_EXACT = "tests/selection/test_exact_distribution.py"
_LABELS = "tests/mechanisms/test_summary_labels.py"
_LAZY = "tests/selection/test_lazy.py"
_NUMBERS_OF_RUNS = "tests/selection/test_run_counts.py"
_RECORDS = "tests/contract/test_records.py"
_RUNS = "tests/selection/test_runs.py"
_SENSITIVITY = "tests/tables/test_sensitivity.py"
_SETTLING = "tests/mechanisms/test_noisy_max.py"
_SUMMARY = "tests/mechanisms/test_summary.py"
_TOTALS = "tests/accounting/test_accounting.py"
_VISITS = "tests/selection/test_visits.py"
_WORDS = "tests/behaviour/test_transcripts.py::test_the_command_line_prints_what_it_did[plans in words]"

_SHORT = f"{_EXACT}::test_short_vectors_are_exact"
_EARLY = f"{_EXACT}::test_early_exit_is_exact"
_REFUSALS = "tests/analysis/test_refusals.py"
_ROWS = f"{_EXACT}::test_rows_are_exact_and_independent"

# What charges, totals and sensitivities are computed from: the files that `make mutants` tries if none is named.
ARITHMETIC = {
    "_numbers.py": ("tests/test_numbers.py",),
    "accounting/budget.py": (
        "tests/accounting/test_rounding.py",
        "tests/accounting/test_budgets.py",
        _CURRENCIES,
    ),
    "accounting/charge.py": (
        "tests/accounting/test_rounding.py",
        "tests/accounting/test_budgets.py",
        _CURRENCIES,
        _TOTALS,
    ),
    "accounting/repeats.py": (
        _RECORDS,
        "tests/accounting/test_run_counts.py",
        "tests/accounting/test_repeated.py",
        "tests/accounting/test_run_deltas.py",
    ),
    "accounting/totals.py": ("tests/accounting/test_rounding.py", "tests/accounting/test_recursion.py", _TOTALS),
    "mechanisms/parameters.py": ("tests/contract/test_parameters.py", _RECORDS, _SENSITIVITY),
    "mechanisms/privacy.py": (
        _RECORDS,
        "tests/contract/test_parameters.py",
        "tests/mechanisms/test_losses.py",
        "tests/accounting/test_recursion.py",
        _TOTALS,
    ),
    "mechanisms/unlisted.py": ("tests/mechanisms/test_thresholds.py", "tests/selection/test_finding.py"),
    "questions/quantiles.py": (
        _REFUSALS,
        "tests/questions/test_edges.py",
        "tests/tables/test_estimates.py",
        "tests/tables/test_quantiles.py",
        "tests/analysis/test_quantile_plans.py",
        "tests/analysis/test_plans.py",
        _SENSITIVITY,
        _WORDS,
    ),
    "questions/methods.py": (
        _REFUSALS,
        "tests/questions/test_edges.py",
        "tests/analysis/test_top_k_plans.py",
        "tests/analysis/test_top_k_errors.py",
        "tests/top_k/test_laws.py",
        "tests/release/test_several.py",
        _SENSITIVITY,
        _WORDS,
    ),
    "questions/most.py": (
        _REFUSALS,
        "tests/questions/test_edges.py",
        "tests/analysis/test_question_json.py",
        "tests/analysis/test_found_plans.py",
        "tests/analysis/test_top_k_plans.py",
        "tests/tables/test_accuracy.py",
        "tests/tables/test_rules.py",
        _SENSITIVITY,
        _WORDS,
    ),
    "questions/plan.py": (
        _REFUSALS,
        "tests/questions/test_edges.py",
        "tests/analysis/test_found_plans.py",
        "tests/analysis/test_top_k_plans.py",
        "tests/analysis/test_plans.py",
        _WORDS,
    ),
    "questions/question.py": (
        _REFUSALS,
        "tests/questions/test_edges.py",
        "tests/analysis/test_question_json.py",
        "tests/tables/test_accuracy.py",
        "tests/analysis/test_plans.py",
        _WORDS,
    ),
    "questions/splitting.py": ("tests/tables/test_splitting.py",),
    "questions/options.py": (
        "tests/questions/test_edges.py",
        "tests/questions/test_own_question.py",
        "tests/analysis/test_question_json.py",
        "tests/cli/test_mistakes.py",
        _WORDS,
    ),
    "questions/rows.py": (
        "tests/questions/test_edges.py",
        "tests/tables/test_groups.py",
        "tests/tables/test_quantile_distribution.py",
        _SENSITIVITY,
    ),
}

TESTS = {
    "release.py": (
        _CURRENCIES,
        "tests/release/test_answer.py",
        "tests/release/test_release.py",
        "tests/release/test_requests.py",
        "tests/release/test_digests.py",
    ),
    "selection/draws.py": (
        "tests/selection/test_bits.py",
        "tests/selection/test_coin.py",
        "tests/selection/test_geometric.py",
        _VISITS,
        _SETTLING,
        f"{_RUNS}::test_the_kernel_picks_the_winner_of_every_cell",
        _NUMBERS_OF_RUNS,
        _CONTRACT,
    ),
    "selection/enclosure.py": ("tests/selection/test_enclosure.py",),
    "selection/lines.py": (
        "tests/selection/test_octets.py",
        "tests/selection/test_lines.py",
    ),
    "selection/flips.py": (
        _RECORDS,
        _COLD,
        _VISITS,
        "tests/selection/test_heads.py",
    ),
    "selection/gaps.py": (
        _RECORDS,
        "tests/selection/test_gaps.py",
        _COLD,
        _CONTRACT,
    ),
    "selection/races.py": (
        _RECORDS,
        "tests/selection/test_arrival.py",
        _RUNS,
        "tests/selection/test_orders.py",
    ),
    "mechanisms/summary.py": (
        _RECORDS,
        _LABELS,
        _ARROW,
        "tests/mechanisms/test_batches.py",
        "tests/mechanisms/test_summary_stateful.py",
        _SUMMARY,
    ),
    "mechanisms/permute_and_flip.py": (
        _VISITS,
        _ROWS,
        _SHORT,
        _EARLY,
        _CONTRACT,
    ),
    "mechanisms/exponential.py": (
        "tests/selection/test_proposals.py",
        f"{_LAZY}::test_known_exponents_are_chosen_from_exactly",
        f"{_EXACT}::test_rejection_is_exactly_the_softmax",
        f"{_EXACT}::test_the_envelope_is_exactly_the_softmax",
        _CONTRACT,
    ),
    "mechanisms/noisy_max.py": (
        _SETTLING,
        _CONTRACT,
    ),
    "mechanisms/base.py": (
        _RECORDS,
        _CONTRACT,
        "tests/analysis/test_privacy.py",
    ),
    "analysis/unequal.py": (
        _RECORDS,
        "tests/analysis/test_generalized_scores.py",
    ),
    "selection/proposals.py": (_LAZY, "tests/selection/test_tickets.py", "tests/selection/test_waiting.py"),
    "mechanisms/worst.py": ("tests/analysis/test_promises.py",),
}


# What commands print is checked by their transcripts.
_OF_ROOMS = {"cli": ("tests/behaviour/test_transcripts.py",)}


def listed_tests(file: str) -> tuple[str, ...]:
    """The tests of a file; those of its room if it is not listed."""
    room = file.partition("/")[0]
    return ARITHMETIC.get(file) or TESTS.get(file) or (*_OF_ROOMS.get(room, ()), f"tests/{room}")


# Too slow to run for every mutant.
LEFT_OUT = (
    f"{_TOTALS}::test_no_neighbours_exceed_the_profile",
    f"{_TOTALS}::test_no_total_of_a_mixture_is_below_the_truth",
    *(
        f"{_SUMMARY}::{name}[{losses}"
        for name in ("test_every_merge_tree_is_exact", "test_every_split_into_blocks_is_exact")
        for losses in ("[3, 1, 0, 1, 2]", "[2, 2, 0, 9, 0]", "[5, 0, 5, 1]]", "[0, 7, 1, 0]]")
    ),
    f"{_SUMMARY}::test_many_parts_fit",
    *(f"{_EXACT}::test_the_envelope_is_exactly_the_softmax[losses{case}" for case in (1, 2)),
    "tests/selection/test_coin.py::test_floats_agree_with_the_exact_coin",
    f"{_RUNS}::test_positions_are_in_range",
    f"{_RUNS}::test_the_cells_of_v_give_the_exact_probabilities",
)
