"""Declared names: a table of a recipe's measures, and errors for names and axes outside it."""

from __future__ import annotations

import re

import pytest

from attnscope.errors import UsageError
from attnscope.runs.measures import (
    Measure,
    arguments_of,
    check_declared,
    measure_of,
    read_measures,
)
from attnscope.runs.result import Matrix, Measurement
from cases import for_each

TABLE = {
    "gap": Measure("How far apart.", axes=("model", "step")),
    "A()": Measure("Agreement of {0} and {1}.", of=("alpha", "beta")),
}


def row(name: str, **axes: str) -> Measurement:
    return Measurement(name=name, dataset="d", axes=axes, value=0.0, n=1)


def test_declared_names_and_some_of_their_axes_are_allowed():
    picture = Matrix.of("gap", "d", [[1.0]], axes={"model": "own"}, n=1)
    check_declared(TABLE, [row("gap"), row("gap", model="own"), row("A(alpha, beta)"), picture], "")


@for_each("name", ["gpa", "A", "A(alpha,delta)", "gap(alpha)"])
def test_another_name_is_an_error_that_shows_the_nearest(name):
    with pytest.raises(UsageError, match=re.escape(f"own/one measured {name!r}")):
        check_declared(TABLE, [row(name)], "own/one")


def test_another_axis_is_an_error_that_shows_the_valid_ones():
    with pytest.raises(UsageError, match=r"'gap' has no axis 'modle'; did you mean 'model'"):
        check_declared(TABLE, [row("gap", modle="own")], "own/one")


def test_arguments_are_what_stands_in_brackets_at_the_end():
    assert arguments_of("A(alpha,beta_uf)") == ("A()", ("alpha", "beta_uf"))
    assert arguments_of("mean AUC(weight)") == ("mean AUC()", ("weight",))
    assert arguments_of("F/E at the start") == ("F/E at the start", ())
    assert arguments_of("beta(gold) difference") == ("beta(gold) difference", ())


def test_a_table_is_read_from_a_file(tmp_path):
    path = tmp_path / "measures.csv"
    path.write_text(
        "name,of,axes,label,says\n"
        "xi(),alpha beta,way step,ξ,Better than {0}.\n"
        'gap,,,,"How far, in steps."\n'
    )
    table = read_measures(path)
    assert measure_of(table, "xi(beta)") == Measure(
        "Better than {0}.", ("way", "step"), "ξ", ("alpha", "beta")
    )
    assert table["gap"] == Measure("How far, in steps.")
