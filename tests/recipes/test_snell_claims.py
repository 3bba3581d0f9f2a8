"""The snell predicates: what the paper describes holds, its opposite does not."""

from __future__ import annotations

from typing import Any

from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Pool
from attnscope.recipes.snell import fig3, fig6, fig7, permutation_function
from attnscope.runs.result import Measurement, Result
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


def pool(config: Any, rows: list[Measurement], scale: str = "full") -> Pool:
    result = Result(
        recipe="test",
        scale=scale,  # type: ignore[arg-type]
        config=config.model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )
    return Pool((result,))


def decide(recipe: Any, found: Pool, claim: str, words: bool = False) -> Verdict:
    rule = recipe.CLAIMS[f"snell.{claim}"]
    return (rule if words else stricter(rule))(found).verdict


def row(name: str, value: float | None, seed: int | None = None, **axes: Any) -> Measurement:
    seeds = () if seed is None else (seed,)
    return Measurement(
        name=name, dataset="data", axes=axes, value=value, low=value, high=value, n=20, seeds=seeds
    )


def copying(role: str, accuracies: list[float], steps: list[int | None]) -> list[Measurement]:
    rows = []
    for seed, (accuracy, reached) in enumerate(zip(accuracies, steps, strict=True)):
        rows.append(row("accuracy", accuracy, seed, role=role, run=seed, step=200))
        rows.append(row("steps_to_95", reached, seed, role=role, run=seed, step=200))
    return rows


def figure3(learned: int, seeds: int = 20) -> Pool:
    hard = copying(
        "permutations",
        [1.0] * learned + [0.7] * (seeds - learned),
        [90] * learned + [None] * (seeds - learned),
    )
    return pool(fig3.Config(), hard + copying("control", [1.0] * seeds, [40] * seeds))


@for_each(
    ("learned", "seeds", "expected"),
    [
        (12, 20, HOLDS),  # the authors' script: 12 of 20 against 20 of 20
        (20, 20, FAILS),  # nothing ever fails
        (12, 19, UNDECIDED),  # too few seeds
    ],
)
def test_permutation_copy_needs_failures_and_twenty_seeds(
    learned: int, seeds: int, expected: Verdict
) -> None:
    assert decide(fig3, figure3(learned, seeds), "permutation-copy") is expected


def proxy(variation: float, halves: float, agreement: float) -> Pool:
    rows = [
        row("variation(beta_px)", variation, role="permutations"),
        row("variation(beta_px)", variation, role="mixture"),
        row("variation(beta_px)", 6.2, role="control"),
        row("same_half(beta_px)", halves, role="mixture"),
        row("A(gold,beta_px)", agreement, role="control"),
        row("A_random", 3 / 41, role="control"),
    ]
    return pool(fig3.Config(), rows)


@for_each(
    ("variation", "halves", "agreement", "expected"),
    [
        (0.03, 1.0, 1.0, HOLDS),
        (0.06, 1.0, 1.0, FAILS),  # positions are told apart
        (0.03, 0.9, 1.0, FAILS),  # halves are not
        (0.03, 1.0, 3 / 41, FAILS),  # the control knows nothing either
    ],
)
def test_proxy_cannot_needs_all_its_parts(
    variation: float, halves: float, agreement: float, expected: Verdict
) -> None:
    assert decide(fig3, proxy(variation, halves, agreement), "proxy-cannot") is expected


def figure6(bad: int, one: int, rnd: dict[int, int], models: int = 20) -> Pool:
    rows = [row("heads_found", 20, kind=kind) for kind in ("good", "bad", "neither")]
    rows.append(row("failure_rate", 0.4, heads=1, of="candidates"))
    groups = {"all bad": (8, bad), "one good": (8, one)}
    groups |= {f"random, K = {k}": (k, learned) for k, learned in rnd.items()}
    for scenario, (heads, learned) in groups.items():
        axes: dict[str, Any] = {"scenario": scenario, "heads": heads}
        for run in range(models):
            value = 1.0 if run < learned else 0.4
            rows.append(row("accuracy", value, run, run=run, **axes))
            rows.append(row("steps_to_95", 100 if run < learned else None, run, run=run, **axes))
        rows.append(
            Measurement(name="seeds_learned", dataset="data", axes=axes, value=learned, n=models)
        )
    return pool(fig6.Config(), rows)


PAPER = {1: 12, 2: 16, 4: 19, 8: 20}


@for_each(
    ("bad", "one", "rnd", "expected"),
    [
        (1, 18, PAPER, HOLDS),
        (20, 20, PAPER, FAILS),  # bad heads learn as well
        (1, 18, PAPER | {8: 15}, FAILS),  # random heads learn in fewer than .8 of the models
        (8, 12, PAPER, UNDECIDED),  # no significant difference
    ],
)
def test_good_heads_compares_bad_with_one_good_and_random(
    bad: int, one: int, rnd: dict[int, int], expected: Verdict
) -> None:
    assert decide(fig6, figure6(bad, one, rnd), "good-heads") is expected


@for_each(
    ("rnd", "expected"),
    [
        (PAPER, HOLDS),
        ({1: 20, 2: 19, 4: 16, 8: 12}, FAILS),  # failures grow
        ({1: 19, 2: 20, 4: 20, 8: 20}, UNDECIDED),  # too few failures to tell
    ],
)
def test_more_heads_needs_a_falling_trend(rnd: dict[int, int], expected: Verdict) -> None:
    assert decide(fig6, figure6(1, 18, rnd), "more-heads") is expected


def figure7(early: dict[str, float], late: dict[str, float]) -> Pool:
    rows = []
    for encoder in fig7.ENCODERS:
        for step, heights in ((10, early), (4000, late)):
            span = max(heights.values()) - min(heights.values())
            for place, height in heights.items():
                many = {"encoder": encoder, "step": step, "place": place}
                rows.append(
                    row("gamma", height, **many).model_copy(update={"seeds": tuple(range(10))})
                )
            for high, low in (
                ("keyword", "next"),
                ("keyword", "mean"),
                ("keyword", "last"),
                ("next", "mean"),
                ("next", "last"),
                ("mean", "last"),
            ):
                gap = (heights[high] - heights[low]) / span
                axes: dict[str, Any] = {"encoder": encoder, "step": step, "from": high, "to": low}
                rows.append(row("gap", gap, **axes))
    return pool(fig7.Config(), rows)


LOCAL = {"keyword": 3.0, "next": 1.0, "mean": 0.1, "last": 0.0}  # Eq. 23
LAST = {"last": 9.0, "next": 5.0, "mean": 1.2, "keyword": 1.0}  # Eq. 24
WORD_ONLY = {"keyword": 3.0, "mean": 1.0, "last": 0.1, "next": 0.0}  # Eq. 22


@for_each(
    ("early", "late", "expected"),
    [
        (LOCAL, LAST, HOLDS),
        (LOCAL, LOCAL, FAILS),  # information never moves
        (LAST, LAST, FAILS),  # it was never local
        (WORD_ONLY, LAST, FAILS),  # Hypothesis 1 is true at some step
    ],
)
def test_local_then_last_needs_equation_23_early_and_24_late(
    early: dict[str, float], late: dict[str, float], expected: Verdict
) -> None:
    assert decide(fig7, figure7(early, late), "local-then-last") is expected


def reordering(copied: float, late: float, tables: float, difference: float) -> Pool:
    rows = [row("accuracy", copied, seed, task="copy", step=300, run=seed) for seed in range(20)]
    for seed in range(20):
        rows.append(row("accuracy", 0.4, seed, task="reordered", step=300, run=seed))
        rows.append(row("accuracy", late, seed, task="reordered", step=2000, run=seed))
    rows.append(row("count_table_difference", tables))
    rows.append(row("beta_uf(gold) relative difference", difference))
    return pool(permutation_function.Config(), rows)


@for_each(
    ("copied", "late", "tables", "difference", "expected"),
    [
        (1.0, 0.7, 0.0, 0.02, HOLDS),
        (0.98, 0.7, 0.0, 0.02, FAILS),
        (1.0, 0.96, 0.0, 0.02, FAILS),
        (1.0, 0.7, 0.1, 0.02, FAILS),
        (1.0, 0.7, 0.0, 0.2, FAILS),
    ],
)
def test_permutation_function_needs_all_its_parts(
    copied: float, late: float, tables: float, difference: float, expected: Verdict
) -> None:
    found = reordering(copied, late, tables, difference)
    assert decide(permutation_function, found, "permutation-function") is expected


SCRIPT = {"cell": "gru", "join": "averaged", "embeddings": "separate"}


def test_by_the_papers_words_the_networks_of_the_authors_script_decide() -> None:
    text = figure6(20, 20, PAPER)
    script = figure6(1, 18, PAPER | {2: 11}).results[0]
    script = script.model_copy(update={"config": script.config | SCRIPT})
    both = Pool((script, *text.results))
    for claim in ("good-heads", "more-heads"):
        assert decide(fig6, text, claim, words=True) is UNDECIDED
        assert decide(fig6, both, claim, words=True) is HOLDS
    assert decide(fig6, both, "good-heads") is FAILS
    # One step that rises does not undo a trend that falls.
    assert decide(fig6, figure6(1, 18, PAPER | {2: 11}), "more-heads") is FAILS


def test_by_the_papers_words_300_steps_are_the_budget() -> None:
    found = reordering(1.0, 0.96, 0.0, 0.02)
    claim = "permutation-function"
    assert decide(permutation_function, found, claim, words=True) is HOLDS
    slow = reordering(0.98, 0.7, 0.0, 0.02)
    assert decide(permutation_function, slow, claim, words=True) is FAILS


def test_by_the_papers_words_one_encoder_is_enough() -> None:
    found = figure7(LOCAL, LAST)
    rows = found.results[0].measurements
    lost = [
        row.model_copy(update={"value": 0.0, "low": 0.0, "high": 0.0})
        if row.name == "gap" and row.axes["encoder"] == "bidirectional"
        else row
        for row in rows
    ]
    found = Pool((found.results[0].model_copy(update={"measurements": tuple(lost)}),))
    assert decide(fig7, found, "local-then-last") is FAILS
    assert decide(fig7, found, "local-then-last", words=True) is HOLDS
