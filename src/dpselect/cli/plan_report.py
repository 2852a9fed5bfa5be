"""What `dpselect plan` prints on a terminal: tables, and what they say in plain words."""

from dpselect._shown import DOWN, shown
from dpselect.analysis.plan import EqualCost, Promise
from dpselect.cli.console import print_line, print_paragraph, print_table
from dpselect.cli.figures import figure_table
from dpselect.cli.plan_figures import Figures, Proxy, Question
from dpselect.cli.public_scores import PRIVACY
from dpselect.cli.scores_file import shown_path
from dpselect.ledger.rounds import EqualRounds
from dpselect.mechanisms.names import MechanismName, name_of

_FIXED = "This holds if the epsilons and the number of selections do not depend on the answers."


def print_text(question: Question, answer: Figures) -> None:
    """Print the figures and their meaning."""
    title = f"Choosing one of {question.candidates:,} candidates, {question.claim}:"
    print_paragraph(title, "how far the choice can be below the best, whatever the data, in units of the scores")
    _print_promises(question.selections, answer.promises)
    print_paragraph("In words:", _words(question, answer.promises[MechanismName.PERMUTE_AND_FLIP]))
    print_paragraph(
        "For one selection permute-and-flip is the better mechanism:",
        "at the same epsilon it is never worse than the exponential mechanism, on any data, neither on average nor in"
        " any tail.",
    )
    if answer.equal is not None:
        _print_many(question.selections, answer.equal)
    if answer.rounds is not None:
        _print_rounds(question.selections, answer.rounds)
    if question.scores is not None:
        _print_proxies(question, len(question.scores), answer.proxies)
    print_paragraph(
        "Privacy:",
        f"what is guaranteed follows from public numbers alone and tells nothing about data, but {PRIVACY}: give"
        " --scores public or synthetic scores only.",
    )


def _print_promises(times: int, promises: dict[MechanismName, Promise]) -> None:
    totals = [f"{times:,} times\nepsilon", f"{times:,} times\nrho"] if times > 1 else []
    columns = ("\nepsilon", "average\nat most", "95 of 100\nbelow", "99 of 100\nbelow")
    table = figure_table("\nmechanism", *columns, *totals)
    for name, promised in promises.items():
        mark = "*" if promised.attained < promised.average else ""
        cells = [_epsilon(promised), *map(shown, (promised.average, promised.within_95, promised.within_99))]
        if times > 1:
            guarantee = promised.mechanism.guarantee
            cells += [shown(float(guarantee.epsilon * times), digits=6), shown(guarantee.zcdp * times)]
        table.add_row(name.value + mark, *cells)
    print_table(table)
    attained = promises[MechanismName.NOISY_MAX].attained
    note = f"the exact worst case of noisy-max is not known. On some data its average is {shown(attained, DOWN)}."
    print_paragraph("* A proven bound:", note)


def _words(question: Question, best: Promise) -> str:
    n, epsilon = f"{question.candidates:,}", _epsilon(best)
    if question.error is None:
        told = f"with epsilon {epsilon} and {n} candidates the one that permute-and-flip chooses is on average at most"
        told += f" {shown(best.average)} below the best, whatever the data."
    else:
        told = (
            f"epsilon {epsilon} guarantees that the one of {n} candidates that permute-and-flip chooses is on average"
        )
        told += f" at most {shown(float(question.error), digits=6)} below the best, whatever the data."
    tails = f"95 of 100 choices are less than {shown(best.within_95)} below it, 99 of 100 less than"
    return f"{told} {tails} {shown(best.within_99)}."


def _print_many(times: int, equal: EqualCost) -> None:
    print_paragraph(
        f"For {times:,} selections that share a budget of pure epsilon permute-and-flip is always the better one:",
        "epsilons add up, and at the same epsilon it is never worse than the exponential mechanism.",
    )
    exponential, other = equal.exponential, equal.permute_and_flip
    better = MechanismName.EXPONENTIAL if equal.better is exponential else MechanismName.PERMUTE_AND_FLIP
    rho, epsilon = shown(equal.rho * times), shown(float(other.mechanism.epsilon), DOWN)
    print_paragraph(
        f"For {times:,} selections that share a budget of zCDP the better one is {better.value}:",
        f"{times:,} exponential selections at epsilon {_epsilon(exponential)} cost rho {rho}, and are on average at"
        f" most {shown(exponential.average)} below the best. For the same rho permute-and-flip has epsilon {epsilon}"
        f" each, and is on average at most {shown(other.average)} below the best. {_FIXED}",
    )


def _print_rounds(times: int, compared: EqualRounds) -> None:
    delta = f"{compared.exponential.total.delta:g}"
    together = f"{times:,} selections together" if times > 1 else "One selection"
    print_paragraph(f"{together} as (epsilon, {delta})-DP:", "the exponential mechanism and permute-and-flip")
    table = figure_table("\nmechanism", "epsilon\neach", "average\nat most", "total\nepsilon")
    rows = {
        "exponential": compared.exponential,
        "permute-and-flip, same error": compared.equal_error,
        "permute-and-flip, same total": compared.equal_budget,
    }
    for name, rounds in rows.items():
        cells = (rounds.each.mechanism.epsilon, rounds.each.average, rounds.total.epsilon)
        table.add_row(name, *(shown(float(cell)) for cell in cells))
    print_table(table)
    better, error, total = name_of(compared.better.each.mechanism), compared.equal_error, compared.equal_budget
    print_paragraph(
        f"For a budget of (epsilon, {delta}) the better one is {better.value}:",
        f"for the same error permute-and-flip costs {shown(error.total.epsilon)} instead of"
        f" {shown(compared.exponential.total.epsilon)}, and for the same total its choice is on average at most"
        f" {shown(total.each.average)} below the best instead of {shown(compared.exponential.each.average)}. {_FIXED}",
    )


def _print_proxies(question: Question, size: int, proxies: dict[MechanismName, Proxy]) -> None:
    source = f"on the {size:,} scores of {shown_path(question.file or '')}"
    if question.error is None:
        print_line(f"Exactly, {source} (other data have other figures):", "bold")
        table = figure_table("\nmechanism", "\naverage", "95 of 100\nwithin")
        for name, proxy in proxies.items():
            table.add_row(name.value, shown(proxy.expected_error), shown(proxy.error_95))
    else:
        wanted = f"an average of {shown(float(question.error), digits=6)}"
        print_line(f"The epsilon for {wanted} {source} (other data may need more):", "bold")
        table = figure_table("mechanism", "epsilon")
        for name, proxy in proxies.items():
            table.add_row(name.value, "any" if proxy.epsilon is None else shown(proxy.epsilon))
    print_table(table)


def _epsilon(promised: Promise) -> str:
    return shown(float(promised.mechanism.epsilon), digits=6)
