"""The first hour of use: what README and examples show works as they show it."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnscope
import attnscope.training.trained_unit
from attnscope.data.grammar import translation_corpus
from attnscope.data.selection import check
from attnscope.errors import AttnscopeError, UsageError
from attnscope.training.demo import DEMO
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def demo() -> TrainedUnit:
    return attnscope.load("demo")


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    reviews = [f"a {word} film number {n}\t{word}" for n in range(40) for word in ("good", "bad")]
    (tmp_path / "reviews.tsv").write_text("\n".join(reviews))
    exec("\n".join(blocks), {})
    assert check("my-reviews").selected["train"].n > 60
    for name in ("attention.svg", "probe.csv", "probe.npz"):
        assert (tmp_path / name).stat().st_size > 100


def test_the_walk_of_the_architecture_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), {})
    assert (tmp_path / "runs" / "snell" / "cooccurrence" / "quick" / "result.json").exists()
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_own_model_example_is_short_keeps_the_contract_and_is_probed(tmp_path: Path) -> None:
    example = ROOT / "examples" / "own_model.py"
    assert len(example.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "BROKEN" not in done.stdout
    assert done.stdout.count("kept") == 9
    assert (tmp_path / "own_model.csv").exists()


def test_the_demo_is_the_unit_that_the_code_describes(demo: TrainedUnit) -> None:
    assert demo.unit == DEMO
    assert demo.folder.finished() == (True, [])


def test_the_demo_translates_held_out_sentences(demo: TrainedUnit) -> None:
    right = 0
    pairs = translation_corpus()["val"][:40]
    for pair in pairs:
        _, output = demo.score("attention", " ".join(pair.source)).words(0)
        right += output == [*pair.target, "<eos>"]
    assert right / len(pairs) > 0.8


def test_a_word_that_the_demo_does_not_know_is_named(demo: TrainedUnit) -> None:
    with pytest.raises(UsageError, match="'Xylophon'"):
        demo.score("attention", "das Xylophon .")


def test_a_stored_score_is_what_the_model_gives(demo: TrainedUnit) -> None:
    for name in ("attention", "lexical_probe"):
        stored, fresh = demo.stored(name).array(), demo.score(name).array()
        np.testing.assert_allclose(stored, fresh, atol=1e-4)


@for_each(
    ("call", "sentence"),
    [
        (lambda demo: demo.score("atention"), "did you mean 'attention'"),
        (lambda demo: demo.stored("saliency"), "stores no 'saliency'"),
        (lambda demo: demo.stored("attention", 7), "stores no"),
        (lambda demo: attnscope.load("no-such-unit"), "There is no unit"),
        (lambda demo: attnscope.load(ROOT), "is not a unit"),
        (lambda demo: attnscope.heatmap(demo.score("attention"), example=99), "has 8 examples"),
    ],
)
def test_an_error_in_python_is_one_sentence(call, sentence: str, demo: TrainedUnit) -> None:
    with pytest.raises(AttnscopeError, match=sentence) as caught:
        call(demo)
    assert "\n" not in str(caught.value)


def test_docstring_examples_are_true() -> None:
    assert doctest.testmod(attnscope.training.trained_unit).failed == 0
