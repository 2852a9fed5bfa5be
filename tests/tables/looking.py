"""What the tests look at behind a table's back: the secret counts and scores that no question returns."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import dpselect
from dpselect.tables import quantiles, questions
from dpselect.tables.candidates import public_values
from dpselect.tables.ranges import public_grid
from dpselect.tables.schema import Kind


def opened(rows, engine="duckdb", *, types=None, **options):
    """A table of these columns (name to values), in Arrow's own types or in those that are given."""
    columns = {name: pa.array(values, (types or {}).get(name)) for name, values in rows.items()}
    return in_writing(dpselect.open_table(pa.table(columns), engine=engine, **options))


def in_writing(table):
    """The table with its text taken as values in writing, as if it came from a source without types such as CSV."""
    columns = table._engine.columns
    columns.update({name: replace(column, untyped=column.kind is Kind.TEXT) for name, column in columns.items()})
    return table


@contextmanager
def answering(kind):
    """Questions are answered by this kind of mechanism, with the parameters that the table derives."""
    with ExitStack() as stack:
        for question in (questions.TopK, quantiles.Quantile):
            stack.enter_context(patch.object(question, "answer", _answered_by(kind, question.answer)))
        yield


def _answered_by(kind, answer):
    def answered(question, engine, individuals, mechanism):
        return answer(question, engine, individuals, of_kind(kind, mechanism))

    return answered


def of_kind(kind, mechanism):
    """A mechanism of this kind with the same parameters. Laplace noise on all counts has no other kind."""
    if isinstance(mechanism, dpselect.ReportNoisyMax):
        return mechanism
    return kind(mechanism.epsilon, **mechanism.claim.arguments())


def counts(table, column, candidates, max_values=None, *, other=None):
    """How many individuals have each candidate: one list, or a list for each group."""
    found = table.columns[column]
    listed = public_values(candidates, found).with_other(other, found, table._engine.listed)
    lists = counted(table._engine, found, listed, table._individuals, max_values)
    return lists[0] if table._individuals.groups is None else lists


def counted(engine, column, candidates, who, max_values=None):
    """A list of counts for each group, or one for all."""
    if not hasattr(engine, "scores"):
        return [vector.tolist() for vector in engine.counts(column, candidates, who, max_values)]
    found = engine.scores(column, candidates, who, max_values).toArrow().to_pydict()
    lists = [[None] * len(candidates) for _ in range(1 if who.groups is None else len(who.groups))]
    for group, place, number in zip(found["grp"], found["label"], found["individuals"], strict=True):
        assert lists[group][place] is None
        lists[group][place] = number
    if are_counted_on_the_driver(candidates, who, max_values):  # for one selection; both ways must agree
        assert [engine.counts_of_list(column, candidates, who).tolist()] == lists
    return lists


def are_counted_on_the_driver(candidates, who, max_values):
    from dpselect.tables.spark.engine import are_few  # noqa: PLC0415 - an engine that needs Spark

    return are_few(candidates, who, max_values)


def places(table, column, lower, upper, step=1, *, range="full", max_rows=None):
    """(candidate, whether behind it, individuals) for each different place: one list, or a list for each group."""
    found = table.columns[column]
    data = table._engine.places(found, public_grid(lower, upper, step, found, range), table._individuals, max_rows)
    lists = [list(zip(d.places.tolist(), d.between.tolist(), d.individuals.tolist(), strict=True)) for d in data]
    return lists[0] if table._individuals.groups is None else lists


def quantile_scores(table, column, level, *, lower, upper, step=1):
    """The score of every candidate of a quantile: one list, or a list for each group."""
    found = table.columns[column]
    grid = public_grid(lower, upper, step, found)
    data = table._engine.places(found, grid, table._individuals)
    lists = [expanded(*questions.quantile_score_runs(d, grid.size, Fraction(level))) for d in data]
    return lists[0] if table._individuals.groups is None else lists


def middles(values):
    """The one or two middle values of a person, at one of which they count; nothing for a person without values."""
    known = sorted(value for value in values if value is not None)
    return sorted({known[(len(known) - 1) // 2], known[len(known) // 2]}) if known else []


def standings(people):
    """Every way in which people, each with their own values, can stand at their middle values."""
    return [list(chosen) for chosen in product(*(own for own in map(middles, people) if own))]


def expanded(scores, lengths):
    return np.repeat(scores, lengths.astype(np.int64)).tolist()


def repeated(rows, times, **options):
    """So many copies of a table as public groups, so that one question draws as many independent answers."""
    size = len(next(iter(rows.values())))
    copies = {name: values * times for name, values in rows.items()}
    return opened({**copies, "copy": np.repeat(np.arange(times), size)}, **options).group_by(
        "copy", groups=range(times)
    )


def tallied(table, column, *, domain=None, max_values=None):
    """How many individuals have each value that somebody has: a dict, or a dict for each group. DuckDB only."""
    who = table._individuals
    with table._engine.tally(table.columns[column], domain, who, max_values) as tally:
        rows = tally._cursor.sql("SELECT grp, item, individuals FROM dpselect_tally").fetchall()
    found = [{} for _ in range(1 if who.groups is None else len(who.groups))]
    for group, item, individuals in rows:
        found[group][item] = individuals
    return found[0] if who.groups is None else found
