"""The ledger: a budget for one data set that cannot be overspent, across processes, crashes and years.

A charge is a transaction: catch up with the entries that others added, confirm their hash chain, check the budget,
write, and sync to the disk (`file`). What a ledger is given is checked first.
"""

import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from dpselect import _show, _validate
from dpselect._numbers import float_near
from dpselect._types import Number
from dpselect.accounting.budget import Amount, Budget, as_budget
from dpselect.accounting.charge import PURE, Charge, PrivacyUnit, What
from dpselect.errors import (
    BudgetExceeded,
    BudgetMismatch,
    InvalidType,
    InvalidValue,
    LedgerError,
    RequestConflict,
    RequestUnanswered,
    UnitMismatch,
)
from dpselect.ledger import file
from dpselect.ledger.file import Entry, Reader, State, Stored, corrupt
from dpselect.release import Receipt

__all__ = ["PURE", "Charge", "Entry", "Ledger", "PrivacyUnit", "Receipt"]

_LONGEST_NAME = 200
_Read = TypeVar("_Read")


class Ledger:
    """A durable record of everything that was spent on one data set, in one SQLite file.

    Args:
        path: the file. It is created if it does not exist, and only its owner may read it.
        budget: the total: a number for pure epsilon, or `dpselect.zcdp(...)` or `dpselect.approximate(...)`. A new file
            needs it, and it never changes.
        unit: what the budget protects. A ledger without a stated unit takes that of its first question to a table.
            Questions that protect something else are refused.
        dataset: a public name of the data. Tables must then be opened with the same name.

    Raises:
        InvalidValue, InvalidType: an argument is invalid; nothing was spent.
        BudgetMismatch: the ledger has a different budget.
        UnitMismatch: the ledger has a different privacy unit or data set.
        LedgerError: the file cannot be used; LedgerCorrupt if it is damaged or was changed. Do not release anything.

    Formal guarantees:
      * `spend` and `charge` return only after the charge is on the disk;
      * the sum of all charges never exceeds the budget, however many processes and threads spend at once;
      * the sum is exact; a charge of an unusual fraction is rounded up, by less than 1e-50, so that no charge can make
        the sum too long for later ones; a budget is fixed when the file is created; nothing is ever refunded;
      * all charges that state a privacy unit state the same one;
      * any fault of the file raises an error, and there is never an answer without a record;
      * `verify`, and the first charge, detect entries that were changed, removed, inserted or reordered.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/hospital.ledger", budget="1")
    ...     ledger.spend("0.1", "mode of diagnosis")
    ...     ledger.spent, ledger.remaining, [(entry.id, entry.what) for entry in ledger.entries()]
    1
    (pure('0.1'), pure('0.9'), [(1, 'mode of diagnosis')])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: Budget | Number | None = None,
        *,
        unit: PrivacyUnit | None = None,
        dataset: str | None = None,
    ) -> None:
        self._path = _absolute(path)
        self._writers = file.Writers(self._path)
        wanted = None if budget is None else as_budget(budget)
        if unit is not None and not isinstance(unit, PrivacyUnit):
            raise InvalidType(f"unit must be a PrivacyUnit, got {type(unit).__name__}: give PrivacyUnit(person=...)")
        name = None if dataset is None else _name(dataset=dataset)
        if not os.path.lexists(self._path):
            if wanted is None:
                raise LedgerError(f"there is no ledger {self._path}: give a budget to create one")
            file.create(self._path, file.new_header(wanted, unit, name))
        with file.reading(self._path) as connection:
            self._header = file.read_header(connection, self._path)
        if wanted is not None and wanted.to_dict() != self._header.budget.to_dict():
            raise BudgetMismatch(
                f"ledger {self._path} has the budget {self.budget.words}, which was fixed when it was created:"
                " give that budget, or none"
            )
        # What this object has confirmed so far, replaced as a whole. So threads need no lock: one that reads an older
        # state confirms a few entries again.
        self._start = State(0, self._header.head, Amount(), self._header.unit)
        self._known: State | None = None
        self.check_table(unit, self.dataset if name is None else name)

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r}, budget={self.budget!r})"

    def _repr_html_(self) -> str:
        # What a notebook shows. The folder of the file is not shown: notebooks are passed on.
        known = {"budget": self.budget.words}
        try:
            state = self._confirm()
        except LedgerError as error:
            known["spent"] = f"the file cannot be used ({type(error).__name__}): verify() says why"
        else:
            known |= {
                "spent": self.budget.of(state.spent).words,
                "left": self.budget.left(state.spent).words_down,
                "entries": f"{state.id:,}",
            }
            known |= {} if state.unit is None else {"protects": str(state.unit)}
            known |= {"guaranteed": self.budget.guaranteed(state.spent)}
        known |= {} if self.dataset is None else {"data set": self.dataset}
        return _show.page(_show.facts(known, caption=f"Ledger {self._path.name}"))

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._path

    @property
    def budget(self) -> Budget:
        """The exact total budget. One of pure epsilon compares and computes like a Fraction."""
        return self._header.budget

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges."""
        return self.budget.of(self._confirm().spent)

    @property
    def remaining(self) -> Budget:
        """Exactly what is left of the budget."""
        return self.budget.left(self._confirm().spent)

    @property
    def guaranteed(self) -> str:
        """What holds for all releases, in words, even if each was chosen after seeing the answers before it."""
        return self.budget.guaranteed(self._confirm().spent)

    @property
    def unit(self) -> PrivacyUnit | None:
        """What the budget protects, as stated at creation or by the first question about a table."""
        return self._header.unit or self._confirm().unit

    @property
    def dataset(self) -> str | None:
        """The name of the data set, if one was given at creation."""
        return self._header.dataset

    def charged(self, entry: Entry) -> Budget:
        """Return what an entry cost, in the units of the budget. See `Ledger.receipt`."""
        return self.budget.of(self.budget.amount(entry.charge))

    def check_table(self, unit: PrivacyUnit | None, dataset: str | None) -> None:
        """Check that questions with this privacy unit about this data set may be charged.

        Args:
            unit: the privacy unit of the questions; None if they state none.
            dataset: the public name of the data, or None.
        """
        ours, theirs = self.dataset, None if dataset is None else _name(dataset=dataset)
        if ours != theirs:
            has = "was created without the name of a data set" if ours is None else f"belongs to the data set {ours!r}"
            given = "no name was given" if theirs is None else f"the name given is {theirs!r}"
            raise UnitMismatch(
                f"ledger {self._path} {has}, but {given}: nothing was spent. Give the name with which the"
                " ledger was created, or use another ledger"
            )
        if unit is not None:
            self._check_unit(self.unit, unit)

    def _check_unit(self, ours: PrivacyUnit | None, theirs: PrivacyUnit) -> None:
        if ours is not None and ours != theirs:
            raise UnitMismatch(
                f"ledger {self._path} has the privacy unit {ours}, but this is {theirs}: costs of different units do"
                " not add up; nothing was spent. Open the table with the ledger's unit, or use another ledger"
            )

    def spend(
        self, epsilon: Number | None = None, what: What | None = None, *, rho: Number | None = None, delta: Number = 0
    ) -> int:
        """Charge for a release by other software, of which only its privacy parameters are known.

        The arguments are in the order of the sentence "spend epsilon on what"; `Charge` begins with the question.

        Args:
            epsilon: the epsilon of the release: a number, or a string such as "0.1", which is taken exactly.
            what: the question, a string or a mapping of public parameters. Never put a score or a count here.
            rho: the rho of zCDP, for example of Gaussian noise; give either epsilon or rho.
            delta: the delta of a release that is (epsilon, delta)-differentially private.

        Returns:
            The id of the entry, which is now on the disk.

        Raises:
            BudgetExceeded: the budget is too small; nothing was spent.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/hospital.ledger", budget="1")
        ...     ledger.spend("0.1", "histogram of ages, by another library")
        1
        """
        if (epsilon is None) == (rho is None):
            raise InvalidValue("give exactly one of epsilon and rho")
        if what is None:
            raise InvalidType("what must be a string or a mapping of public parameters, got None")
        charge = Charge(what, epsilon, rho=rho, delta=delta)
        _validate.warn_of_large_delta(charge.delta)
        return self.charge(charge).id

    def charge(self, charge: Charge, *, request_id: str | None = None, content: str | None = None) -> Entry:
        """Record a charge durably, or raise and record nothing.

        Args:
            charge: what is released and what it costs. The entry has the exact epsilon or, for an unusual fraction, one
                rounded up by less than 1e-50.
            request_id: makes a retry safe. The same id and charge again return the first entry with its stored answer,
                and nothing is charged.
            content: a digest of the data that the answer comes from; a retry on other data is refused.

        Returns:
            The entry, which is now on the disk. Its `answer` is None unless this is a retry.

        Raises:
            BudgetExceeded: the budget is too small; nothing was spent.
            RequestConflict: the request id was used for another charge, or on other data.
            RequestUnanswered: the request was charged before, but its answer was not stored. It may have been seen.

        >>> import tempfile
        >>> from dpselect import PermuteAndFlip
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/hospital.ledger", budget="1")
        ...     entry = ledger.charge(Charge.of(PermuteAndFlip("0.1"), {"question": "mode"}))
        ...     entry.id, entry.mechanism, entry.epsilon
        (1, 'permute-and-flip', Fraction(1, 10))
        """
        if not isinstance(charge, Charge):
            raise InvalidType(f"charge must be a Charge, got {type(charge).__name__}")
        charge.check_rho()
        cost = self.budget.check(charge)
        identifier = None if request_id is None else _name(request_id=request_id)
        if self._known is None:
            self._confirm()  # the first check reads everything, and others need not wait for it
        with self._transaction(self._writers.writing()) as connection:
            state = self._caught_up(connection)
            earlier = None if identifier is None else file.entry_of(connection, "request_id", identifier, self._path)
            if earlier is not None:
                self._check_retry(*earlier, charge, content)
                return earlier[0]
            if charge.unit is not None:
                self._check_unit(state.unit, charge.unit)
            recorded, spent = self._affordable(state.spent, charge, cost)
            entry = file.append(connection, state.id + 1, state.head, recorded, identifier)
        self._known = State(entry.id, entry.head, spent, state.unit or charge.unit)
        return entry

    def _check_retry(self, entry: Entry, stored: Stored | None, charge: Charge, content: str | None) -> None:
        # Refuse a request that differs from the entry with its id, or whose answer was not stored.
        if entry.charge not in (self.budget.recorded(charge), self.budget.recorded_last(charge)):
            raise RequestConflict("request_id was used before with a different question or parameters: give a new one")
        if stored is None:
            raise RequestUnanswered(
                f"request_id was charged before, as entry {entry.id}, but its answer was not stored. Nothing is"
                " refunded: to ask again, and pay again, give a new one"
            )
        if content is not None and stored.content is None:
            raise RequestConflict(
                f"request_id was used before, and the answer of entry {entry.id} was stored by hand, without a digest"
                " of its data. It may not be this table's answer. Its text is in Ledger.entries(); to ask again, and"
                " pay again, give a new request_id"
            )
        if content is not None and not stored.matches(content):
            raise RequestConflict(f"request_id was used before on other data, as entry {entry.id}: give a new one")

    def _affordable(self, spent: Amount, charge: Charge, cost: Amount) -> tuple[Charge, Amount]:
        # The charge to record and all that is spent then, if it fits into the budget. A charge of all that is left need
        # not be rounded.
        budget = self.budget
        takes_all = spent.value + cost.value == budget.limit.value
        recorded = budget.recorded_last(charge) if takes_all else budget.recorded(charge)
        total = spent.plus(budget.amount(recorded))
        if budget.admits(total):
            return recorded, total
        raise BudgetExceeded(
            f"{budget.of(cost).words} exceeds what is left of the budget, {budget.rest(spent)}:"
            f" nothing was spent or answered{_float_hint(charge)}"
        )

    def store_answer(self, id: int, answer: str, *, content: str | None = None) -> None:
        """Store the answer of an entry durably, so that a retry of its request gets it. An answer never changes.

        Args:
            id: the number of the entry.
            answer: the answer as a string.
            content: a digest of the data that the answer came from. Only a salted hash of it is stored, and no entry
                shows it.

        Raises:
            RequestConflict: the entry already has a different answer.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/hospital.ledger", budget="1")
        ...     entry = ledger.charge(Charge("favourite", "0.1"), request_id="monday")
        ...     ledger.store_answer(entry.id, "asthma")
        ...     ledger.charge(Charge("favourite", "0.1"), request_id="monday").answer
        'asthma'
        """
        if not isinstance(answer, str):
            raise InvalidType(f"answer must be a string, got {type(answer).__name__}")
        if not _validate.is_unicode(answer):
            raise InvalidValue("answer must be a string that can be encoded as UTF-8")
        with self._transaction(self._writers.writing()) as connection:
            found = file.entry_of(connection, "id", _validate.count(id=id), self._path)
            if found is None:
                raise InvalidValue(f"id must be the id of an entry, but there is no entry {id}")
            entry, stored = found
            if stored is None:
                file.store_answer(connection, entry, Stored.of(answer, content))
            elif stored.answer != answer:
                raise RequestConflict(f"entry {id} already has a different answer, and an answer never changes")

    def entries(self) -> list[Entry]:
        """Return all entries in the order in which they were charged, each confirmed by the hash chain.

        Their stored answers come with them.
        """
        return self._read_all(Reader.entries)[0]

    def charges(self) -> list[Charge]:
        """Return what was charged, in order. Of many entries that repeat each other, this is faster than `entries`.

        Equal charges are the same object: do not change their questions.
        """
        return self._read_all(Reader.charges)[0]

    def receipt(self, entry: Entry | None = None) -> Receipt:
        """Return a receipt for an entry and all before it, or for all entries. Store it in a different place.

        Args:
            entry: the last entry that the receipt covers; None for all.
        """
        last = self._confirm() if entry is None else entry
        return Receipt(self._header.identity, last.id, last.head)

    def verify(self, receipt: Receipt | None = None) -> Receipt:
        """Check every page, entry and stored answer, and return a receipt of the whole ledger.

        Args:
            receipt: if given, also check that everything up to it is there. Without one, entries that were cut off at
                the end, or that an old copy of the file lacks, are not detected.

        Raises:
            LedgerCorrupt: an entry was changed, removed, inserted or reordered, or entries of the receipt are missing.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger(f"{folder}/hospital.ledger", budget="1")
        ...     kept = ledger.receipt()
        ...     _ = ledger.spend("0.1", "ages")
        ...     ledger.verify(kept).id
        1
        """
        known = self._known
        heads = [self._header.head, *self._read_all(Reader.heads)[0]]
        if known is not None:  # what this object has already confirmed serves as a receipt
            self._check_receipt(Receipt(self._header.identity, known.id, known.head), heads)
        if receipt is not None:
            self._check_receipt(receipt, heads)
        return Receipt(self._header.identity, len(heads) - 1, heads[-1])

    def _check_receipt(self, receipt: Receipt, heads: list[str]) -> None:
        if receipt.ledger != self._header.identity:
            raise corrupt(self._path, "the receipt belongs to another ledger")
        if not 0 <= receipt.id < len(heads):
            finding = f"the receipt has {receipt.id} entries and the ledger {len(heads) - 1}"
            raise corrupt(self._path, f"{finding}: its end was cut off, or it is an old copy")
        if heads[receipt.id] != receipt.head:
            raise corrupt(self._path, f"its entries up to {receipt.id} are not those of the receipt")

    def _confirm(self) -> State:
        # Confirm everything up to now; the first time from the beginning, page by page.
        if self._known is None:
            state = self._read_all(Reader.heads)[1]
        else:
            with self._transaction(file.reading(self._path)) as connection:
                state = self._caught_up(connection)
        self._known = state  # another thread may replace it before it is returned
        return state

    def _read_all(self, read: Callable[[Reader], list[_Read]]) -> tuple[list[_Read], State]:
        with self._transaction(file.reading(self._path)) as connection:
            file.check(connection, self._path)
            reader = Reader(connection, self._start, self.budget, self._path)
            return read(reader), reader.state

    def _caught_up(self, connection: sqlite3.Connection) -> State:
        # What is known after reading the entries that others added.
        reader = Reader(connection, self._known or self._start, self.budget, self._path)
        reader.heads()
        return reader.state

    @contextmanager
    def _transaction(self, opened: AbstractContextManager[sqlite3.Connection]) -> Iterator[sqlite3.Connection]:
        # A transaction on the ledger that was opened, not on one that was put in its place.
        with opened as connection:
            if file.read_header(connection, self._path) != self._header:
                raise corrupt(self._path, "its header was changed, or another ledger was put in its place")
            yield connection


def _absolute(path: Any) -> Path:
    # The absolute path of a file, which stays valid if the process changes its directory.
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(f"path must be the path of a file, got {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue("path must be the path of a file as a non-empty string")
    return Path(text).absolute()


def _name(**parameter: Any) -> str:
    # A name from the user, such as a request id: short and printable.
    [(name, text)] = parameter.items()
    if not isinstance(text, str):
        raise InvalidType(f"{name} must be a string, got {type(text).__name__}")
    if not 1 <= len(text) <= _LONGEST_NAME or not text.isprintable():
        raise InvalidValue(f"{name} must be 1 to {_LONGEST_NAME} printable characters")
    return text


def _float_hint(charge: Charge) -> str:
    # A hint for a charge given as a float: three times 0.1 exceeds 0.3.
    epsilon = charge.each
    if charge.rho != charge.least_rho:  # the epsilon was computed from rho
        return ""
    nearest = float_near(epsilon)
    written = repr(nearest)
    if not math.isfinite(nearest) or Fraction(written) == epsilon or Fraction(nearest) != epsilon:
        return ""
    return f" (the float {written} is not exactly {written}: write '{written}')"
