"""One test over many cases: all of them are run, and every one that fails is shown."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(
    names: str | tuple[str, ...], cases: Iterable[Any], ids: Any = None
) -> Callable[[Test], Test]:
    """Give a test every case in turn, as `pytest.mark.parametrize` does, but in one test.

    For many cheap cases of one assertion. Every case has a `tmp_path` and a `monkeypatch` of its
    own; other fixtures are shared. Two such decorators give the product of their cases.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [case if len(keys) > 1 else (case,) for case in cases]
    labels = _labels(listed, ids)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def over_all_cases(*args: Any, **fixtures: Any) -> None:
            failed: list[Exception] = []
            for number, (case, label) in enumerate(zip(listed, labels, strict=True)):
                with _own(fixtures, number) as own:
                    failure = _failure(test, args, own | dict(zip(keys, case, strict=True)))
                if failure is not None:
                    failure.add_note(f"case: {label}")
                    failed.append(failure)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(listed)} cases failed", failed)

        kept = [given for name, given in signature.parameters.items() if name not in keys]
        over_all_cases.__signature__ = signature.replace(parameters=kept)
        return over_all_cases

    assert listed, "a test without cases holds of nothing"
    return decorate


def _labels(cases: list[Any], ids: Any) -> list[str]:
    if ids is None:
        return [", ".join(map(repr, case)) for case in cases]
    if callable(ids):
        return [", ".join(str(ids(value)) for value in case) for case in cases]
    return list(ids)


@contextmanager
def _own(fixtures: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Fixtures for one case, so that no case sees the files and the patches of another."""
    own = dict(fixtures)
    with ExitStack() as stack:
        if "tmp_path" in own:
            own["tmp_path"] = fixtures["tmp_path"] / f"case{number}"
            own["tmp_path"].mkdir()
        if "monkeypatch" in own:
            own["monkeypatch"] = stack.enter_context(fixtures["monkeypatch"].context())
        yield own


def _failure(test: Test, args: tuple[Any, ...], given: dict[str, Any]) -> Exception | None:
    try:
        test(*args, **given)
    except pytest.skip.Exception as skipped:
        return AssertionError(f"one case of many cannot be skipped: {skipped}")
    except pytest.fail.Exception as failed:  # as of pytest.raises, where nothing was raised
        return AssertionError(str(failed)).with_traceback(failed.__traceback__)
    except Exception as error:
        return error
    return None
