"""Figure 4's units, its numbers on networks and matrices that are known, and its predicates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Pool
from attnscope.data.corpus import GrammarTranslation
from attnscope.data.corpus_writer import write_corpus
from attnscope.data.parallel_words import ParallelWords, open_words
from attnscope.errors import UsageError
from attnscope.models.encoder_decoder import EncoderDecoder
from attnscope.recipes.aitken import fig4, fig4_measure, fig5
from attnscope.recipes.aitken.fig4_claims import offset_on_text, translation_terms
from attnscope.recipes.aitken.fig4_measure import (
    common_words,
    dictionary_numbers,
    example_numbers,
    length_excess,
    offset_numbers,
    term_numbers,
    variance_numbers,
)
from attnscope.recipes.aitken.fig4_units import Translator, translator
from attnscope.recipes.aitken.fig5_measure import TERM_NAMES
from attnscope.recipes.aitken.groups import key
from attnscope.recipes.aitken.units import ArchitectureName, context_readout
from attnscope.recipes.recipe import Lab
from attnscope.runs.result import Measurement, Result
from attnscope.runs.spec import read_settings
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.workers import Workers
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
GRAMMAR = GrammarTranslation()


def config(**settings: Any) -> fig4.Config:
    return read_settings(fig4.Config, {**fig4.QUICK, "hidden": 24, **settings}, "fig4")


def trained(model: ArchitectureName, source: Any = GRAMMAR, **settings: Any) -> TrainedUnit:
    """Return a unit as it is built, without a folder."""
    made = translator(config(**settings), source, model, 0)
    found = TrainedUnit(made, UnitFolder(Path("nowhere")))
    # What `cached_property` would keep once it had read the folder.
    vars(found)["model"] = made.model.build(source, 0).eval().requires_grad_(False)
    return found


def untrained(model: ArchitectureName, source: Any = GRAMMAR, **settings: Any) -> Translator:
    """Return its network."""
    return Translator.of(trained(model, source, **settings), 120)


@cache
def network(model: ArchitectureName) -> Translator:
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
    found = [trace.batch for trace in network("aed").of_sentences(10).traces()]
    lengths = [(int(i) - 1, int(o) - 1) for b in found for i, o in _lengths(b)]
    every = [(int(i) - 1, int(o) - 1) for i, o in _lengths(network("aed").sequences)]
    assert lengths == [pair for pair in every if min(pair) >= 10]
    assert 0 < len(lengths) < len(every)
    assert sum(len(trace.batch) for trace in network("aed").traces()) == len(every)


def _lengths(batch: Any) -> list[tuple[Any, Any]]:
    return list(zip(batch.input_lengths, batch.target_lengths, strict=True))


def test_the_network_is_analysed_on_its_own_words() -> None:
    own, right = network("aed"), Translator.of(trained("aed"), 120, "on")
    read = next(own.traces()).batch.decoder_inputs
    assert not read.equal(next(right.traces()).batch.decoder_inputs)
    assert read[:, 1:].equal(next(own.traces()).logits.argmax(-1)[:, :-1])


def test_accuracy_is_of_all_words_up_to_the_end() -> None:
    right = total = 0
    for trace in Translator.of(trained("aed"), 120, "on").traces():
        mask = trace.batch.target_mask
        right += int((trace.logits.argmax(-1) == trace.batch.targets)[mask].sum())
        total += int(mask.sum())
    assert Translator.of(trained("aed"), 120, "on").accuracy == pytest.approx(right / total)


# Figure 5 shows them again.


def test_figure_5_has_the_networks_of_figure_4() -> None:
    assert fig5.Config().translation == fig4.Config()


def test_figure_5_has_all_that_its_claims_ask_of_a_translation() -> None:
    found = fig5._text_numbers(trained("ao"), config())
    for wanted in (
        key("offset_change", of="maximum"),
        key("width_change"),
        key("diagonal_change"),
        key("variance_drop"),
        key("attention_similarity"),
        key("term_share", form="raw", term="muD.muE"),
        key("temporal_profile", step=1, offset=0),
    ):
        assert wanted in found


# Numbers.


@pytest.mark.parametrize("model", ["aed", "ao"])
def test_nine_shares_sum_to_one_and_gaps_are_taken_of_them(model: ArchitectureName) -> None:
    found = term_numbers(network(model), 10)
    for form in ("raw", "centred"):
        shares = [found[key("term_share", form=form, term=term)] for term in TERM_NAMES]
        assert sum(shares) == pytest.approx(1)
        assert found[key("largest_share", form=form)] == max(shares)
    at = {
        step: [found[key("term_share_at", term=term, step=step)] for term in TERM_NAMES]
        for step in range(1, 12)
    }
    assert all(sum(shares) == pytest.approx(1) for shares in at.values())
    for step in (1, 2, 3):
        gap = found[key("early_gap", form="raw", step=step)]
        assert gap == pytest.approx(at[step][0] - max(at[step][1:]))
    steps = [k.axes[-1][1] for k in found if k.name == "term_share_at"]
    late = [
        found[key("term_share_at", term=TERM_NAMES[0], step=s)] for s in range(8, max(steps) + 1)
    ]
    early = [at[step][0] for step in (1, 2, 3)]
    expected = sum(late) / len(late) - sum(early) / 3
    assert found[key("late_difference", form="raw")] == pytest.approx(expected)


def test_offsets_of_a_known_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six steps: on the diagonal at first, two behind and spread over three places at last."""
    attention = torch.eye(6, dtype=torch.float64)
    attention[4:] = 0
    attention[4, 1:4] = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    attention[5, 2:5] = attention[4, 1:4]
    # A step past the last input position cannot be on the diagonal.
    beyond = torch.eye(6, dtype=torch.float64)[[0]]
    monkeypatch.setattr(
        fig4_measure, "temporal_attention", lambda _: torch.cat([attention, beyond])
    )
    found = offset_numbers(network("aed"))
    assert [found[key("peak_offset", step=s)] for s in range(1, 7)] == [0, 0, 0, 0, -2, -2]
    assert key("peak_offset", step=7) not in found
    assert found[key("offset_change", of="maximum")] == -2
    assert found[key("offset_change", of="mean")] == pytest.approx(-2)
    assert found[key("width_change")] == pytest.approx(0.5**0.5)
    assert found[key("diagonal_change")] == pytest.approx(1)


def test_a_word_that_always_stands_in_one_place_has_no_say_in_the_variance(tmp_path: Path) -> None:
    rows = [
        (f"first {'pad ' * (n % 3)}walk {'pad ' * (n % 4)}n{n}", f"one {'x ' * (n % 3)}two")
        for n in range(240)
    ]
    folder = write_corpus(tmp_path / "mine", rows, languages=("a", "b"), validation=0.5)
    source = open_words(folder, types=4)
    still = untrained("ao", source, room=6)
    found = variance_numbers(still)
    # "pad" and "walk"; "first" does not move, and the rest is rare.
    assert found[key("variance_words")] == 2
    # Without recurrence a word's state is a function of its place: only μ varies within a place.
    assert 0 < found[key("variance_drop")] <= 1


def test_readouts_made_of_the_input_components_are_a_dictionary() -> None:
    one = untrained("ao", hidden=48)
    settings = config(dictionary="teacher=Lehrer,child=Kind,has=hat")
    common = common_words(
        GRAMMAR.input_words, [e.inputs for e in GRAMMAR.training_examples], settings.common
    )
    components = one.states.encoder.words(torch.tensor(common))
    duals = torch.linalg.pinv(components).mT.float()  # each times its own component is 1, else 0
    place = {GRAMMAR.input_words.words[word]: number for number, word in enumerate(common)}
    weight = one.model.output.weight
    for output, word in settings.dictionary:
        weight[GRAMMAR.output_words.id(output)] = duals[place[word]]
    found = dictionary_numbers(one, settings)
    assert found[key("dictionary")] == 1
    for output, word in settings.dictionary:
        row = {w: found[key("readout_product", output=output, input=w)] for w in place}
        assert row[word] == pytest.approx(1, abs=1e-3)
        assert all(abs(value) < 1e-3 for other, value in row.items() if other != word)
    weight[GRAMMAR.output_words.id("has")] = duals[place["das"]]
    found = dictionary_numbers(one, settings)
    assert found[key("dictionary")] == pytest.approx(2 / 3)
    assert found[key("readout_aligns", output="has")] == 0


def test_what_a_corpus_does_not_have_is_not_asked_and_gives_no_share() -> None:
    found = dictionary_numbers(network("ao"), config(dictionary="la=the,has=hat"))
    assert key("readout_aligns", output="has") in found
    assert key("readout_aligns", output="la") not in found
    assert key("dictionary") not in found


def test_of_attention_and_state_the_readout_of_the_context_is_taken() -> None:
    model = network("aed").model
    assert context_readout(model).equal(model.output.weight[:, model.output.weight.shape[1] // 2 :])


def test_the_most_common_words_come_first_without_boundaries() -> None:
    words = GRAMMAR.output_words
    rows = [words.encode(["<bos>", "the", "a", "the", "<eos>"]), words.encode(["has", "a", "the"])]
    found = common_words(words, rows, 5)
    assert [words.words[index] for index in found] == ["the", "a", "has"]
    assert common_words(words, rows, 1) == [words.id("the")]


def test_outputs_longer_than_inputs_are_told_in_tokens_without_the_end(tmp_path: Path) -> None:
    rows = [(f"a{n} b c d e", f"x{n} y z v w u") for n in range(40)]
    source = open_words(write_corpus(tmp_path / "mine", rows, languages=("a", "b")))
    assert isinstance(source, ParallelWords)
    excess = length_excess(source)
    assert (excess.value, excess.low, excess.high) == pytest.approx((0.2, 0.2, 0.2))


def test_the_example_is_the_given_sentence_and_what_the_network_writes() -> None:
    found = example_numbers(network("aed"), "das Kind lacht .")
    said = {
        side: [dict(k.axes)["word"] for k in found if k.name == "example" and k.axes[0][1] == side]
        for side in ("input", "output")
    }
    assert said["input"] == ["das", "Kind", "lacht", ".", "<eos>"]
    assert said["output"]
    assert "<eos>" not in said["output"][:-1]
    cells = [dict(k.axes) for k in found if k.name == "attention"]
    assert {cell["out"] for cell in cells} == set(range(len(said["output"])))


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
    assert settings.part == "mine"
    assert {row.dataset for row in rows_of_it} == {"mine"}
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


def changed(value: float, keep: Callable[[Measurement], bool]) -> list[Measurement]:
    update = {"value": value, "low": value - 0.01, "high": value + 0.01}
    return [one.model_copy(update=update) if keep(one) else one for one in as_claimed()]


def test_translation_terms_hold_where_none_dominates_and_time_matters_early() -> None:
    decision = translation_terms(pool(as_claimed()))
    assert decision.verdict is HOLDS
    assert "ParaCrawl" in decision.deviation


@pytest.mark.parametrize(
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
    assert translation_terms(pool(rows)).verdict is FAILS


@pytest.mark.parametrize("step", [1, 2, 3])
def test_time_must_be_the_largest_term_at_each_early_step(step: int) -> None:
    rows = changed(-0.1, lambda one: one.name == "early_gap" and one.axes.get("step") == step)
    assert translation_terms(pool(rows)).verdict is FAILS
    unclear = changed(0.0, lambda one: one.name == "early_gap" and one.axes.get("step") == step)
    assert translation_terms(pool(unclear)).verdict is UNDECIDED


def test_translation_terms_need_three_seeds_of_english_and_french() -> None:
    assert translation_terms(pool(as_claimed(2))).verdict is UNDECIDED
    german = [one.model_copy(update={"dataset": "tatoeba-de-en"}) for one in as_claimed()]
    assert translation_terms(pool(german)).verdict is UNDECIDED
    short = [one for one in as_claimed() if one.name != "late_difference"]
    assert translation_terms(pool(short)).verdict is UNDECIDED


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
    assert offset_on_text(pool(rows))[0] is HOLDS
    for place in (0, 2, 3):
        value = -(rows[place].value or 0.0)
        update = {"value": value, "low": value - 0.01, "high": value + 0.01}
        other = [*rows[:place], rows[place].model_copy(update=update), *rows[place + 1 :]]
        assert offset_on_text(pool(other))[0] is FAILS
    assert offset_on_text(pool(rows[:4]))[0] is UNDECIDED
