"""Documented modules that moved: the old names work, and say where the new ones are."""

import importlib
import pickle
import sys
import warnings

import pytest

import dpselect
from dpselect._old_homes import _NEW_HOMES, _OldHomes, install


@pytest.mark.parametrize(("old", "new"), _NEW_HOMES.items())
def test_an_old_home_has_the_names_of_the_new_one(old, new):
    for name in [name for name in sys.modules if name == old or name.startswith(f"{old}.")]:
        del sys.modules[name]
    with warnings.catch_warnings():  # the home of the home may be old too
        warnings.simplefilter("ignore")
        importlib.import_module(old.rpartition(".")[0])
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        found = importlib.import_module(old)
    there = importlib.import_module(new)
    public = [name for name in vars(there) if not name.startswith("_")]
    assert all(getattr(found, name) is getattr(there, name) for name in public)


def test_documented_names_are_where_they_were():
    sys.modules.pop("dpselect.mechanisms.summary", None)
    with pytest.warns(DeprecationWarning, match="now dpselect.streaming.summary"):
        from dpselect.mechanisms.summary import Summary  # noqa: PLC0415
    assert Summary is dpselect.Summary


# What version 0.2.0 pickled: the class, its exact epsilon and its claim, by the function of the old module.
OLD_PICKLE = (
    b"cdpselect.mechanisms.record\n_made\n(cdpselect.mechanisms.permute_and_flip\nPermuteAndFlip\n"
    b"cfractions\nFraction\n(I1\nI10\ntR(dS'sensitivity'\nI2\nsS'monotonic'\nI01\nstR."
)


def test_old_pickles_load():
    sys.modules.pop("dpselect.mechanisms.record", None)
    with pytest.warns(DeprecationWarning, match="now dpselect.mechanisms.parameters"):
        assert pickle.loads(OLD_PICKLE) == dpselect.PermuteAndFlip("0.1", 2, monotonic=True)  # noqa: S301 - ours


def test_other_names_are_not_found_and_installing_twice_is_once():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dpselect.mechanisms.nothing")
    install()
    assert sum(isinstance(finder, _OldHomes) for finder in sys.meta_path) == 1


def test_the_public_names_are_listed():
    assert dir(dpselect) == sorted(dpselect.__all__)
    assert all(getattr(dpselect, name) is not None for name in dpselect.__all__)
