"""The recipe of the count tables, and what its claims say of altered numbers and altered tasks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.data.tasks import MixtureCopy, PermutationCopy, SampledCopy
from attnscope.errors import UsageError
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.snell import cooccurrence as recipe
from attnscope.running.run import draw, run
from attnscope.runs.result import Matrix, Measurement, Result
from attnscope.runs.spec import read_settings
from attnscope.theory import counted_text
from attnscope.training.engine.workers import Workers
from cases import for_each

CONFIG = recipe.Config(
    sentences=1000, length=12, control_types=18, pairs=200, reviews=300, polar_in=5
)


def measure(config: recipe.Config, folder: Path) -> Result:
    with Workers(folder, 1) as workers:
        rows = recipe.measure(config, Lab(workers))
    return Result(
        recipe="snell/cooccurrence",
        scale="full",
        config=config.model_dump(mode="json"),
        environment={},
        seconds=0,
        measurements=tuple(row for row in rows if isinstance(row, Measurement)),
        pictures=tuple(row for row in rows if isinstance(row, Matrix)),
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return measure(CONFIG, tmp_path_factory.mktemp("workspace"))


def decide(claim: str, result: Result) -> Decision:
    return recipe.CLAIMS[claim](Pool((result,)))


def uninformative(result: Result) -> Verdict:
    return decide("snell.table-uninformative", result).verdict


def altered(result: Result, name: str, value: float, **axes: str) -> Result:
    """Put another value, with no interval to speak of, in the place of some measurements."""

    def changed(row: Measurement) -> Measurement:
        if row.name != name or any(row.axes[key] != wanted for key, wanted in axes.items()):
            return row
        return row.model_copy(update={"value": value, "low": value, "high": value})

    rows = tuple(changed(row) for row in result.measurements)
    assert rows != result.measurements
    return result.model_copy(update={"measurements": rows})


def test_tables_are_uninformative_as_claimed(result: Result) -> None:
    assert uninformative(result) is Verdict.HOLDS


@for_each(
    ("name", "role", "value"),
    [
        ("listed_sentences_off", "permutations", 0.01),
        ("listed_sentences_off", "mixture", 0.01),
        ("listed_sentences_off", "control", 0.01),
        ("fixed_entries_off", "control", 0.01),
        ("spread_within_sets", "permutations", 0.01),
        ("spread_within_sets", "mixture", 0.01),
        ("between_sets", "mixture", 0.01),
        ("largest_z", "mixture", 5.0),
        ("largest_z", "control", 5.0),
        ("own_word_largest", "control", 0.0),
    ],
)
def test_any_one_altered_number_fails_the_claim(
    result: Result, name: str, role: str, value: float
) -> None:
    assert uninformative(altered(result, name, value, role=role)) is Verdict.FAILS


def test_control_may_spread(result: Result) -> None:
    spread = altered(result, "spread_within_sets", 0.9, role="control")
    assert uninformative(spread) is Verdict.HOLDS


@for_each("role", recipe.ROLES)
def test_claim_needs_every_distribution(result: Result, role: str) -> None:
    rows = tuple(row for row in result.measurements if row.axes.get("role") != role)
    missing = result.model_copy(update={"measurements": rows})
    assert uninformative(missing) is Verdict.UNDECIDED


def test_words_drawn_with_repetition_are_no_permutations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def repeated(self: PermutationCopy, stream: torch.Generator, size: int) -> Tensor:
        return torch.randint(self.length, (size, self.length), generator=stream)

    monkeypatch.setattr(PermutationCopy, "draw_words", repeated)
    assert uninformative(measure(CONFIG, tmp_path)) is Verdict.FAILS


def test_mixture_that_prefers_one_set_is_caught_by_its_standard_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def biased(self: MixtureCopy, stream: torch.Generator, size: int) -> Tensor:
        words = torch.rand(size, self.length, generator=stream).argsort(1)
        return words + (torch.rand(size, 1, generator=stream) < 0.6) * self.length

    monkeypatch.setattr(MixtureCopy, "draw_words", biased)
    biased_result = measure(CONFIG, tmp_path)
    assert uninformative(biased_result) is Verdict.FAILS
    assert biased_result.select("spread_within_sets", role="mixture")[0].value == 0


def test_control_that_prefers_some_words_is_caught_by_its_standard_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def biased(self: SampledCopy, stream: torch.Generator, size: int) -> Tensor:
        keys = torch.rand(size, self.types, generator=stream)
        keys[:, 0] *= 0.5
        return keys.argsort(1)[:, : self.length]

    monkeypatch.setattr(SampledCopy, "draw_words", biased)
    assert uninformative(measure(CONFIG, tmp_path)) is Verdict.FAILS


def test_permutations_are_constant_and_only_the_control_knows_its_words(result: Result) -> None:
    known = {row.axes["role"]: row.value for row in result.select("own_word_largest")}
    assert known == {"permutations": 0, "mixture": 0, "control": 1}


def test_bound_grows_with_the_number_of_entries(result: Result, tmp_path: Path) -> None:
    more = measure(CONFIG.model_copy(update={"control_types": 30}), tmp_path)
    (few,), (many,) = (run_.select("largest_z", role="control") for run_ in (result, more))
    assert many.n > few.n
    assert float(many.axes["bound"]) > float(few.axes["bound"]) > 3


def with_corpora(result: Result, differences: dict[str, float]) -> Result:
    own = result.select("ibm_difference")
    more = [
        own[0].model_copy(update={"dataset": name, "value": value})
        for name, value in differences.items()
    ]
    return result.model_copy(update={"measurements": (*result.measurements, *more)})


def test_own_corpora_alone_leave_the_ibm_claim_undecided(result: Result) -> None:
    decision = decide("snell.counts-are-ibm", result)
    assert decision.verdict is Verdict.UNDECIDED
    assert "real corpora" in decision.note
    assert set(decision.evidence) == {"grammar-translation", "grammar-sentiment"}
    assert max(row.value for row in decision.evidence.values()) < 1e-12


def test_one_real_corpus_leaves_the_ibm_claim_undecided(result: Result) -> None:
    decision = decide("snell.counts-are-ibm", with_corpora(result, {"multi30k": 1e-15}))
    assert decision.verdict is Verdict.UNDECIDED


def test_two_real_corpora_decide_the_ibm_claim(result: Result) -> None:
    equal = with_corpora(result, {"multi30k": 1e-15, "sst": 0.0})
    assert decide("snell.counts-are-ibm", equal).verdict is Verdict.HOLDS


@pytest.mark.parametrize("name", ["multi30k", "grammar-translation"])
def test_any_corpus_with_other_counts_fails_the_ibm_claim(result: Result, name: str) -> None:
    unequal = with_corpora(result, {name: 1e-3, "sst": 0.0})
    assert decide("snell.counts-are-ibm", unequal).verdict is Verdict.FAILS


def test_counts_of_a_later_em_step_are_not_the_count_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def skewed(input_types: int, output_types: int) -> Tensor:
        return torch.rand(input_types, output_types, generator=torch.Generator()).double()

    monkeypatch.setattr(counted_text, "uniform_translation", skewed)
    later = measure(CONFIG, tmp_path)
    assert all((row.value or 0) > 0.1 for row in later.select("ibm_difference"))


def test_counts_of_figure_1_equal_a_count_by_hand(result: Result) -> None:
    pairs = translation_corpus()["train"][: CONFIG.pairs]
    table = result.picture(Matrix, "count", "grammar-translation")
    shown = pairs[CONFIG.example_pair]
    assert table.rows == tuple(shown.source)
    assert table.columns == tuple(shown.target)
    for word, line in zip(shown.source, table.values, strict=True):
        for output, value in zip(shown.target, line, strict=True):
            by_hand = [p.source.count(word) * p.target.count(output) / len(p.source) for p in pairs]
            assert value == pytest.approx(sum(by_hand), rel=1e-12)


def table_of(result: Result, name: str, dataset: str) -> np.ndarray:
    return np.array(result.picture(Matrix, name, dataset).values, dtype=float)


def test_alignments_of_each_output_word_share_one(result: Result) -> None:
    for dataset in recipe.OWN_CORPORA:
        assert table_of(result, "alignment", dataset).sum(0) == pytest.approx(1)


def test_alignment_follows_the_translation_of_the_words(result: Result) -> None:
    for dataset in recipe.OWN_CORPORA:
        translation = table_of(result, "translation", dataset)
        aligned = table_of(result, "alignment", dataset)
        assert aligned == pytest.approx(translation / translation.sum(0))


def test_polarity_equals_a_count_by_hand(result: Result) -> None:
    reviews = sentiment_corpus()["train"][: CONFIG.reviews]
    for row in result.select("polarity"):
        inside = [review for review in reviews if row.axes["word"] in review.tokens]
        shares = [r.tokens.count(str(row.axes["word"])) / len(r.tokens) for r in inside]
        positive = sum(share * r.label for share, r in zip(shares, inside, strict=True))
        assert row.value == pytest.approx(positive / sum(shares))
        assert row.n == len(inside)
        assert (row.low or 0) <= (row.value or 0) <= (row.high or 0)


def test_no_neutral_word_is_as_polar_as_the_polar_ones(result: Result) -> None:
    groups: dict[object, list[float]] = {}
    for row in result.select("polarity"):
        groups.setdefault(row.axes["group"], []).append(row.value or 0)
    assert [len(values) for values in groups.values()] == [CONFIG.shown_words] * 3
    assert min(groups["positive"]) > max(groups["frequent"])
    assert min(groups["frequent"]) > max(groups["negative"])


def test_rare_words_are_never_called_polar(tmp_path: Path) -> None:
    strict = measure(CONFIG.model_copy(update={"polar_in": 15}), tmp_path)
    polar = [row for row in strict.select("polarity") if row.axes["group"] != "frequent"]
    assert polar
    assert min(row.n for row in polar) >= 15


@for_each(
    ("settings", "named"),
    [
        ({"length": 60}, "length=60"),
        ({"letters": 6}, "letters=6"),
        ({"pairs": 1}, "pairs=1"),
        ({"reviews": 2}, "reviews=2"),
    ],
)
def test_settings_that_contradict_each_other_are_named(
    settings: dict[str, int], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        read_settings(recipe.Config, settings, "snell/cooccurrence")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("quick")
    finished = run("snell/cooccurrence", quick=True, device="cpu", out=folder)
    assert finished.result.scale == "quick"
    paths = {path.name: path for path in finished.figures}
    return lambda name: paths[name]


def test_quick_run_shows_that_the_tables_are_uninformative(
    quick: Callable[[str], Path],
) -> None:
    from attnscope.runs.result import read_result

    found = read_result(quick("fig1.svg").parents[1] / "result.json")
    assert uninformative(found) is Verdict.HOLDS


@for_each(
    ("figure", "words"),
    [
        ("fig1", ("Frau", "woman", "Alignment of each output (Eq. 19)")),
        ("fig4", ("Permutations of 4 words", "Control: 4 of 6 words", "0.250")),
        ("fig5", ("Trans(positive | word)", "tender", "positive")),
        ("fig8", ("Permutations of one of two sets of 4 words", "0.000")),
    ],
)
def test_quick_run_draws_every_figure_with_its_words(
    quick: Callable[[str], Path], figure: str, words: tuple[str, ...]
) -> None:
    drawing = quick(f"{figure}.svg").read_text()
    assert all(word in drawing for word in words)
    assert quick(f"{figure}.png").stat().st_size > 10_000


def test_figures_are_drawn_from_the_result_alone(quick: Callable[[str], Path]) -> None:
    before = quick("fig5.svg").read_bytes()
    quick("fig5.svg").unlink()
    draw(quick("fig1.svg").parents[1])
    assert quick("fig5.svg").read_bytes() == before
