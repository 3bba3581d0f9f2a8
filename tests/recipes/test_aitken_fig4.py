"""Figure 4's units, its numbers on networks and matrices that are known, and its predicates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from attnscope.analysis import dictionary
from attnscope.analysis.alignment_terms import TERM_NAMES
from attnscope.analysis.dictionary import context_readout
from attnscope.analysis.measures.numbers import number as key
from attnscope.analysis.network import Network
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.parallel_words import ParallelWords, open_words
from attnscope.errors import UsageError
from attnscope.models.encoder_decoder import EncoderDecoder
from attnscope.recipes.aitken import fig4, fig5
from attnscope.recipes.aitken.translation import (
    long_sentences,
    measure_text,
    network_of,
    translator,
)
from attnscope.recipes.aitken.units import ArchitectureName, Group
from attnscope.recipes.kit.lab import Lab
from attnscope.runs.pictures import Matrix, Plane
from attnscope.runs.result import Measurement, Result
from attnscope.runs.spec import read_settings
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.workers import Workers
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
GRAMMAR = GrammarTranslation()
CLAIMS = fig4.CLAIMS | fig5.CLAIMS


def config(**settings: Any) -> fig4.Config:
    return read_settings(fig4.Config, {**fig4.QUICK, "hidden": 24, **settings}, "fig4")


def trained(model: ArchitectureName, source: Any = GRAMMAR, **settings: Any) -> TrainedUnit:
    """Return a unit as it is built, without a folder."""
    made = translator(config(**settings), source, model, 0)
    found = TrainedUnit(made, UnitFolder(Path("nowhere")))
    # What `cached_property` would keep once it had read the folder.
    vars(found)["model"] = made.model.build(source, 0).eval().requires_grad_(False)
    return found


def untrained(model: ArchitectureName, source: Any = GRAMMAR, **settings: Any) -> Network:
    """Return its network."""
    return network_of(trained(model, source, **settings), 120)


@cache
def network(model: ArchitectureName) -> Network:
    return untrained(model)


# Units.


def test_both_networks_look_words_up_and_learn_by_plain_adam() -> None:
    for model in ("aed", "ao"):
        unit = translator(fig4.Config(), GRAMMAR, model, 3)
        assert unit.model.words == "rows"  # type: ignore[attr-defined]
        assert unit.training.optimizer == Adam(lr=1e-3)
        assert (unit.seed, unit.training.steps, unit.training.batch_size) == (3, 20_000, 64)


def test_positions_of_attention_alone_lie_where_no_word_is() -> None:
    unit = translator(config(room=20), GRAMMAR, "ao", 0)
    words = max(len(GRAMMAR.input_words), len(GRAMMAR.output_words))
    built = unit.model.build(GRAMMAR, 0)
    assert isinstance(built, EncoderDecoder)
    places = built.positions(0, 16)
    assert places.shape == (16, words + 20)
    assert not places[:, :words].any()
    assert torch.linalg.matrix_rank(places[:, words:].double()) == 16


def test_three_seeds_and_english_to_french_are_the_default() -> None:
    full = fig4.Config()
    assert (full.corpus, full.seeds, full.longest, full.part) == ("tatoeba-en-fr", 3, 15, "")
    assert full.dictionary == (("la", "the"), ("le", "the"), ("les", "the"))


def test_pairs_are_read_from_the_command_line() -> None:
    assert config(dictionary="un=a,je=i").dictionary == (("un", "a"), ("je", "i"))
    with pytest.raises(UsageError, match="dictionary"):
        config(dictionary="un")


# Passes.


def test_terms_are_those_of_sentences_with_enough_tokens_on_both_sides() -> None:
    found = [trace.batch for trace in long_sentences(network("aed"), 10).passes()]
    lengths = [(int(i) - 1, int(o) - 1) for b in found for i, o in _lengths(b)]
    every = [(int(i) - 1, int(o) - 1) for i, o in _lengths(network("aed").sequences)]
    assert lengths == [pair for pair in every if min(pair) >= 10]
    assert 0 < len(lengths) < len(every)
    assert sum(len(trace.batch) for trace in network("aed").traces()) == len(every)


def _lengths(batch: Any) -> list[tuple[Any, Any]]:
    return list(zip(batch.input_lengths, batch.target_lengths, strict=True))


def test_the_network_is_analysed_on_its_own_words() -> None:
    own, right = network("aed"), network_of(trained("aed"), 120, "on")
    read = next(own.traces()).batch.decoder_inputs
    assert not read.equal(next(right.traces()).batch.decoder_inputs)
    assert read[:, 1:].equal(next(own.traces()).logits.argmax(-1)[:, :-1])


def test_accuracy_is_of_all_words_up_to_the_end() -> None:
    right = total = 0
    for trace in network_of(trained("aed"), 120, "on").traces():
        mask = trace.batch.target_mask
        right += int((trace.logits.argmax(-1) == trace.batch.targets)[mask].sum())
        total += int(mask.sum())
    assert network_of(trained("aed"), 120, "on").accuracy == pytest.approx(right / total)


# Figure 5 shows them again.


def test_figure_5_has_the_networks_of_figure_4() -> None:
    assert fig5.Config().translation == fig4.Config()


def test_figure_5_has_all_that_its_claims_ask_of_a_translation() -> None:
    found, lines = measure_text(network("ao"), 10)
    for wanted in (
        key("offset_change", of="maximum"),
        key("width_change"),
        key("diagonal_change"),
        key("variance_drop"),
        key("attention_similarity"),
        key("term_share", form="raw", term="muD.muE"),
    ):
        assert wanted in found
    assert key("peak_offset") in lines


# Numbers.


@pytest.mark.parametrize("model", ["aed", "ao"])
def test_nine_shares_sum_to_one_and_gaps_are_taken_of_them(model: ArchitectureName) -> None:
    found, lines = measure_text(network(model), 10)
    for form in ("raw", "centred"):
        shares = [found[key("term_share", form=form, term=term)] for term in TERM_NAMES]
        assert sum(shares) == pytest.approx(1)
        assert found[key("largest_share", form=form)] == max(shares)
    at = torch.stack([lines[key("term_share_at", term=term)].y for term in TERM_NAMES])
    assert torch.allclose(at.sum(0), torch.ones(at.shape[1]).double())
    for step in (1, 2, 3):
        gap = found[key("early_gap", form="raw", step=step)]
        assert gap == pytest.approx(float(at[0, step - 1] - at[1:, step - 1].max()))
    expected = float(at[0, 7:].mean() - at[0, :3].mean())
    assert found[key("late_difference", form="raw")] == pytest.approx(expected)


def dictionary_of(one: Network, settings: fig4.Config) -> tuple[dict[Any, Any], Matrix]:
    """Return the share and the alignments of the asked words, and all products."""
    *rows, products = fig4.dictionary_rows(Group(GRAMMAR, "ao", 1).sheet([0]), [one], settings)
    assert isinstance(products, Matrix)
    found = {row.axes.get("output", row.name): row.value for row in rows if hasattr(row, "value")}
    return found, products


def test_readouts_made_of_the_input_components_are_a_dictionary() -> None:
    one = untrained("ao", hidden=48)
    settings = config(dictionary="teacher=Lehrer,child=Kind,has=hat")
    common = dictionary.common_words(GRAMMAR, "inputs", settings.common)
    vectors = one.states.encoder.words(torch.tensor(common))
    duals = torch.linalg.pinv(vectors).mT.float()  # each times its own component is 1, else 0
    place = {GRAMMAR.input_words.words[word]: number for number, word in enumerate(common)}
    weight = one.model.output.weight
    for output, word in settings.dictionary:
        weight[GRAMMAR.output_words.id(output)] = duals[place[word]]
    found, products = dictionary_of(one, settings)
    assert found["dictionary"] == 1
    assert set(products.columns) == set(place)
    for output, word in settings.dictionary:
        line = dict(
            zip(products.columns, products.values[products.rows.index(output)], strict=True)
        )
        assert line.pop(word) == pytest.approx(1, abs=1e-3)
        assert list(line.values()) == pytest.approx([0] * len(line), abs=1e-3)
    weight[GRAMMAR.output_words.id("has")] = duals[place["das"]]
    found, _ = dictionary_of(one, settings)
    assert found["dictionary"] == pytest.approx(2 / 3)
    assert found["has"] == 0


def test_what_a_corpus_does_not_have_is_not_asked_and_gives_no_share() -> None:
    found, _ = dictionary_of(network("ao"), config(dictionary="la=the,has=hat"))
    assert set(found) == {"has"}


def test_of_attention_and_state_the_readout_of_the_context_is_taken() -> None:
    model = network("aed").model
    assert context_readout(model).equal(model.output.weight[:, model.output.weight.shape[1] // 2 :])


def test_the_most_common_words_come_first_without_boundaries(tmp_path: Path) -> None:
    rows = [(f"a{n} a{n}", "the a the") for n in range(20)] + [("b b", "has a the")] * 20
    source = open_words(write_corpus(tmp_path / "mine", rows, languages=("x", "y")))
    words = source.output_words.words
    found = dictionary.common_words(source, "targets", 5)
    assert [words[index] for index in found] == ["the", "a", "has"]
    assert dictionary.common_words(source, "targets", 1) == found[:1]


def test_outputs_longer_than_inputs_are_counted_in_tokens_without_the_end(tmp_path: Path) -> None:
    rows = [(f"a{n} b c d e", f"x{n} y z v w u") for n in range(40)]
    source = open_words(write_corpus(tmp_path / "mine", rows, languages=("a", "b")))
    assert isinstance(source, ParallelWords)
    excess = fig4.length_excess(source)
    assert (excess.value, excess.low, excess.high) == pytest.approx((0.2, 0.2, 0.2))


def test_the_example_is_the_given_sentence_and_what_the_network_writes() -> None:
    example, path, temporal = fig4.shown(
        Group(GRAMMAR, "aed", 1), network("aed"), "das Kind lacht ."
    )
    assert isinstance(example, Matrix)
    assert example.columns == ("das", "Kind", "lacht", ".", "<eos>")
    assert example.rows
    assert "<eos>" not in example.rows[:-1]
    for line in example.values:
        assert sum(weight or 0.0 for weight in line) == pytest.approx(1, abs=1e-3)
    assert isinstance(path, Plane)
    assert isinstance(temporal, Matrix)


# A corpus of one's own.


def test_a_folder_of_ones_own_is_translated(tmp_path: Path) -> None:
    rows = [
        (f"the {a} sees the {b} and {'very ' * n}old {c} .", f"la {a}o voit le {b}o et {c}o .")
        for a in "abcd"
        for b in "efgh"
        for c in "ijk"
        for n in range(3)
    ]
    folder = write_corpus(tmp_path / "mine", rows, languages=("en", "fr"), validation=0.3)
    settings = config(corpus=str(folder), shortest=8, steps=3, hidden=8, seeds=1)
    with Workers(tmp_path / "runs") as workers:
        rows_of_it = fig4.measure(settings, Lab(workers))
    assert settings.part.startswith("mine-")
    assert {record.dataset for record in rows_of_it} == {"mine"}
    assert {row.axes["model"] for row in rows_of_it if row.name == "term_share"} == {"aed", "ao"}


def test_a_corpus_of_short_sentences_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    rows = [(f"a{n} b c", f"x{n} y z") for n in range(40)]
    folder = write_corpus(tmp_path / "mine", rows, languages=("en", "fr"))
    refused = pytest.raises(UsageError, match=r"mine: no held-out .* 10 tokens.*3 or less\.")
    with Workers(tmp_path / "runs") as workers, refused:
        fig4.measure(config(corpus=str(folder)), Lab(workers))
    assert not list(tmp_path.glob("runs/units/*"))


# Claims.


def row(name: str, model: str, value: float, seeds: int = 3, **axes: Any) -> Measurement:
    return Measurement(
        name=name,
        dataset="tatoeba-en-fr",
        axes={"model": model, "cell": "gru", "attention": "dot"} | axes,
        value=value,
        low=value - 0.01,
        high=value + 0.01,
        n=seeds,
        seeds=tuple(range(seeds)),
    )


def as_claimed(seeds: int = 3) -> list[Measurement]:
    shares = [row("largest_share", model, 0.3, seeds, form="raw") for model in ("aed", "ao")]
    gaps = [row("early_gap", "aed", 0.1, seeds, form="raw", step=step) for step in (1, 2, 3)]
    # Row-centred terms, and early steps of AO, decide nothing.
    beside = [
        row("largest_share", "aed", 0.9, seeds, form="centred"),
        row("early_gap", "aed", -0.5, seeds, form="centred", step=1),
        row("early_gap", "ao", -0.5, seeds, form="raw", step=1),
    ]
    return [*shares, *gaps, *beside, row("late_difference", "aed", -0.2, seeds, form="raw")]


def pool(rows: list[Measurement]) -> Pool:
    result = Result(
        recipe="aitken/fig4",
        scale="full",
        config=fig4.Config().model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )
    return Pool((result,))


def decide(claim: str, rows: list[Measurement]) -> Decision:
    return stricter(CLAIMS[f"aitken.{claim}"])(pool(rows))


def changed(value: float, keep: Callable[[Measurement], bool]) -> list[Measurement]:
    update = {"value": value, "low": value - 0.01, "high": value + 0.01}
    return [one.model_copy(update=update) if keep(one) else one for one in as_claimed()]


def test_translation_terms_hold_where_none_dominates_and_time_matters_early() -> None:
    decision = decide("translation-terms", as_claimed())
    assert decision.verdict is HOLDS
    assert "ParaCrawl" in decision.deviation


@for_each(
    ("name", "model", "value"),
    [
        ("largest_share", "aed", 0.6),
        ("largest_share", "ao", 0.6),
        ("late_difference", "aed", 0.1),
    ],
)
def test_translation_terms_fail_with_any_part(name: str, model: str, value: float) -> None:
    rows = changed(
        value,
        lambda one: (one.name, one.axes["model"], one.axes["form"]) == (name, model, "raw"),
    )
    assert decide("translation-terms", rows).verdict is FAILS


@for_each("step", [1, 2, 3])
def test_time_must_be_the_largest_term_at_each_early_step(step: int) -> None:
    rows = changed(-0.1, lambda one: one.name == "early_gap" and one.axes.get("step") == step)
    assert decide("translation-terms", rows).verdict is FAILS
    unclear = changed(0.0, lambda one: one.name == "early_gap" and one.axes.get("step") == step)
    assert decide("translation-terms", unclear).verdict is UNDECIDED


def test_translation_terms_need_three_seeds_of_english_and_french() -> None:
    assert decide("translation-terms", as_claimed(2)).verdict is UNDECIDED
    german = [one.model_copy(update={"dataset": "tatoeba-de-en"}) for one in as_claimed()]
    assert decide("translation-terms", german).verdict is UNDECIDED
    short = [one for one in as_claimed() if one.name != "late_difference"]
    assert decide("translation-terms", short).verdict is UNDECIDED


def test_the_offset_drifts_widens_and_leaves_the_diagonal() -> None:
    rows = [
        made
        for model in ("aed", "ao")
        for made in (
            row("offset_change", model, -1.0, of="maximum"),
            row("offset_change", model, 1.0, of="mean"),
            row("width_change", model, 0.5),
            row("diagonal_change", model, 0.2),
        )
    ]
    escan = {"dataset": "escan"}
    good = [
        row(name, model, value, line="code").model_copy(update=escan)
        for model in ("aed", "ao")
        for name, value in (("offset_spearman", 0.9), ("offset_error", 0.5))
    ]
    assert decide("offset", [*good, *rows]).verdict is HOLDS
    for place in (0, 2, 3):
        value = -rows[place].number
        update = {"value": value, "low": value - 0.01, "high": value + 0.01}
        other = [*rows[:place], rows[place].model_copy(update=update), *rows[place + 1 :]]
        assert decide("offset", [*good, *other]).verdict is FAILS
        # Networks on eSCAN come first.
        assert decide("offset", other).verdict is UNDECIDED
    assert decide("offset", [*good, *rows[:4]]).verdict is UNDECIDED
