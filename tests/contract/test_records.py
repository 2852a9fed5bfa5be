"""Every record is frozen: what was checked when it was made cannot change afterwards."""

import dataclasses
import importlib
import pkgutil
from types import SimpleNamespace

import pytest

from dpselect import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, accounting, mechanisms, selection
from dpselect.errors import InvalidType, InvalidValue
from dpselect.mechanisms.base import MECHANISMS, name_of
from dpselect.mechanisms.parameters import claim_of, stated


def records():
    for package in (selection, mechanisms, accounting):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == info.name:
                    yield value


@pytest.mark.parametrize("record", list(records()), ids=lambda record: record.__name__)
def test_records_are_frozen(record):
    assert record.__dataclass_params__.frozen


def test_only_records_of_public_things_show_their_fields():
    """The others hold scores, or what was drawn."""
    public = {"Approximate", "Charge", "Claim", "Guarantee", "Rate"}
    public |= {"Factor", "Finding", "Price", "Repeated", "Sensitivity", "Threshold", "Total"}
    assert {record.__name__ for record in records() if record.__dataclass_params__.repr} == public
    assert {"Arrival", "Hot", "Part", "Rate", "MechanismBase"} <= {record.__name__ for record in records()}


@pytest.mark.parametrize(
    ("claim", "text", "fields"),
    [
        (stated("1/3", monotonic=True), "sensitivity 1/3, monotonic", {"sensitivity": "1/3", "monotonic": True}),
        (stated(score_range=3), "score range 3", {"score_range": "3"}),
    ],
)
def test_claims_are_shown_as_they_were_stated(claim, text, fields):
    assert (str(claim), claim.to_dict()) == (text, fields)


def test_a_foreign_mechanism_is_taken_by_its_sensitivity():
    foreign = SimpleNamespace(sensitivity=3, monotonic=False, score_range=1)
    assert claim_of(foreign) == stated(3)
    assert claim_of(SimpleNamespace(score_range=1)) == stated(score_range=1)


def test_every_mechanism_has_one_name():
    kinds = [PermuteAndFlip, ExponentialMechanism, ReportNoisyMax]
    assert [(name_of(kind(1)), kind) for kind in kinds] == list(MECHANISMS.items())


class Altered(PermuteAndFlip):
    """It could draw in another way, and has no name of its own."""


@pytest.mark.parametrize("other", [SimpleNamespace(epsilon=1), SimpleNamespace(name="exponential"), Altered(1), None])
def test_nothing_else_has_the_name_of_a_mechanism(other):
    with pytest.raises(InvalidType, match="mechanism must be"):
        name_of(other)


def test_a_name_cannot_be_given_twice():
    with pytest.raises(InvalidValue, match="there is already a mechanism named 'exponential'"):
        type("Another", (ExponentialMechanism,), {"name": "exponential"})
    assert MECHANISMS["exponential"] is ExponentialMechanism


def test_a_class_may_be_defined_again_as_in_a_notebook():
    def defined():
        return type("Again", (ExponentialMechanism,), {"name": "again", "__module__": "notebook"})

    try:
        defined()
        second = defined()
        assert MECHANISMS["again"] is second
    finally:
        del MECHANISMS["again"]
