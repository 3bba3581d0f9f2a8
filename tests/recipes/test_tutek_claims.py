"""tutek's claims on made-up measurements: what the paper says holds, its opposite does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attnscope.claims.catalogue import catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.recipes import entries
from attnscope.recipes.recipe import module_of
from attnscope.runs.result import Measurement, Result
from cases import for_each

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
CORPORA = ("tutek-sst", "tutek-imdb", "tutek-ag-news", "tutek-20news")
ATTENTIONS = ("additive", "dot")
RULES = {
    claim: (entry.name, rule)
    for entry in entries()
    if entry.name.startswith("tutek/")
    for claim, rule in module_of(entry).CLAIMS.items()
}

Rows = list[Measurement]


def row(
    name: str,
    dataset: str,
    value: float,
    spread: float = 0.1,
    seeds: Sequence[int] = range(5),
    **axes: Any,
) -> Measurement:
    """A measurement whose interval reaches ``spread`` to both sides."""
    return Measurement(
        name=name,
        dataset=dataset,
        split="test",
        axes=axes,
        value=value,
        low=value - spread,
        high=value + spread,
        n=100,
        seeds=tuple(seeds),
    )


def decide(
    claim: str, rows: Rows, scale: str = "full", config: dict[str, Any] | None = None
) -> Decision:
    recipe, rule = RULES[claim]
    result = Result(
        recipe=recipe,
        scale=scale,  # type: ignore[arg-type]
        config=config or {},
        environment={"device": "cpu"},
        seconds=0.0,
        measurements=tuple(rows),
    )
    return rule(Pool((result,)))


def test_every_claim_of_the_paper_has_a_rule():
    assert set(RULES) == {entry.id for entry in catalogue() if entry.paper == "tutek"}


def kept(difference: float, spread: float = 0.5, corpora: Sequence[str] = CORPORA) -> Rows:
    return [
        row("f1_difference", corpus, difference, spread, attention=attention, model=model)
        for corpus in corpora
        for attention in ATTENTIONS
        for model in ("tying", "mlm", "concat", "residual")
    ]


def extra(more: int, size: float = 5.0, mlm: int = 16, corpora: Sequence[str] = CORPORA) -> Rows:
    """Extra drops, positive in so many cells of the tied model and of the masked-word model."""
    cells = [(c, a, m) for c in corpora for a in ATTENTIONS for m in ("uniform", "permuted")]
    return [
        row(
            "extra_drop",
            corpus,
            size if place < count else -1.0,
            attention=attention,
            model=model,
            modification=modification,
        )
        for model, count in (("tying", more), ("mlm", mlm))
        for place, (corpus, attention, modification) in enumerate(cells)
    ]


def lengths(drops: Sequence[float]) -> Rows:
    made = []
    for corpus, length, drop in zip(CORPORA, (17, 178, 32, 110), drops, strict=True):
        made.append(row("avg_length", corpus, length, seeds=()))
        for attention in ATTENTIONS:
            for name in ("uniform", "permuted"):
                axes = {"attention": attention, "model": "base"}
                made.append(row(f"f1_drop_{name}", corpus, -drop, **axes))
    return made


def queries(difference: float, spread: float = 0.5, corpora: int = 2) -> Rows:
    return [
        row("f1_difference", corpus, difference, spread, attention="additive", model="instance")
        for corpus in CORPORA[:corpora]
    ]


def information(mlm: float, tying: float, residual: float, corpora: int = 4) -> Rows:
    """Differences as the recipe has them: MLM − base, tying − MLM, tying − residual."""
    pairs = {("mlm", "base"): mlm, ("tying", "mlm"): tying, ("tying", "residual"): residual}
    return [
        row(
            f"{name}_difference",
            corpus,
            value,
            attention="additive",
            larger=larger,
            smaller=smaller,
        )
        for corpus in CORPORA[:corpora]
        for name in ("mi_mf", "mi_rs")
        for (larger, smaller), value in pairs.items()
    ]


def tokens(difference: float, spread: float = 0.01, corpora: int = 4) -> Rows:
    return [
        row(
            "token_probability_difference",
            corpus,
            difference,
            spread,
            attention=attention,
            model=model,
        )
        for corpus in CORPORA[:corpora]
        for attention in ATTENTIONS
        for model in ("tying", "mlm")
    ]


def leaking(share: float, trend: float, seeds: int = 5) -> Rows:
    axes = {"attention": "additive", "model": "tying"}
    return [
        row(name, CORPORA[0], value, 0.05, range(seeds), **axes)
        for name, value in (("token_share_difference", share), ("leakage_spearman", trend))
    ]


def adversaries(mlm: float, tying: float = -1.0, seeds: int = 5) -> Rows:
    return [
        row("tvd_difference", corpus, value, 0.01, range(seeds), attention="additive", model=model)
        for corpus in ("tutek-sst", "tutek-20news")
        for model, value in (("mlm", mlm), ("tying", tying))
    ]


def layered(one: float, two: float, corpora: int = 2) -> Rows:
    return [
        row(f"f1_drop_{name}", corpus, -drop, seeds=range(3), model="base", layers=depth)
        for corpus in CORPORA[:corpora]
        for name in ("uniform", "permuted")
        for depth, drop in ((1, one), (2, two), (3, one))
    ]


def started(default: float, normal: float, drop: float = 0.1, seeds: int = 5) -> Rows:
    made = [row("f1_drop_uniform", CORPORA[0], -drop, seeds=range(seeds), initial="default")]
    for start, entropy in (("default", default), ("normal", normal)):
        made += [
            row("entropy", CORPORA[0], entropy, 0.0, (seed,), initial=start, seed=seed)
            for seed in range(seeds)
        ]
    return made


def diabetes(left: float) -> Rows:
    axes = {"attention": "additive", "model": "base"}
    return [
        row("f1_trained", "mimic-diabetes", 80.0, **axes),
        *(
            row(f"f1_drop_{m}", "mimic-diabetes", left - 80.0, **axes)
            for m in ("uniform", "permuted")
        ),
    ]


def identical(off: float) -> Rows:
    return [row("identity", CORPORA[0], off, 0.0, (0,), classifier="a", way="polarity")]


@for_each(
    ("claim", "rows", "expected"),
    [
        ("tutek.performance-kept", kept(-2.0), HOLDS),
        ("tutek.performance-kept", kept(-4.0), FAILS),
        ("tutek.performance-kept", kept(-2.8), UNDECIDED),
        ("tutek.performance-kept", kept(0.0, corpora=CORPORA[:3]), UNDECIDED),
        ("tutek.fragile", extra(15, mlm=10), HOLDS),
        ("tutek.fragile", extra(14), FAILS),
        ("tutek.fragile", extra(16, mlm=9), FAILS),
        # In enough cells, yet less on average.
        ("tutek.fragile", extra(15, size=0.01), FAILS),
        ("tutek.fragile", extra(12, corpora=CORPORA[:3]), UNDECIDED),
        ("tutek.length", lengths([1, 20, 5, 10]), HOLDS),
        ("tutek.length", lengths([20, 1, 10, 5]), FAILS),
        ("tutek.length", lengths([1, 20, 5, 10])[:15], UNDECIDED),
        ("tutek.instance-query", queries(1.0), HOLDS),
        ("tutek.instance-query", queries(-3.0), FAILS),
        ("tutek.instance-query", queries(1.8), UNDECIDED),
        ("tutek.instance-query", queries(0.0, corpora=1), UNDECIDED),
        ("tutek.information", information(1.0, 1.0, -0.2), HOLDS),
        ("tutek.information", information(1.0, 1.0, 0.5), FAILS),
        ("tutek.information", information(-1.0, 2.0, 0.0), FAILS),
        ("tutek.information", information(1.0, -1.0, 0.0), FAILS),
        ("tutek.information", information(1.0, 1.0, 0.2), UNDECIDED),
        ("tutek.information", information(1.0, 1.0, 0.0, corpora=3), UNDECIDED),
        ("tutek.token-probability", tokens(-0.1), HOLDS),
        ("tutek.token-probability", tokens(0.1), FAILS),
        ("tutek.token-probability", tokens(-0.005), UNDECIDED),
        ("tutek.token-probability", tokens(-0.1, corpora=3), UNDECIDED),
        ("tutek.leakage", leaking(0.2, 0.4), HOLDS),
        ("tutek.leakage", leaking(-0.2, 0.4), FAILS),
        ("tutek.leakage", leaking(0.2, -0.4), FAILS),
        ("tutek.leakage", leaking(0.2, 0.01), UNDECIDED),
        ("tutek.leakage", leaking(0.2, 0.4, seeds=4), UNDECIDED),
        # What tying does stands beside and decides nothing.
        ("tutek.adversary", adversaries(0.05), HOLDS),
        ("tutek.adversary", adversaries(-0.05, tying=1.0), FAILS),
        ("tutek.adversary", adversaries(0.005), UNDECIDED),
        ("tutek.adversary", adversaries(0.05, seeds=4), UNDECIDED),
        ("tutek.layers", layered(10, 3), HOLDS),
        ("tutek.layers", layered(3, 10), FAILS),
        ("tutek.layers", layered(10, 3, corpora=1), UNDECIDED),
        ("tutek.initialisation", started(0.99, 0.9), HOLDS),
        ("tutek.initialisation", started(0.97, 0.9), FAILS),
        ("tutek.initialisation", started(0.99, 0.96), FAILS),
        ("tutek.initialisation", started(0.99, 0.9, drop=0.6), FAILS),
        ("tutek.initialisation", started(0.99, 0.9, seeds=4), UNDECIDED),
        ("tutek.identity", identical(1e-15), HOLDS),
        ("tutek.identity", identical(1e-6), FAILS),
        ("tutek.identity", [], UNDECIDED),
        ("tutek.diabetes", diabetes(0.0), HOLDS),
        ("tutek.diabetes", diabetes(10.0), FAILS),
        ("tutek.diabetes", kept(0.0), UNDECIDED),
    ],
)
def test_a_claim_is_decided_by_its_words(claim: str, rows: Rows, expected: Verdict):
    assert decide(claim, rows).verdict is expected


SEVERAL: dict[str, Callable[[], Rows]] = {
    "tutek.performance-kept": lambda: kept(-2.0),
    "tutek.fragile": lambda: extra(16),
    "tutek.information": lambda: information(1.0, 1.0, 0.0),
    "tutek.token-probability": lambda: tokens(-0.1),
    "tutek.adversary": lambda: adversaries(0.05),
    "tutek.initialisation": lambda: started(0.99, 0.9),
}


@for_each("claim", SEVERAL)
def test_fewer_steps_than_the_default_decide_nothing(claim: str):
    rows = SEVERAL[claim]()
    assert decide(claim, rows, config={"most_steps": 2000}).verdict is HOLDS
    assert decide(claim, rows, config={"most_steps": 1999}).verdict is UNDECIDED


@for_each("claim", SEVERAL)
def test_the_packages_own_corpus_shows_and_never_decides(claim: str):
    rows = [r.model_copy(update={"dataset": "grammar-sentiment"}) for r in SEVERAL[claim]()]
    assert decide(claim, rows).verdict is UNDECIDED
    assert decide(claim, rows, scale="quick").verdict is HOLDS


def test_a_verdict_says_on_which_cells_it_fails_and_how_the_setting_deviates():
    rows = [*kept(-2.0, corpora=CORPORA[:3]), *kept(-9.0, corpora=CORPORA[3:])]
    decision = decide("tutek.performance-kept", rows, config={"vectors": "glove_100d"})
    assert decision.verdict is HOLDS  # 24 of 32 cells
    assert "tutek-20news dot tying" in decision.note
    assert "embeddings: glove_100d, frozen in every model" in decision.deviation
    assert "23,051" in decision.deviation
