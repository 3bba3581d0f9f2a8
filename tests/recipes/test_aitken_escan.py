"""Figures 3, 5 and 6 of aitken: numbers of made-up networks, and claims on made-up numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from attnscope.analysis.alignment_terms import MU_MU, QueriesAndKeys
from attnscope.analysis.dictionary import context_readout
from attnscope.analysis.intervals import RESAMPLES
from attnscope.analysis.measures.numbers import Line, number as key
from attnscope.analysis.measures.terms import THREE
from attnscope.analysis.network import Network, fresh
from attnscope.analysis.rank_correlation import grouped_spearman, rank_correlation
from attnscope.claims.catalogue import catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.data.equal_lengths import equal_length_batch, twice_steps
from attnscope.data.escan import ExtendedScan
from attnscope.models.trace import Trace
from attnscope.recipes.aitken import (
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    subphrases,
)
from attnscope.recipes.aitken.claims import CELL_KINDS
from attnscope.recipes.aitken.subphrases import AROUND
from attnscope.recipes.aitken.units import (
    ESCAN_QUICK,
    EscanConfig,
    Group,
    Trained,
    with_printed,
)
from attnscope.running.run import draw, run
from attnscope.runs.pictures import Matrix, Plane
from attnscope.runs.result import Measurement, Result, read_result
from attnscope.runs.unit import UnitFolder
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
CONFIG = EscanConfig(
    **(ESCAN_QUICK | {"hidden": 8, "samples": 40, "examples": 10, "separator": "none"})
)
TASK = CONFIG.escan
ALL = {
    "aitken/fig3": fig3.CLAIMS,
    "aitken/fig5": fig5.CLAIMS,
    "aitken/fig6": fig6.CLAIMS,
}


class Attending(Network):
    """A network whose attention is wholly where it is told to be."""

    place: Callable[[Trace], Tensor]

    def traces(self) -> Iterator[Trace]:
        """Replace the attention."""
        for trace in super().traces():
            site = trace.sites["cross"]
            where = type(self).place(trace).clamp(min=0)
            weights = torch.nn.functional.one_hot(where, site.weights.shape[-1]).float()
            yield replace(trace, sites={"cross": replace(site, weights=weights[:, None])})


def trained(model: str, seed: int = 0) -> TrainedUnit:
    made = Group(TASK, model, 1).unit(CONFIG, seed)  # type: ignore[arg-type]
    return TrainedUnit(made, UnitFolder(Path("nowhere")))


def untrained(model: str, kind: type[Network] = Network) -> Network:
    """Return a network as it is initialised."""
    one = trained(model)
    made = one.unit.model.build(TASK, 0).with_teacher_forcing("on")  # type: ignore[attr-defined]
    return kind(made, TASK, fresh(one, CONFIG.samples))


def attending(place: Callable[[Trace], Tensor]) -> Network:
    kind = type("Placed", (Attending,), {"place": staticmethod(place)})
    return untrained("aed", kind)


@pytest.fixture(params=["aed", "ao"])
def network(request: pytest.FixtureRequest) -> Network:
    return untrained(request.param)


# Networks.


def test_a_groups_rates_have_exact_intervals() -> None:
    accuracies = {0: 0.97, 1: 0.969, 2: 1.0, 3: 0.5}
    reached = type("Reached", (Network,), {"accuracy": property(lambda n: accuracies[n.seed])})
    every = [replace(untrained("aed", reached), seed=seed) for seed in accuracies]
    group = Trained(Group(TASK, "aed", 4), every, [])
    rows = {row.name: row for row in group.accuracy_rows(0.97)}
    ends = stats.binomtest(2, 4).proportion_ci(method="exact")
    accepted = rows["accepted"]
    assert (accepted.value, accepted.low, accepted.high) == (0.5, ends.low, ends.high)
    assert rows["reached"].value == 0.25
    assert rows["word_accuracy"].value == pytest.approx(np.mean(list(accuracies.values())))


def test_measurements_name_the_networks_and_the_papers_numbers() -> None:
    sheet = Group(TASK, "ao", 3).sheet((0, 2))
    found = [{key("x", at=1): 1.0, key("y"): np.nan}, {key("x", at=1): 3.0, key("y"): np.nan}]
    (row,) = with_printed(sheet.over_seeds(found), {key("x", at=1): 2.5, key("x", at=2): 9.0})
    assert (row.name, row.value, row.seeds, row.published) == ("x", 2.0, (0, 2), 2.5)
    assert row.axes == {"model": "ao", "cell": "gru", "attention": "dot", "at": 1}


def test_points_that_no_network_has_are_not_in_a_curve() -> None:
    sheet = Group(TASK, "ao", 2).sheet((0, 1))
    lines = [torch.tensor([1.0, torch.nan, 4.0]), torch.tensor([3.0, torch.nan, torch.nan])]
    found = [{key("x", word="and"): Line("offset", range(-1, 2), line)} for line in lines]
    (curve,) = sheet.curves(found)
    assert (curve.axis, curve.x, curve.y, curve.n) == ("offset", (-1, 1), (2.0, 4.0), (2, 1))
    assert curve.axes == {"model": "ao", "cell": "gru", "attention": "dot", "word": "and"}


# Figure 3.


def test_attention_on_the_ends_of_subphrases_is_told_from_attention_on_the_word_itself() -> None:
    at_ends = subphrases.ends(attending(lambda trace: TASK.subphrase_ends(trace.batch)))
    at_gold = subphrases.ends(attending(lambda trace: trace.batch.gold))
    assert at_ends[key("subphrase", attended="end")] == 1
    assert at_ends[key("subphrase", attended="end, two words")] == 1
    assert at_ends[key("subphrase", attended="the same as the output before")] == 1
    assert at_gold[key("subphrase", attended="the same as the output before")] == 0
    # Of "v left" and "v twice", one of two outputs comes from the last word.
    assert at_gold[key("subphrase", attended="end, two words")] == 0.5
    chance = at_ends[key("subphrase", attended="end, another sequence's")]
    assert 0 < chance < 1
    assert at_ends[key("subphrase_difference")] == pytest.approx(1 - chance)
    assert at_ends[key("subphrase_ratio")] == pytest.approx(1 / chance)


def test_figure_3_shows_the_attention_of_one_sequence_with_its_words(network: Network) -> None:
    example, path, temporal, plane = fig3.shown(Group(TASK, "aed", 1), network)
    assert isinstance(example, Matrix)
    assert np.allclose(np.array(example.values).sum(1), 1, atol=1e-3)
    assert example.rows[-1] == example.columns[-1] == "<eos>"
    assert isinstance(temporal, Matrix)
    assert np.allclose(np.array(temporal.values).sum(1), 1, atol=1e-3)
    assert isinstance(path, Plane)
    assert {point.group for point in path.points} == {"encoder", "decoder"}
    assert isinstance(plane, Plane)
    labels = {kind: {p.label for p in plane.points if p.group == kind} for kind in _KINDS}
    assert labels["component"] == set(TASK.input_words.words)
    assert labels["readout"] == set(TASK.output_words.words) - {"<sos>"}
    assert labels["state"] <= labels["component"]


_KINDS = ("component", "readout", "state")


# Figure 5.


def test_both_lines_of_the_corpus_agree_where_no_clause_turns() -> None:
    """Without 'left' the offset is the number of 'and' read so far, in the code's line too."""
    batch = fresh(trained("ao"), 200)
    left = TASK.input_words.id("left")
    batch = batch.rows(~(batch.inputs == left).any(1))
    lines = fig5.corpus_lines(TASK, batch)
    # The code's line ends before the end word.
    assert torch.equal((~lines["code"].isnan()).sum(1), batch.input_lengths - 1)
    gold = batch.gold.clamp(min=0)
    code = lines["code"].gather(1, gold)
    known = ~lines["exact"].isnan() & ~code.isnan()
    assert known.any()
    # The code counts at the input position, the exact one at the output that comes from it.
    assert torch.equal(code[known], lines["exact"][known])


def test_a_readout_along_input_components_is_a_dictionary_and_silent_words_are_counted() -> None:
    made = untrained("ao")
    words = TASK.input_words
    components = made.states.encoder.words(torch.arange(len(words))).float()
    centred = components - components.mean(0)
    # Dual vectors: each has product 1 with its own word and none with the others, about the mean.
    dual = torch.linalg.pinv(centred).mT
    weight = made.model.output.weight
    right = ["run", "walk", "jump", "left", "<eos>"]
    with torch.no_grad():
        weight[:5] = dual[words.encode(right)]
    found = fig5.verbs(made)
    assert context_readout(made.model).shape == weight.shape
    assert found[key("dictionary")] == 1
    assert found[key("dictionary_left")] == 1
    assert found[key("silent_readouts")] == 0
    with torch.no_grad():
        weight[:5] = dual[words.encode(["run", "twice", "jump", "and", "<eos>"])]
    found = fig5.verbs(made)
    assert found[key("dictionary")] == pytest.approx(2 / 3)
    assert found[key("silent_readouts")] == 2


def test_a_rank_correlation_is_scipys_and_that_of_a_constant_is_none() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    tied = a.round()
    assert rank_correlation(tied, b) == pytest.approx(stats.spearmanr(tied, b).statistic)
    assert rank_correlation(a, np.ones(9)) == 0


def test_resampled_rank_correlations_are_scipys_one_by_one() -> None:
    table = np.random.default_rng(1).uniform(size=(5, 2, 4))  # group, number, network
    again = np.random.default_rng(7)
    chosen = [again.integers(4, size=(RESAMPLES, 4)) for _ in table]
    means = np.stack([one[:, rows].mean(-1) for one, rows in zip(table, chosen, strict=True)])
    every = [stats.spearmanr(means[:, 0, i], means[:, 1, i]).statistic for i in range(RESAMPLES)]
    pairs = [(one[0].tolist(), one[1].tolist()) for one in table]
    found = grouped_spearman(pairs, np.random.default_rng(7))
    assert [found.low, found.high] == pytest.approx(np.quantile(every, [0.025, 0.975]))


def test_groups_whose_means_are_in_one_order_correlate_whatever_is_resampled() -> None:
    apart = [([i, i + 0.1, i + 0.2], [i / 2, i / 2 + 0.1, i / 2]) for i in range(4)]
    interval = grouped_spearman(apart, np.random.default_rng(0))
    assert [interval.value, interval.low, interval.high] == pytest.approx([1, 1, 1])
    assert interval.n == 4
    single = grouped_spearman([([1.0], [2.0]), ([2.0], [3.0])], np.random.default_rng(0))
    assert single.value == pytest.approx(1)
    assert np.isnan(single.low)


# Figure 6.


def test_sequences_without_and_have_one_length_and_twice_at_its_own_step() -> None:
    task = ExtendedScan()
    batch = equal_length_batch(task, 60)
    assert torch.equal(batch.input_lengths, batch.target_lengths)
    assert batch.target_lengths.min() > task.shortest_output
    assert batch.target_lengths.max() <= task.longest_output
    at_twice = (batch.inputs == task.input_words.id("twice")) & batch.input_mask
    assert at_twice.any()
    assert torch.equal(twice_steps(batch), at_twice)
    steps = torch.arange(batch.gold.shape[1])
    assert torch.equal(batch.gold[at_twice], steps.expand_as(batch.gold)[at_twice])


def test_the_parts_of_the_alignment_at_twice_are_those_of_a_loop_and_sum_to_it(
    network: Network,
) -> None:
    lines = subphrases.alignment_at_twice(network)
    assert network.states.decoder is not None
    mu = network.states.decoder.temporal
    found: dict[tuple[str, int], list[float]] = {}
    for trace in subphrases.with_equal_lengths(network).traces():
        keys = QueriesAndKeys()(trace).encoder.states.double()
        logits = trace.sites["cross"].logits[:, 0].double()
        # A word that the network never wrote elsewhere has no component, and counts nowhere.
        known = ~network.states.decoder.words(trace.batch.decoder_inputs.flatten()).isnan().any(-1)
        counted = twice_steps(trace.batch) & known.view_as(trace.batch.decoder_inputs)
        for row, step in counted.nonzero().tolist():
            for offset in AROUND:
                place = step + offset
                if 0 <= place < int(trace.batch.input_lengths[row]):
                    both = float(mu[step] @ keys[row, place])
                    alone = float(mu[step] @ network.states.encoder.temporal[place])
                    found.setdefault(("alignment", offset), []).append(
                        float(logits[row, step, place])
                    )
                    found.setdefault(("temporal", offset), []).append(alone)
                    found.setdefault(("input-delta", offset), []).append(both - alone)
    for (part, offset), values in found.items():
        line = lines[key("twice_alignment", part=part)]
        measured = line.y[line.x.index(offset)]
        assert measured == pytest.approx(np.mean(values), abs=1e-5)


@pytest.mark.parametrize(("shift", "expected"), [(1, 1.0), (0, 0.0)])
def test_attention_before_twice_is_told_from_attention_on_it(shift: int, expected: float) -> None:
    found = subphrases.before_twice(attending(lambda trace: trace.batch.gold - shift))
    assert found[key("twice_previous", sequences="all")] == expected


# Claims.


def row(
    name: str, value: float | None, spread: float | None = 0.01, dataset: str = "escan", **axes: Any
) -> Measurement:
    known = value is not None and spread is not None
    low, high = (value - spread, value + spread) if known else (None, None)  # type: ignore[operator]
    seeds = axes.pop("seeds", range(10))
    published = axes.pop("published", None)
    usual = {"cell": "gru", "attention": "none" if axes.get("model") == "ved" else "dot"}
    return Measurement(
        name=name,
        dataset=dataset,
        axes=(usual if "model" in axes else {}) | axes,
        value=value,
        low=low,
        high=high,
        n=10,
        seeds=tuple(seeds),
        published=published,
    )


def decide(claim: str, *rows: Measurement, scale: str = "full") -> Decision:
    rules = {name: rule for claims in ALL.values() for name, rule in claims.items()}
    result = Result(
        recipe="aitken/fig5",
        scale=scale,  # type: ignore[arg-type]
        config={},
        environment={},
        seconds=0.0,
        measurements=rows,
    )
    return stricter(rules[claim])(Pool((result,)))


@for_each("recipe", ALL)
def test_a_recipe_decides_the_claims_that_the_catalogue_gives_it(recipe: str) -> None:
    assert set(ALL[recipe]) == {entry.id for entry in catalogue() if recipe in entry.recipes}


def accuracies(model: str, reached: int, seeds: int = 10) -> list[Measurement]:
    return [
        row(
            "seed_accuracy",
            0.985 if seed < reached else 0.9,
            None,
            model=model,
            seed=seed,
            seeds=[seed],
        )
        for seed in range(seeds)
    ]


@for_each(
    ("aed", "ao", "seeds", "expected"),
    [
        (10, 4, 10, HOLDS),
        (4, 4, 12, HOLDS),
        (10, 3, 10, FAILS),
        (10, 9, 9, UNDECIDED),
    ],
)
def test_a_third_of_ten_seeds_of_both_must_reach_the_papers_accuracy(
    aed: int, ao: int, seeds: int, expected: Verdict
) -> None:
    rows = accuracies("aed", aed, seeds) + accuracies("ao", ao, seeds)
    assert decide("aitken.escan-accuracy", *rows).verdict is expected


@for_each(
    ("difference", "ratio", "expected"),
    [(0.5, 3.0, HOLDS), (0.1, 1.2, FAILS), (0.005, 1.6, UNDECIDED), (-0.2, 0.5, FAILS)],
)
def test_subphrase_ends_must_be_attended_far_above_chance(
    difference: float, ratio: float, expected: Verdict
) -> None:
    rows = [
        row("subphrase_difference", difference, model="aed"),
        row("subphrase_ratio", ratio, model="aed"),
    ]
    assert decide("aitken.subphrase", *rows).verdict is expected
    assert decide("aitken.subphrase").verdict is UNDECIDED


def deltas(aed: float = 0.02, ao: float = 0.01, ved: float = 0.5, gap: float = 0.3) -> Any:
    simple = {
        model: row("delta_share", value, dataset="one-to-one-3", model=model, side="encoder")
        for model, value in (("aed", aed), ("ao", ao), ("ved", ved))
    }
    return [*simple.values(), row("delta_share_difference", gap)]


def test_delta_is_small_with_attention_larger_without_and_larger_with_recurrence() -> None:
    claim = "aitken.delta-small"
    assert decide(claim, *deltas()).verdict is HOLDS
    assert decide(claim, *deltas(aed=0.2)).verdict is FAILS
    assert decide(claim, *deltas(ao=0.1)).verdict is UNDECIDED
    assert decide(claim, *deltas(aed=0.06, ved=0.08)).verdict is FAILS
    assert decide(claim, *deltas(gap=-0.3)).verdict is FAILS
    assert decide(claim, *deltas()[:3]).verdict is UNDECIDED
    assert decide(claim, *deltas()[3:]).verdict is UNDECIDED


def dictionaries(verbs: float = 1.0, silent: float = 0.0, french: bool = True) -> Any:
    rows = [
        row("dictionary", value, 0.0, dataset=dataset, model=model)
        for model in ("aed", "ao")
        for dataset, value in (("one-to-one-3", 1.0), ("escan", verbs))
    ]
    rows += [row("silent_readouts", silent, 0.0, model=model) for model in ("aed", "ao")]
    return rows + [row("dictionary", 1.0, 0.0, dataset="tatoeba-en-fr", model="ao")] * french


def test_a_dictionary_has_every_word_right_and_waits_for_translation() -> None:
    claim = "aitken.dictionary"
    assert decide(claim, *dictionaries()).verdict is HOLDS
    assert decide(claim, *dictionaries(verbs=0.97)).verdict is FAILS
    assert decide(claim, *dictionaries(silent=0.1)).verdict is FAILS
    waiting = decide(claim, *dictionaries(french=False))
    assert waiting.verdict is UNDECIDED
    assert "fig4" in waiting.note


def term_rows(gap: float = 0.5, three: float = 0.9, mu: float = 0.78, **axes: Any) -> Any:
    axes = {"form": "raw"} | axes
    return [
        row("largest_gap", gap, **axes),
        row("term_share", three, term=THREE, published=0.87, **axes),
        row("term_share", mu, term=MU_MU, published=0.77, **axes),
    ]


def test_escan_terms_are_decided_by_the_largest_and_the_sum_of_three() -> None:
    claim = "aitken.escan-terms"
    good = term_rows(model="aed")
    assert decide(claim, *good, *term_rows(model="ao")).verdict is HOLDS
    assert decide(claim, *good, *term_rows(model="ao", three=0.7)).verdict is FAILS
    assert decide(claim, *good, *term_rows(model="ao", gap=0.005)).verdict is UNDECIDED
    below = decide(claim, *good, *term_rows(model="ao", mu=0.7))
    assert below.verdict is HOLDS
    assert "fails" in below.note
    assert decide(claim, *good).verdict is UNDECIDED


def offset_rows(spearman: float, error: float) -> Any:
    return [
        row(name, value, 0.05, model=model, line=line)
        for model in ("aed", "ao")
        for line in ("code", "exact")
        for name, value in (("offset_spearman", spearman), ("offset_error", error))
    ]


def test_offsets_that_follow_the_line_wait_for_translation_and_others_fail() -> None:
    waiting = decide("aitken.offset", *offset_rows(0.9, 0.5))
    assert waiting.verdict is UNDECIDED
    assert "fig4" in waiting.note
    changes = (("offset_change", -2.0), ("width_change", 1.0), ("diagonal_change", 0.2))
    french = [
        row(name, value, dataset="tatoeba-en-fr", model=model, of="maximum")
        for name, value in changes
        for model in ("aed", "ao")
    ]
    assert decide("aitken.offset", *offset_rows(0.9, 0.5), *french).verdict is HOLDS
    assert decide("aitken.offset", *offset_rows(0.5, 0.5)).verdict is FAILS
    assert decide("aitken.offset", *offset_rows(0.9, 1.5)).verdict is FAILS


def drops(simple: float, french: float | None) -> Any:
    rows = [
        row("variance_drop", simple, dataset=dataset, model=model)
        for dataset in ("one-to-one-3", "escan")
        for model in ("aed", "ao")
    ]
    if french is not None:
        rows += [row("variance_drop", french, dataset="tatoeba-en-fr", model="ao")]
    return rows


def test_word_variance_drops_much_on_synthetic_tasks_and_little_on_text() -> None:
    claim = "aitken.word-variance"
    assert decide(claim, *drops(0.9, 0.2)).verdict is HOLDS
    assert decide(claim, *drops(0.9, 0.6)).verdict is FAILS
    assert decide(claim, *drops(0.7, None)).verdict is FAILS
    assert decide(claim, *drops(0.9, None)).verdict is UNDECIDED


def cell_rows(agreement: float = 0.99, seeds: int = 3) -> Any:
    rows = []
    for kind in CELL_KINDS:
        axes = dict(zip(("model", "cell", "attention"), kind.split(), strict=True))
        axes |= {"seeds": range(seeds)}  # type: ignore[dict-item]
        rows += [
            row("temporal_agreement", agreement, 0.001, dataset="one-to-one-3", **axes),
            row("delta_share", 0.01, 0.001, dataset="one-to-one-3", side="encoder", **axes),
            row("dictionary", 1.0, 0.0, dataset="one-to-one-3", **axes),
        ]
        if kind.startswith("aed"):
            rows += term_rows(**axes)
    return rows


def test_every_kind_of_cell_and_attention_must_give_the_same_picture() -> None:
    claim = "aitken.cells"
    assert decide(claim, *cell_rows()).verdict is HOLDS
    assert decide(claim, *cell_rows(agreement=0.9)).verdict is FAILS
    assert decide(claim, *cell_rows(seeds=2)).verdict is UNDECIDED
    no_escan = [entry for entry in cell_rows() if entry.dataset != "escan"]
    assert decide(claim, *no_escan).verdict is UNDECIDED


def test_temporal_shares_must_rise_with_the_similarity_to_the_mean_attention() -> None:
    claim = "aitken.average-attention"
    french = row("attention_similarity", 0.5, dataset="tatoeba-en-fr", model="aed")
    up = row("share_similarity_spearman", 0.7, 0.2, dataset="all tasks", form="raw")
    down = row("share_similarity_spearman", -0.7, 0.2, dataset="all tasks", form="raw")
    assert decide(claim, french, up).verdict is HOLDS
    assert decide(claim, french, down).verdict is FAILS
    assert decide(claim, up).verdict is UNDECIDED
    assert decide(claim, french).verdict is UNDECIDED


def clusters(verb: float = 0.95, aed: float = 0.7, ao: float = 0.0) -> Any:
    return [
        row("preceding_verb", verb, model="aed"),
        row("silhouette", aed, model="aed"),
        row("preceding_verb", 0.3, model="ao"),
        row("silhouette", ao, model="ao"),
    ]


def test_twice_knows_its_verb_with_recurrence_and_only_with_it() -> None:
    claim = "aitken.context"
    assert decide(claim, *clusters()).verdict is HOLDS
    assert decide(claim, *clusters(verb=0.8)).verdict is FAILS
    assert decide(claim, *clusters(aed=0.4)).verdict is FAILS
    assert decide(claim, *clusters(ao=0.3)).verdict is FAILS
    assert decide(claim, *clusters()[:2]).verdict is UNDECIDED


def hiding(away: float = -0.5, previous: float = 0.95, slope: float = 0.1) -> Any:
    rows = [
        row("offset_product", away if offset == 4 else -0.5, model="ao", word=word, offset=offset)
        for word in ("twice", "and")
        for offset in range(-2, 5)
    ]
    return [
        *rows,
        row("twice_previous", previous, model="ao", sequences="T=S"),
        row("twice_previous", 0.1, model="ao", sequences="all"),
        row("left_slope", slope, model="ao"),
    ]


def test_silent_words_lean_away_at_every_offset_and_twice_is_passed_over() -> None:
    claim = "aitken.hide"
    assert decide(claim, *hiding()).verdict is HOLDS
    assert decide(claim, *hiding(away=0.2)).verdict is FAILS
    assert decide(claim, *hiding(previous=0.5)).verdict is FAILS
    assert decide(claim, *hiding(slope=-0.1)).verdict is FAILS
    assert decide(claim).verdict is UNDECIDED


def test_a_claim_of_several_figures_is_decided_in_one_way() -> None:
    assert fig2.CLAIMS["aitken.delta-small"] is fig3.CLAIMS["aitken.delta-small"]
    assert fig2.CLAIMS["aitken.dictionary"] is fig5.CLAIMS["aitken.dictionary"]
    assert fig4.CLAIMS["aitken.dictionary"] is fig5.CLAIMS["aitken.dictionary"]
    assert fig2.CLAIMS["aitken.cells"] is fig5.CLAIMS["aitken.cells"]


@for_each("recipe", ALL)
def test_a_run_of_which_no_network_is_accepted_says_so_and_draws_its_accuracies(
    recipe: str, tmp_path: Path
) -> None:
    few = {"escan_steps": 2, "hidden": 4, "samples": 20, "examples": 4, "accepted": 1.0}
    fewer = {"steps": 2, "sorting_steps": 2, "cell_seeds": 0, "text_seeds": 0}
    few |= fewer if recipe == "aitken/fig5" else {}
    done = run(recipe, few, quick=True, device="cpu", jobs=1, out=tmp_path)
    rates = [entry.value for entry in done.result.select("accepted")]
    assert rates
    assert set(rates) == {0.0}
    assert draw(done.folder)[0]


@pytest.mark.parametrize("recipe", ["aitken/fig3", "aitken/fig6"])
def test_phrases_with_marks_are_measured_and_drawn(recipe: str, tmp_path: Path) -> None:
    few = {"escan_steps": 2, "hidden": 4, "samples": 20, "examples": 4, "seeds": 1}
    marked = {"separator": "marked", "longest_output": 10, "longest_input": 14}
    done = run(recipe, few | marked, quick=True, device="cpu", jobs=1, out=tmp_path)
    assert done.result.select("word_accuracy")
    assert not done.notice
    assert any(path.suffix == ".svg" for path in done.figures)


def test_shares_against_similarity_are_drawn_where_there_are_tasks_to_compare():
    results = Path(__file__).parents[2] / "results"
    alone = read_result(results / "variants" / "own-words" / "aitken" / "fig5" / "result.json")
    several = read_result(results / "aitken" / "fig5" / "without-translation" / "result.json")
    assert "similarity" not in fig5.draw(alone, [])
    assert "similarity" in fig5.draw(several, [])
