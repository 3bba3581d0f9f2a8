"""The claims that the agreement tables decide: what the paper says holds, its opposite does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from attnscope.claims.catalogue import catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.recipes.snell import table5_results
from attnscope.recipes.snell.agreement import text_deviations
from attnscope.recipes.snell.table5_results import CLAIMS
from attnscope.runs.result import Measurement, Result
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
LABELLED = ("sst", "imdb", "ag_news", "newsgroups")
PARALLEL = ("multi30k-de-en", "multi30k-en-de")
CORPORA = (*LABELLED, *PARALLEL)
CHANCE = 6.0

Rows = list[Measurement]


def row(
    name: str,
    dataset: str,
    value: float | None,
    spread: float | None = 0.5,
    split: str = "val",
    **axes: Any,
) -> Measurement:
    """A measurement whose interval reaches ``spread`` to both sides; None: it has no interval."""
    known = value is not None and spread is not None
    ends = (value - spread, value + spread) if known else (None, None)  # type: ignore[operator]
    found = {key: axes.pop(key) for key in ("tau0", "pairs") if key in axes}
    return Measurement(
        name=name,
        dataset=dataset,
        split=split,
        axes=axes,
        found=found,
        value=value,
        low=ends[0],
        high=ends[1],
        n=100,
    )


def text(name: str, dataset: str, value: float | None, spread: float | None = 0.5, **rest: Any):
    """A measurement in the text's way, beside one in the code's that says the opposite."""
    beside = None if value is None else -value
    return [
        row(name, dataset, value, spread, way="text", **rest),
        row(name, dataset, beside, spread, way="code", **rest),
    ]


def result_of(rows: Rows, scale: str = "full", **config: str) -> Result:
    return Result(
        recipe="snell/table5",
        scale=scale,  # type: ignore[arg-type]
        config={"vectors": "", **config},
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )


def decide(claim: str, rows: Rows, scale: str = "full", words: bool = False) -> Decision:
    parallel = [row("median_length", name, 14, side="src", split="train") for name in PARALLEL]
    rule = CLAIMS[claim]
    return (rule if words else stricter(rule))(Pool((result_of([*parallel, *rows], scale),)))


def agreement(pair: str, dataset: str, value: float, spread: float, split: str = "val") -> Rows:
    excess, ratio = value - CHANCE, value / CHANCE
    return [
        *text(f"A({pair})", dataset, value, spread, split=split, at=500),
        *text(f"excess({pair})", dataset, excess, spread, split=split, at=500),
        *text(f"ratio({pair})", dataset, ratio, spread / CHANCE, split=split, at=500),
        *text("A_random", dataset, CHANCE, 0.1, split=split),
    ]


def everywhere(rows_of: Any, corpora: Sequence[str] = CORPORA) -> dict[str, Rows]:
    """Rows by corpus; each counts as a corpus because α and β^uf were compared on it."""
    return {name: [*text("A(alpha,beta_uf)", name, 50.0, at=1), *rows_of(name)] for name in corpora}


def flat(rows: Mapping[str, Rows]) -> Rows:
    return [entry for part in rows.values() for entry in part]


def test_every_claim_of_the_recipe_is_tested_here_and_in_the_catalogue() -> None:
    assert set(CLAIMS) == {claim.id for claim in catalogue() if "snell/table5" in claim.recipes}


# Agreement far above chance.

ABOVE = {
    "snell.uniform-probe": "alpha,beta_uf",
    "snell.proxy": "beta_uf,beta_px",
    "snell.probe": "alpha,beta",
    "snell.saliency": "delta,beta_uf",
}
# 1.5 times a chance of 6 is 9.
ABOVE_CHANCE = [
    (30.0, 2.0, HOLDS),
    (9.0, 0.5, HOLDS),  # the ratio need only reach 1.5 itself
    (8.9, 0.5, UNDECIDED),  # its interval still reaches 1.5
    (8.0, 0.5, FAILS),  # above chance, but by less than half
    (10.0, 4.5, UNDECIDED),  # the interval of the difference includes 0
    (3.0, 2.0, FAILS),  # below chance
]


@for_each("claim", ABOVE)
@for_each(("value", "spread", "expected"), ABOVE_CHANCE)
def test_an_agreement_must_be_far_above_chance_on_every_corpus(
    claim: str, value: float, spread: float, expected: Verdict
) -> None:
    def rows(name: str) -> Rows:
        odd = name == "imdb"
        return agreement(ABOVE[claim], name, value if odd else 40.0, spread if odd else 1.0)

    decision = decide(claim, flat(everywhere(rows)))
    assert decision.verdict is expected
    assert ("imdb" in decision.note) == (expected is not HOLDS)
    assert set(decision.evidence) == set(CORPORA)


@for_each("claim", ABOVE)
def test_the_outlier_is_shown_and_decides_nothing(claim: str) -> None:
    def rows(name: str) -> Rows:
        return agreement(ABOVE[claim], name, 3.0 if name == "sms" else 40.0, 1.0)

    decision = decide(claim, flat(everywhere(rows, (*CORPORA, "sms"))))
    assert decision.verdict is HOLDS
    assert "sms" in decision.evidence


@for_each("claim", sorted(set(CLAIMS) - {"snell.sms-variance", "snell.bleu"}))
@for_each(
    "corpora", [(*LABELLED[:3], "sms", *PARALLEL), (*LABELLED, PARALLEL[0]), LABELLED, PARALLEL, ()]
)
def test_too_few_corpora_leave_a_claim_undecided(claim: str, corpora: tuple[str, ...]) -> None:
    decision = decide(claim, flat(everywhere(lambda name: PERFECT[claim](name), corpora)))
    assert decision.verdict is UNDECIDED
    assert "needs 4 classification and 2 translation corpora" in decision.note
    assert set(decision.evidence) == set(corpora)


@for_each("claim", sorted(set(CLAIMS) - {"snell.sms-variance"}))
def test_numbers_that_were_not_measured_leave_a_claim_undecided(claim: str) -> None:
    assert decide(claim, flat(everywhere(lambda name: []))).verdict is UNDECIDED


def test_saliency_shows_attention_against_saliency_beside() -> None:
    def rows(name: str) -> Rows:
        return agreement("delta,beta_uf", name, 40.0, 1.0) + text("A(alpha,delta)", name, 33.0)

    evidence = decide("snell.saliency", flat(everywhere(rows))).evidence
    assert all(shown["A(alpha,delta)"].value == 33.0 for shown in evidence.values())


# The training part.


def on_the_training_part(name: str, lowest: float = 40.0, validation: float = 3.0) -> Rows:
    pairs = list(ABOVE.values())
    return [
        *(entry for pair in pairs[:3] for entry in agreement(pair, name, 40.0, 1.0, "train")),
        *agreement(pairs[3], name, lowest, 1.0, "train"),
        *(entry for pair in pairs for entry in agreement(pair, name, validation, 1.0)),
    ]


@for_each(("lowest", "expected"), [(40.0, HOLDS), (7.0, FAILS), (8.9, UNDECIDED)])
def test_the_training_part_needs_all_four_agreements_of_its_own(
    lowest: float, expected: Verdict
) -> None:
    rows = everywhere(on_the_training_part)
    rows["sst"] += on_the_training_part("sst", lowest)
    assert decide("snell.train-split", flat(rows)).verdict is expected


def test_the_validation_part_does_not_stand_in_for_the_training_part() -> None:
    rows = everywhere(lambda name: agreement("alpha,beta_uf", name, 40.0, 1.0))
    assert decide("snell.train-split", flat(rows)).verdict is UNDECIDED


# Kendall.


def correlated(name: str, lowest: float = 10.0, spread: float = 1.0) -> Rows:
    return [
        *text("kendall(alpha,beta_uf)", name, 12.0, 1.0, at=1),
        *text("kendall(beta_uf,beta_px)", name, lowest, spread, at=1),
        *text("kendall(delta,beta_uf)", name, 5.0, 1.0, at=1),
    ]


@for_each(
    ("lowest", "spread", "expected"),
    [(0.2, 0.1, HOLDS), (0.2, 0.2, UNDECIDED), (0.2, 0.3, UNDECIDED), (-0.2, 0.1, FAILS)],
)
def test_all_three_rank_correlations_must_be_above_zero(
    lowest: float, spread: float, expected: Verdict
) -> None:
    rows = everywhere(correlated)
    rows["multi30k-de-en"] = [
        *text("A(alpha,beta_uf)", "multi30k-de-en", 50.0, at=1),
        *correlated("multi30k-de-en", lowest, spread),
    ]
    assert decide("snell.kendall", flat(rows)).verdict is expected


def test_rank_correlations_are_decided_where_nothing_else_was_measured() -> None:
    rows = [entry for name in CORPORA for entry in correlated(name)]
    assert decide("snell.kendall", rows).verdict is HOLDS


# Contextualised agreement.


def contextualised(
    name: str,
    xi: float | None = 80.0,
    star: float = 90.0,
    floor: float = 50.0,
    performance: str = "accuracy",
    tau0: Any = 250,
) -> Rows:
    axes = {"agreement": "top5pct", "performance": performance}
    return [
        *text("xi(alpha,beta_uf)", name, xi, None, tau0=tau0, **axes),
        *text("xi_star", name, star, None, **axes),
        *text("floor", name, floor, None, **axes),
    ]


@for_each(
    ("trivial", "expected"),
    # Of six corpora four must be non-trivial.
    [(0, HOLDS), (2, HOLDS), (3, FAILS)],
)
def test_xi_must_be_a_quarter_of_the_way_up_on_two_thirds_of_the_corpora(
    trivial: int, expected: Verdict
) -> None:
    # A quarter of the way from 50 to 90 is 60.
    low = set(CORPORA[:trivial])
    rows = everywhere(lambda name: contextualised(name, 59.9 if name in low else 60.0))
    assert decide("snell.contextual", flat(rows)).verdict is expected


def test_xi_that_cannot_be_had_may_still_be_made_up_for() -> None:
    def unknown(count: int) -> Verdict:
        missing = set(CORPORA[:count])
        rows = everywhere(lambda name: [] if name in missing else contextualised(name))
        return decide("snell.contextual", flat(rows)).verdict

    assert unknown(2) is HOLDS
    assert unknown(3) is UNDECIDED


def test_a_level_never_exceeded_counts_as_the_references_own_performance() -> None:
    rows = everywhere(lambda name: contextualised(name, 90.0, tau0="never exceeded"))
    decision = decide("snell.contextual", flat(rows))
    assert decision.verdict is HOLDS
    assert all(shown["at step"] == "never exceeded" for shown in decision.evidence.values())


# BLEU.


def both_performances(name: str, xi_bleu: float = 5.0) -> Rows:
    """Of a ξ* of 60 accuracy has 30: half; of a BLEU of 40 it takes 20 to be half."""
    return [
        *contextualised(name, 30.0, 60.0),
        *contextualised(name, xi_bleu, 40.0, 0.0, performance="bleu"),
    ]


@for_each(("xi_bleu", "expected"), [(19.9, HOLDS), (20.0, FAILS), (30.0, FAILS)])
def test_xi_must_be_a_smaller_part_with_bleu_on_each_translation_corpus(
    xi_bleu: float, expected: Verdict
) -> None:
    rows = everywhere(both_performances, PARALLEL[:1]) | everywhere(
        lambda name: both_performances(name, xi_bleu), PARALLEL[1:]
    )
    assert decide("snell.bleu", flat(rows)).verdict is expected


def test_bleu_needs_two_translation_corpora_and_no_classification() -> None:
    assert decide("snell.bleu", flat(everywhere(both_performances, PARALLEL))).verdict is HOLDS
    rows = everywhere(both_performances, PARALLEL[:1]) | everywhere(contextualised, LABELLED)
    decision = decide("snell.bleu", flat(rows))
    assert decision.verdict is UNDECIDED
    assert decision.note == "needs 2 data sets at full size; there are 1"


def test_a_bleu_of_zero_decides_nothing() -> None:
    def rows(name: str) -> Rows:
        return [
            *contextualised(name, 30.0, 60.0),
            *contextualised(name, 0.0, 0.0, 0.0, performance="bleu"),
        ]

    assert decide("snell.bleu", flat(everywhere(rows))).verdict is UNDECIDED


# Rise and fall.


def risen(
    name: str,
    values: Sequence[float] = (6.0, 30.0, 50.0, 40.0),
    inflation: float | None = 0.2,
    spread: float | None = 1.0,
) -> Rows:
    steps = (0, 100, 1000, 4000)
    curve = [
        entry
        for step, value in zip(steps, values, strict=True)
        for entry in text("curve(alpha,beta_uf)", name, value, spread, step=step)
    ]
    # As they stand in a file, in no particular order.
    return [*curve[::-1], *text("inflation", name, inflation, None)]


@for_each(
    ("values", "inflation", "expected"),
    [
        ((6.0, 30.0, 50.0, 40.0), 0.2, HOLDS),
        ((6.0, 30.0, 50.0, 47.9), 0.99, HOLDS),
        ((6.0, 30.0, 50.0, 49.0), 0.2, UNDECIDED),  # the end lies within the intervals
        ((6.0, 30.0, 50.0, 48.0), 0.2, UNDECIDED),  # and touches them
        ((49.0, 30.0, 50.0, 40.0), 0.2, UNDECIDED),  # so does the start
        ((6.0, 30.0, 50.0, 60.0), 0.2, FAILS),  # it only rises
        ((60.0, 50.0, 40.0, 30.0), 0.2, FAILS),  # it only falls
        ((6.0, 30.0, 50.0, 40.0), 1.0, FAILS),  # the maximum is a matter of luck
        ((6.0, 30.0, 50.0, 40.0), None, UNDECIDED),
    ],
)
def test_agreement_rises_then_falls_and_its_maximum_is_no_luck(
    values: tuple[float, ...], inflation: float | None, expected: Verdict
) -> None:
    rows = everywhere(risen)
    rows["yelp"] = flat(everywhere(lambda name: risen(name, values, inflation), ("yelp",)))
    assert decide("snell.rise-and-fall", flat(rows)).verdict is expected


def test_two_checkpoints_have_no_inner_one() -> None:
    def rows(name: str) -> Rows:
        return [entry for entry in risen(name) if entry.axes.get("step") not in (100, 1000)]

    assert decide("snell.rise-and-fall", flat(everywhere(rows))).verdict is UNDECIDED


def test_ends_without_an_interval_are_not_known_to_be_lower() -> None:
    rows = everywhere(lambda name: risen(name, spread=None))
    assert decide("snell.rise-and-fall", flat(rows)).verdict is UNDECIDED


# Two stages.


def staged(
    name: str,
    probe: Sequence[float] = (6.0, 40.0, 50.0, 56.0),
    attention: Sequence[float] = (6.0, 10.0, 60.0, 100.0),
    entropy: Sequence[float] = (1.0, 0.95, 0.6, 0.3),
) -> Rows:
    """By default the probe is half-way (31) at step 100, attention (53) at step 1000."""
    rows = text("A_random", name, CHANCE, 0.1)
    for n, step in enumerate((0, 100, 1000, 4000)):
        rows += text("curve(alpha,beta)", name, probe[n], None, step=step)
        rows += text("curve(alpha,alpha)", name, attention[n], None, step=step)
        rows += text("entropy(alpha)", name, entropy[n], None, step=step)
    return rows[::-1]


@for_each(
    ("settings", "expected"),
    [
        ({}, HOLDS),
        ({"probe": (6.0, 31.0, 50.0, 56.0)}, HOLDS),  # half is enough
        ({"probe": (6.0, 30.9, 50.0, 56.0)}, FAILS),  # then it comes with attention, at 1000
        ({"entropy": (1.0, 0.9, 0.6, 0.3)}, HOLDS),
        ({"entropy": (1.0, 0.89, 0.6, 0.3)}, FAILS),  # attention is no longer uniform
        ({"attention": (6.0, 53.0, 60.0, 100.0)}, FAILS),  # attention comes at the same step
        ({"attention": (6.0, 52.9, 60.0, 100.0)}, HOLDS),
        ({"attention": (60.0, 60.0, 60.0, 100.0)}, FAILS),  # attention comes first
    ],
)
def test_word_knowledge_must_come_first_while_attention_is_near_uniform(
    settings: dict[str, Any], expected: Verdict
) -> None:
    rows = everywhere(lambda name: staged(name, **settings))
    assert decide("snell.two-stages", flat(rows)).verdict is expected


@pytest.mark.parametrize("end", [6.0, 4.0])
def test_a_probe_that_ends_no_better_than_chance_has_no_first_stage(end: float) -> None:
    rows = everywhere(lambda name: staged(name, probe=(7.0, 6.0, 5.0, end)))
    assert decide("snell.two-stages", flat(rows)).verdict is UNDECIDED


@pytest.mark.parametrize(("at_once", "expected"), [(2, HOLDS), (3, FAILS)])
def test_two_stages_are_needed_on_two_thirds_of_the_corpora(
    at_once: int, expected: Verdict
) -> None:
    one_stage = set(CORPORA[:at_once])
    entropy = (1.0, 0.5, 0.4, 0.3)
    rows = everywhere(
        lambda name: staged(name, entropy=entropy) if name in one_stage else staged(name)
    )
    assert decide("snell.two-stages", flat(rows)).verdict is expected


# The outlier.


def seeds(
    own: float, spread: float = 1.0, others: Sequence[float] = (20, 30, 40, 50), pairs: int = 15
) -> Rows:
    rows = [
        entry
        for name, value in zip(LABELLED, others, strict=False)
        for entry in text("excess(alpha_i,alpha_j)", name, value, 1.0, pairs=15)
    ]
    rows += text("excess(alpha_i,alpha_j)", "multi30k-de-en", -50.0, 1.0, pairs=1)
    return rows + text("excess(alpha_i,alpha_j)", "sms", own, spread, pairs=pairs)


@for_each(
    ("own", "spread", "expected"),
    [
        (10.0, 5.0, HOLDS),
        (19.0, 15.0, HOLDS),  # the median of the others is 35
        (19.0, 16.0, UNDECIDED),
        (20.0, 1.0, FAILS),  # not lower than the lowest
        (45.0, 1.0, FAILS),
    ],
)
def test_two_seeds_must_agree_least_on_sms(own: float, spread: float, expected: Verdict) -> None:
    assert decide("snell.sms-variance", seeds(own, spread)).verdict is expected


def test_sms_needs_ten_pairs_of_seeds_and_four_other_corpora() -> None:
    assert decide("snell.sms-variance", seeds(10.0, pairs=10)).verdict is HOLDS
    assert decide("snell.sms-variance", seeds(10.0, pairs=9)).verdict is UNDECIDED
    assert decide("snell.sms-variance", seeds(10.0, others=(20, 30, 40))).verdict is UNDECIDED
    without = [entry for entry in seeds(10.0) if entry.dataset != "sms"]
    assert decide("snell.sms-variance", without).verdict is UNDECIDED


# What every claim has in common.

PERFECT: dict[str, Any] = {
    **{
        claim: (lambda name, pair=pair: agreement(pair, name, 40.0, 1.0))
        for claim, pair in ABOVE.items()
    },
    "snell.train-split": on_the_training_part,
    "snell.kendall": correlated,
    "snell.contextual": contextualised,
    "snell.bleu": both_performances,
    "snell.rise-and-fall": risen,
    "snell.two-stages": staged,
}


@for_each("claim", PERFECT)
def test_the_claim_holds_on_what_the_paper_describes(claim: str) -> None:
    decision = decide(claim, flat(everywhere(PERFECT[claim])))
    assert decision.verdict is HOLDS
    assert decision.note == ""


@for_each("claim", PERFECT)
def test_a_quick_run_says_what_one_corpus_of_each_task_would(claim: str) -> None:
    rows = flat(everywhere(PERFECT[claim], ("grammar-sentiment", PARALLEL[0])))
    assert decide(claim, rows, "quick").verdict is HOLDS
    assert decide(claim, rows).verdict is UNDECIDED


@for_each("claim", PERFECT)
def test_deviations_from_the_papers_corpora_and_embeddings_are_told(claim: str) -> None:
    deviation = decide(claim, flat(everywhere(PERFECT[claim]))).deviation
    assert "multi30k-en-de: The paper's figures come from the other direction" in deviation
    assert "embeddings: random, as in the released code" in deviation
    assert ".;" not in deviation


def test_only_labelled_corpora_whose_own_run_had_no_list_have_a_vocabulary_by_counts() -> None:
    settings = {"sst": {"listed": "glove_100d"}, "sms": {}, "multi30k-de-en": {}}
    results = [
        result_of([row("A(alpha,beta_uf)", name, 50.0)], **config)
        for name, config in settings.items()
    ]
    assert text_deviations(Pool(tuple(results)), list(settings)).endswith("by counts alone: sms")


def test_the_outlier_is_the_corpus_that_the_paper_leaves_out() -> None:
    assert table5_results.OUTLIER == "sms"


def judged(config: dict[str, Any], corpora: Sequence[str] = CORPORA) -> Verdict:
    rows = everywhere(lambda name: agreement("alpha,beta_uf", name, 40.0, 1.0), corpora)
    parallel = [row("median_length", name, 14, side="src", split="train") for name in PARALLEL]
    result = Result(
        recipe="snell/table5",
        scale="full",
        config={"vectors": ""} | config,
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=(*parallel, *flat(rows)),
    )
    return CLAIMS["snell.uniform-probe"](Pool((result,))).verdict


@for_each("smaller", ["steps", "hidden", "embedding", "translation_steps", "translation_hidden"])
def test_a_run_smaller_than_the_papers_decides_nothing(smaller: str) -> None:
    assert judged({}) is HOLDS
    assert judged({smaller: 100}) is UNDECIDED


def test_the_packages_own_corpora_decide_nothing_in_full_runs() -> None:
    assert judged({}, [*LABELLED[:3], "grammar-sentiment", *PARALLEL]) is UNDECIDED


# The paper's own words.


@for_each(
    ("later", "at_once", "expected"), [(0, 2, HOLDS), (0, 3, FAILS), (1, 0, FAILS), (0, 0, HOLDS)]
)
def test_by_the_papers_words_the_probe_is_nowhere_later_and_mostly_earlier(
    later: int, at_once: int, expected: Verdict
) -> None:
    late, tied = set(CORPORA[:later]), set(CORPORA[later : later + at_once])

    def rows(name: str) -> Rows:
        lengths = [row("median_length", name, 20, split="val")]
        if name in late:
            return [*staged(name, attention=(60.0, 60.0, 60.0, 100.0)), *lengths]
        ties = {"attention": (6.0, 53.0, 60.0, 100.0)} if name in tied else {}
        return [*staged(name, entropy=(1.0, 0.5, 0.4, 0.3), **ties), *lengths]

    decision = decide("snell.two-stages", flat(everywhere(rows)), words=True)
    assert decision.verdict is expected


def test_by_the_papers_words_corpora_where_xi_is_never_exceeded_say_nothing() -> None:
    def rows(name: str) -> Rows:
        return [
            *contextualised(name, 60.0, 60.0),
            *contextualised(name, 40.0, 40.0, 0.0, performance="bleu", tau0="never exceeded"),
        ]

    both = everywhere(both_performances, PARALLEL) | everywhere(rows, ("tatoeba-de-en",))
    assert decide("snell.bleu", flat(both)).verdict is FAILS
    assert decide("snell.bleu", flat(both), words=True).verdict is HOLDS
    alone = flat(everywhere(rows, PARALLEL))
    assert decide("snell.bleu", alone, words=True).verdict is UNDECIDED


@for_each(
    ("paired", "rising", "expected"), [(0.5, 0, HOLDS), (-0.5, 0, UNDECIDED), (0.5, 3, FAILS)]
)
def test_by_the_papers_words_the_fall_is_that_of_the_paired_difference(
    paired: float, rising: int, expected: Verdict
) -> None:
    only_rising = set(CORPORA[:rising])

    def rows(name: str) -> Rows:
        end = 60.0 if name in only_rising else 49.0  # within the intervals of the maximum
        ends = [
            entry
            for place in ("start", "end")
            for entry in text("above_end(alpha,beta_uf)", name, 1.0, 1.0 - paired, end=place)
        ]
        return [*risen(name, (6.0, 30.0, 50.0, end), inflation=2.0), *ends]

    decision = decide("snell.rise-and-fall", flat(everywhere(rows)), words=True)
    assert decision.verdict is expected


def test_by_the_papers_words_sms_need_not_be_the_lowest() -> None:
    assert decide("snell.sms-variance", seeds(20.0, 1.0), words=True).verdict is HOLDS
    assert decide("snell.sms-variance", seeds(45.0, 1.0), words=True).verdict is FAILS
