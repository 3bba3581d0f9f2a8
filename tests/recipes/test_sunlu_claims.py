"""Sunlu's claims: what the paper says holds, its opposite fails, too little is undecided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnscope.claims.catalogue import catalogue
from attnscope.claims.decide import Verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.recipes.sunlu import gradient_flow, scores, synthetic, table2, weights
from attnscope.recipes.sunlu.units import CORPORA, MODELS, SCALES
from attnscope.runs.result import Measurement, Result
from attnscope.theory.gradient_flow.random_problems import FORMS
from cases import for_each
from readings import stricter

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
MODULES = {
    "sunlu/gradient-flow": gradient_flow,
    "sunlu/table2": table2,
    "sunlu/scores": scores,
    "sunlu/weights": weights,
    "sunlu/synthetic": synthetic,
}
SST = CORPORA[0]
Rows = list[Measurement]


def row(
    name: str,
    dataset: str,
    value: float,
    spread: float | None = 0.01,
    seeds: int = 10,
    **given: Any,
) -> Measurement:
    """A measurement whose interval reaches ``spread`` to both sides."""
    found = given.pop("found", {})
    one = given.pop("seed", None)
    axes = {"lambda" if key == "scale" else key: value for key, value in given.items()}
    return Measurement(
        name=name,
        dataset=dataset,
        axes=axes,
        found=found,
        value=value,
        low=None if spread is None else value - spread,
        high=None if spread is None else value + spread,
        n=50,
        seeds=range(seeds) if one is None else (one,),
    )


def result(recipe: str, rows: Rows, scale: str = "full", **config: Any) -> Result:
    settings = MODULES[recipe].Config().model_dump(mode="json") | config
    return Result(
        recipe=recipe,
        scale=scale,  # type: ignore[arg-type]
        config=settings,
        environment={},
        seconds=1.0,
        measurements=tuple(rows),
    )


def decide(claim: str, recipe: str, rows: Rows, **config: Any) -> Decision:
    rule = stricter(MODULES[recipe].CLAIMS[claim])
    return rule(Pool((result(recipe, rows, **config),)))


def test_every_claim_of_the_paper_has_a_predicate_in_each_of_its_recipes():
    for entry in catalogue():
        if entry.paper == "sunlu":
            assert all(entry.id in MODULES[name].CLAIMS for name in entry.recipes)


# Table 2.


def grid(small: float = 20.0, large: float = 1.0, entropy: float = 0.999, **more: Any) -> Rows:
    drops = {0.001: small, 1.0: 5.0, 10_000.0: large}
    seeds = more.pop("seeds", 3)
    cells = [(c, m, s) for c in more.pop("corpora", CORPORA) for m in MODELS for s in SCALES]
    return [
        each
        for corpus, model, scale in cells
        for each in (
            row("drop", corpus, drops.get(scale, 0.0), 1.0, seeds, model=model, scale=scale),
            row("entropy", corpus, entropy, 0.0005, seeds, model=model, scale=scale),
        )
    ]


@for_each(
    ("claim", "rows", "verdict"),
    [
        ("small-lambda", grid(), HOLDS),
        ("small-lambda", grid(small=-5.0), FAILS),
        ("small-lambda", grid(small=0.5), UNDECIDED),
        ("small-lambda", grid(seeds=2), UNDECIDED),
        ("small-lambda", grid(corpora=CORPORA[:3]), UNDECIDED),
        ("small-lambda", [r for r in grid() if r.axes["lambda"] != 50.0], UNDECIDED),
        ("large-lambda", grid(), HOLDS),
        ("large-lambda", grid(large=6.0), FAILS),
        ("large-lambda", grid(large=2.5), UNDECIDED),
        ("large-lambda", grid(entropy=0.95), FAILS),
    ],
)
def test_table_2(claim: str, rows: Rows, verdict: Verdict):
    assert decide(f"sunlu.{claim}", "sunlu/table2", rows).verdict is verdict


def test_a_smaller_grid_than_the_papers_decides_nothing():
    decided = decide("sunlu.small-lambda", "sunlu/table2", grid(), epochs=2)
    assert decided.verdict is UNDECIDED


def test_results_of_one_corpus_each_are_pooled():
    each = [result("sunlu/table2", grid(corpora=(name,))) for name in CORPORA]
    assert table2.CLAIMS["sunlu.small-lambda"](Pool(tuple(each))).verdict is HOLDS


# Scores.

BINARY = ("negative", "positive")


def cell(corpus: str = SST, model: str = "DP", scale: float = 10.0, penalty: float = 0.0) -> Any:
    return {"model": model, "scale": scale, "penalty": penalty, "reading": "alone"}


def words(
    auc: float = 0.8,
    sign: float = 0.99,
    share: float = 0.1,
    agree: int = 9,
    wide: float = 2.0,
    s: float = 0.9,
    a: float = 0.2,
    mean: float = 0.3,
    change: float = 0.5,
    seeds: int = 10,
    **aucs: float,
) -> Rows:
    """Every row that the claims read, as the paper would have it by default."""
    rows = []
    for corpus in CORPORA[:3]:
        for group in BINARY:
            rows.append(row("AUC(attention)", corpus, auc, seeds=seeds, group=group, **cell()))
        against = {"group": "positive against negative"}
        rows.append(row("AUC(polarity)", corpus, sign, seeds=seeds, **against, **cell()))
        rows.append(row("neutral_share", corpus, share, seeds=seeds, **cell()))
    for group in ("rec.motorcycles", "sci.med", "talk.politics.guns"):
        value = aucs.get("three", 0.8)
        rows.append(row("AUC(attention)", CORPORA[3], value, seeds=seeds, group=group, **cell()))
    for model in ("AD", "DP-A", "DP-L"):
        for group in BINARY:
            value = aucs.get(model.replace("-", "_"), 0.8)
            given = cell(model=model)
            rows.append(row("AUC(attention)", SST, value, seeds=3, group=group, **given))
    for seed in range(seeds):
        product = 1.0 if seed < agree else -1.0
        found = {"VW": product, "VW at the start": -1.0}
        given = cell(scale=100.0) | {"seed": seed, "found": found}
        rows.append(row("gap", SST, 1.5, None, **given))
    rows.append(row("gap_size", SST, 1.0, **cell()))
    rows.append(row("gap_size", SST, wide, **cell(scale=100.0)))
    rows.append(row("ratio(polarity)", SST, s, 0.05, **cell(scale=100.0)))
    rows.append(row("ratio(attention)", SST, a, 0.05, **cell(scale=100.0)))
    held = cell(scale=100.0, penalty=1e-4)
    for group in BINARY:
        value = aucs.get("held", 0.8)
        rows.append(row("AUC(attention)", SST, value, seeds=seeds, group=group, **held))
        rows.append(row("mean(attention)", SST, mean, 0.1, group=group, **held))
    flat = {key: value for key, value in held.items() if key != "reading"}
    rows.append(row("accuracy_change", SST, change, 0.5, **flat))
    return rows


@for_each(
    ("claim", "given", "verdict"),
    [
        ("polarity-sign", {}, HOLDS),
        ("polarity-sign", {"sign": 0.9}, FAILS),
        ("polarity-sign", {"sign": 0.955}, UNDECIDED),
        ("polarity-sign", {"share": 0.5}, FAILS),
        ("attention-polar", {}, HOLDS),
        ("attention-polar", {"auc": 0.4}, FAILS),
        ("attention-polar", {"auc": 0.505}, UNDECIDED),
        ("attention-polar", {"seeds": 2}, UNDECIDED),
        ("gap", {}, HOLDS),
        ("gap", {"agree": 8}, FAILS),
        ("gap", {"wide": 0.9}, FAILS),
        ("gap", {"seeds": 9}, UNDECIDED),
        ("healthy-polarity", {}, HOLDS),
        ("healthy-polarity", {"s": 0.7}, FAILS),
        ("healthy-polarity", {"a": 0.6}, FAILS),
        ("healthy-polarity", {"s": 0.82}, UNDECIDED),
        ("regulariser", {}, HOLDS),
        ("regulariser", {"held": 0.4}, FAILS),
        ("regulariser", {"mean": -0.3}, FAILS),
        ("regulariser", {"change": -3.0}, FAILS),
        ("multiclass", {}, HOLDS),
        ("multiclass", {"three": 0.3}, FAILS),
        ("additive", {}, HOLDS),
        ("additive", {"AD": 0.4}, FAILS),
        ("additive", {"DP_L": 0.505}, UNDECIDED),
    ],
)
def test_scores(claim: str, given: dict[str, Any], verdict: Verdict):
    assert decide(f"sunlu.{claim}", "sunlu/scores", words(**given)).verdict is verdict


def test_scores_on_another_corpus_decide_nothing_and_stand_beside():
    mine = [each.model_copy(update={"dataset": "mine"}) for each in words()]
    decided = decide("sunlu.attention-polar", "sunlu/scores", mine)
    assert decided.verdict is UNDECIDED
    assert "mine" in decided.evidence


@for_each("claim", ["gap", "polarity-sign", "healthy-polarity", "regulariser"])
def test_a_corpus_without_the_claims_measurements_is_not_named_beside(claim: str):
    assert CORPORA[3] not in decide(f"sunlu.{claim}", "sunlu/scores", words()).evidence


def test_the_claim_on_three_classes_names_no_corpus_of_two():
    assert list(decide("sunlu.multiclass", "sunlu/scores", words()).evidence) == [CORPORA[3]]


# Weights.


def averaged(held: int = 3, auc: float = 0.7, p: float = 0.001, agree: int = 3) -> Rows:
    rows = []
    for seed in range(3):
        for group in BINARY:
            found = {"p": p if seed < held else 0.5}
            rows.append(row("AUC(weight)", SST, auc, seed=seed, group=group, found=found))
        side = 1.0 if seed < agree else -1.0
        rows.append(row("gap(weight)", SST, 0.5, None, seed=seed, found={"gap of scores": side}))
    return rows


@for_each(
    ("given", "verdict"),
    [
        ({}, HOLDS),
        ({"auc": 0.3}, FAILS),
        ({"held": 2}, UNDECIDED),
        ({"agree": 2}, FAILS),
    ],
)
def test_weights(given: dict[str, Any], verdict: Verdict):
    assert decide("sunlu.weights", "sunlu/weights", averaged(**given)).verdict is verdict


# Terms.


def signs(**shares: float) -> Rows:
    neutral = shares.pop("neutral", 0.1)
    return [
        each
        for name in ("polarity-I", "polarity-II")
        for term in synthetic.SIDES
        for each in (
            row("sign", name, shares.get(term, 0.95), seeds=5, term=term),
            row("neutral_ratio", name, neutral, seeds=5, term=term),
        )
    ]


@for_each(
    ("rows", "verdict"),
    [
        (signs(), HOLDS),
        (signs(B=0.89), FAILS),
        (signs(C=0.6), HOLDS),
        (signs(E=0.4), FAILS),
        (signs(F=0.505), UNDECIDED),
        (signs(neutral=0.4), FAILS),
        (signs()[:8], UNDECIDED),
    ],
)
def test_synthetic(rows: Rows, verdict: Verdict):
    assert decide("sunlu.synthetic", "sunlu/synthetic", rows).verdict is verdict


def ranks(first: float = -0.9, last: float = 1.0, start: float = 0.01) -> Rows:
    correlations = {"A/(B+C)": first, "D/(E+F)": last}
    rows = [
        row("rank_correlation", "polarity-I", value, None, ratio=name, when="start", seed=seed)
        for name, value in correlations.items()
        for seed in range(5)
    ]
    return [*rows, row("F/E at the start", "polarity-I", start, 0.001, scale=10.0, when="start")]


@for_each("recipe", ["sunlu/gradient-flow", "sunlu/synthetic"])
@for_each(
    ("rows", "verdict"),
    [
        (ranks(), HOLDS),
        (ranks(first=0.2), FAILS),
        (ranks(last=-0.2), FAILS),
        (ranks(start=0.5), FAILS),
        (ranks()[:2], UNDECIDED),
    ],
)
def test_lambda_terms(recipe: str, rows: Rows, verdict: Verdict):
    assert decide("sunlu.lambda-terms", recipe, rows).verdict is verdict


def test_a_single_scaling_factor_ranks_nothing():
    rows = [
        each.model_copy(update={"value": None}) if each.name == "rank_correlation" else each
        for each in ranks()
    ]
    assert decide("sunlu.lambda-terms", "sunlu/synthetic", rows).verdict is UNDECIDED


def dots(within: float = 0.9, across: float = 0.9, corpora: tuple[str, ...] = CORPORA) -> Rows:
    shares = {"within": within, "across": across}
    return [
        row("dot_sign", name, value, pair=pair, model="DP", scale=10.0)
        for name in corpora
        for pair, value in shares.items()
    ]


@for_each(
    ("rows", "verdict"),
    [
        (dots(), HOLDS),
        (dots(across=0.4), FAILS),
        (dots(within=0.505), UNDECIDED),
        (dots(corpora=(SST,)), UNDECIDED),
    ],
)
def test_dot_products(rows: Rows, verdict: Verdict):
    assert decide("sunlu.dot-products", "sunlu/scores", rows).verdict is verdict


def errors(worst: float = 1e-14, forms: int = len(FORMS)) -> Rows:
    return [
        row("relative_error", "random problems", worst, None, form=form.name, of=of)
        for form in FORMS[:forms]
        for of in ("polarity", "attention")
    ]


@for_each(
    ("rows", "verdict"),
    [(errors(), HOLDS), (errors(1e-8), FAILS), (errors(forms=4), UNDECIDED)],
)
def test_terms(rows: Rows, verdict: Verdict):
    assert decide("sunlu.terms", "sunlu/gradient-flow", rows).verdict is verdict


@for_each("recipe", MODULES)
def test_nothing_measured_is_undecided_and_never_an_error(recipe: str):
    rules: dict[str, Callable[[Pool], Decision]] = dict(MODULES[recipe].CLAIMS)
    for rule in rules.values():
        assert rule(Pool((result(recipe, []),))).verdict is UNDECIDED
