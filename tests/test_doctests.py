"""The examples in the docstrings are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import scikitplot.agent

MODULES = [
    "scikitplot.agent",
    *(
        found.name
        for found in pkgutil.walk_packages(scikitplot.agent.__path__, "scikitplot.agent.")
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
