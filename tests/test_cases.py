"""One test over many cases: nothing is lost against one test per case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cases import for_each


def failures(test, **fixtures) -> list[str]:
    """Return the notes of all failing cases."""
    with pytest.raises(ExceptionGroup) as caught:
        test(**fixtures)
    return [" in ".join(error.__notes__) for error in caught.value.exceptions]


def test_every_failing_case_is_shown_and_no_case_is_left_out():
    seen = []

    @for_each("number", [1, 2, 3, 4])
    def even(number):
        seen.append(number)
        assert number % 2 == 0

    assert failures(even) == ["case: 1", "case: 3"]
    assert seen == [1, 2, 3, 4]


def test_two_decorators_give_the_product_of_their_cases():
    seen = []

    @for_each("a", "xy")
    @for_each(("b", "c"), [(1, 2), (3, 4)])
    def collect(a, b, c):
        seen.append((a, b, c))

    collect()
    assert seen == [("x", 1, 2), ("x", 3, 4), ("y", 1, 2), ("y", 3, 4)]


def test_an_error_that_is_not_raised_and_a_skipped_case_are_failures():
    @for_each("number", [0, 1, 2])
    def raises(number):
        if number == 2:
            pytest.skip("not here")
        with pytest.raises(ZeroDivisionError):
            1 / number

    assert failures(raises) == ["case: 1", "case: 2"]


def test_every_case_has_files_and_patches_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    @for_each("number", [0, 1])
    def leave_traces(number, tmp_path, monkeypatch):
        assert "ATTNSCOPE_CASE" not in os.environ
        monkeypatch.setenv("ATTNSCOPE_CASE", str(number))
        (tmp_path / "file").touch(exist_ok=False)

    leave_traces(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert "ATTNSCOPE_CASE" not in os.environ


def test_no_cases_are_an_error():
    with pytest.raises(AssertionError, match="without cases"):
        for_each("number", [])
