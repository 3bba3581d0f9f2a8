"""The agreement tables, recomputed from stored scores word by word in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from attnscope.data.corpus import Corpus
from attnscope.data.text import LabelledText, ParallelText
from attnscope.recipes.kit.corpora import is_classification
from attnscope.recipes.snell.agreement import CODE, CODE_BLEU, TEXT, AgreementTable, sheet_of
from attnscope.recipes.snell.table5 import agreements, contextual, curves, seed_pairs
from attnscope.recipes.snell.units import SnellUnits, TextConfig, open_corpus, units_of
from attnscope.runs.result import Curve, Measurement, select
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.scores.score import read_score
from attnscope.training.bleu import Bleu
from attnscope.training.loop import train_unit
from attnscope.training.optimizer import Adam
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit
from cases import for_each

TINY = TextConfig(
    corpus=("grammar-sentiment", "grammar-translation"),
    seeds=3,
    translation_seeds=1,
    embedding=8,
    hidden=8,
    steps=24,
    batch_size=8,
    translation_hidden=8,
    translation_steps=24,
    translation_batch=8,
    examples=7,
    proxy_dimension=4,
    proxy_epochs=1,
    proxy_translation_epochs=1,
)
CORPORA = ("grammar-sentiment", "grammar-translation")
SPLITS = ("val", "train")
WAYS = ("text", "code")
SHORT = Bleu(width=1, limit=12)
PAIRS = ("alpha,beta_uf", "beta_uf,beta_px", "delta,beta_uf", "alpha,beta")

# One number for each output word, by step.
Curves = dict[int, list[float]]
# One array of scores for each output word, over the real input positions.
Words = list[np.ndarray]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SnellUnits]:
    workspace = tmp_path_factory.mktemp("runs")
    translate = Bleu.translate
    with pytest.MonkeyPatch.context() as patch:
        # Untrained models never stop, and write a hundred words of five beams each.
        patch.setattr(Bleu, "translate", lambda _, *given: translate(SHORT, *given))
        return {name: trained(open_corpus(TINY, name), workspace) for name in CORPORA}


def trained(source: Corpus, workspace: Path) -> SnellUnits:
    """Train the units of a corpus, fast enough for attention to move in a few steps."""
    hasty = {"optimizer": Adam(lr=0.05), "evaluate_at": (3, 8, 16)}

    def train(unit: Unit) -> TrainedUnit:
        training = unit.training.model_copy(update=hasty)
        unit = unit.model_copy(update={"training": training})
        return TrainedUnit(unit, train_unit(unit, workspace))

    plan = units_of(TINY, source)
    others = {part: [*map(train, plan.pop(part))] for part in ("comparisons", "uniforms")}
    return SnellUnits(source, **others, **{part: train(unit) for part, unit in plan.items()})


@pytest.fixture(scope="module")
def tables(corpora: dict[str, SnellUnits]) -> dict[tuple[str, str], list[Measurement]]:
    found = {}
    for name, runs in corpora.items():
        for split in SPLITS:
            records = compared(AgreementTable(runs, split))
            found[name, split] = [row for record in records for row in numbers(record)]
    return found


def compared(table: AgreementTable) -> list[Any]:
    """Measure everything, Kendall's τ on the training split too."""
    records: list[Any] = []
    for way in (TEXT, CODE):
        for metric in METRICS:
            records += agreements(table, way, metric)
            for performance in ("accuracy", "bleu"):
                records += contextual(table, way, metric, performance)
        records.append(seed_pairs(table, way))
        records += curves(table, way) if table.split == "val" else []
    return records


def numbers(record: Any) -> list[Measurement]:
    return record.measurements() if isinstance(record, Curve) else [record]


# The definitions, one output word at a time.


def top_share(u: np.ndarray, v: np.ndarray) -> float:
    """Eq. 10: fewer than 5 % of positions have a higher v than the one where u is highest."""
    higher = sum(1 for value in v if value > v[int(np.argmax(u))])
    return float(higher < 0.05 * len(u))


def tau_b(u: np.ndarray, v: np.ndarray) -> float:
    return float(kendalltau(u, v).statistic)


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "top5pct": top_share,
    "kendall_tau": tau_b,
}
NAMES = {"top5pct": "A({})", "kendall_tau": "kendall({})"}


def mean(values: Iterable[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined)


def by_word(u: Words, v: Words, metric: str) -> list[float]:
    return [METRICS[metric](a, b) for a, b in zip(u, v, strict=True)]


def agreement(u: Words, v: Words, metric: str) -> float:
    return mean(by_word(u, v, metric))


class Plain:
    """One corpus and split, read without any of the code under test."""

    def __init__(self, runs: SnellUnits, split: str, way: str) -> None:
        self.runs, self.split, self.way = runs, split, way
        self.reference = runs.reference
        self.attending = [runs.reference, *runs.comparisons]
        # Two runs of a kind are too few to be crossed: the first alone is measured.
        self.references = self.attending if len(self.attending) > 2 else self.attending[:1]
        self.uniforms = runs.uniforms if len(runs.uniforms) > 2 else runs.uniforms[:1]
        self.batch = runs.reference.examples_of(split)
        self.lengths = [
            (n, int(self.batch.input_lengths[n]), int(self.batch.target_lengths[n]))
            for n in range(len(self.batch))
        ]
        # Several tests ask for the same.
        self.words, self.curves = cache(self._words), cache(self._curves)

    def _words(self, unit: TrainedUnit, name: str, step: int | str) -> Words:
        stored = unit.unit.training
        rules = stored.final_scores if isinstance(step, str) else stored.scores
        if name in [rule.name for rule in rules]:
            values = unit.stored(name, step, self.split).values
        else:
            values = read_score(RULES[name], self.model(unit, step), self.batch).values
        values = values.double().numpy()
        return [values[n, t, :inp] for n, inp, out in self.lengths for t in range(out)]

    def model(self, unit: TrainedUnit, step: int | str) -> Any:
        return unit.model if step in ("last", steps_of(unit)[-1]) else unit.best_model

    def performances(self, unit: TrainedUnit, performance: str) -> dict[int, float]:
        column = performance if self.split == "val" else f"train.{performance}"
        return {row["step"]: row[column] for row in unit.log}

    def trained(self, unit: TrainedUnit, performance: str = "accuracy") -> int:
        """The text's model is the last one, the code's that of the table's best performance."""
        reached = self.performances(unit, performance)
        return steps_of(unit)[-1] if self.way == "text" else highest(reached)[0]

    def kept(self, unit: TrainedUnit, performance: str = "accuracy") -> str:
        """Weights are kept of the last step and of the best one by validation accuracy."""
        last = steps_of(unit)[-1]
        best = highest({row["step"]: row["accuracy"] for row in unit.log})[0]
        reached = self.performances(unit, performance)
        wanted = self.trained(unit, performance)
        if self.way == "text" or (wanted == last and last != best):
            return "last"
        return "best" if wanted == best or reached[best] > reached[last] else "last"

    def alpha(self, unit: TrainedUnit, performance: str = "accuracy") -> Words:
        return self.words(unit, "attention", self.trained(unit, performance))

    @cached_property
    def proxy(self) -> Words:
        weights = dict(self.runs.proxy.best_model.named_parameters())
        logits = (weights["embedding.weight"] @ weights["output.weight"].T).double().numpy()
        if logits.shape[1] == 1:
            logits = np.concatenate([np.zeros_like(logits), logits], 1)
        table = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        inputs, targets = self.batch.inputs.numpy(), self.batch.targets.numpy()
        return [
            table[inputs[n, :inp], targets[n, t]]
            for n, inp, out in self.lengths
            for t in range(out)
        ]

    def _curves(self, pair: str, metric: str, performance: str = "accuracy") -> list[Curves]:
        """Return the words of every pair of runs: each that attends with each that does not."""
        found = []
        if pair == "beta_uf,beta_px":
            for uniform in self.uniforms:
                betas = {step: self.probe(uniform, step) for step in steps_of(uniform)}
                # The code has these two the other way round.
                swapped = self.way == "code"
                found.append(
                    {
                        step: by_word(*((self.proxy, b) if swapped else (b, self.proxy)), metric)
                        for step, b in betas.items()
                    }
                )
            return found
        for run in self.references:
            alpha = self.alpha(run, performance)
            delta = self.words(run, "saliency", self.kept(run, performance))
            if pair == "alpha,delta":
                found.append({self.trained(run, performance): by_word(alpha, delta, metric)})
            elif pair == "alpha,beta" and self.way == "text":
                last = self.trained(run)
                found.append({last: by_word(alpha, self.probe(run, last), metric)})
            elif pair == "alpha,beta":
                first = self.runs.comparisons[0]
                other = self.reference if run is first else first
                found.append(self.with_probe(alpha, other, metric))
            else:
                u = alpha if pair == "alpha,beta_uf" else delta
                found += [self.with_probe(u, each, metric) for each in self.uniforms]
        return found

    def probe(self, unit: TrainedUnit, step: int) -> Words:
        return self.words(unit, "lexical_probe", step)

    def with_probe(self, u: Words, unit: TrainedUnit, metric: str) -> Curves:
        return {step: by_word(u, self.probe(unit, step), metric) for step in steps_of(unit)}

    def level(self, pair: str, metric: str, performance: str = "accuracy") -> float:
        """Return the mean over the words of all pairs of runs, each where it is highest."""
        taken = [curve[top(curve)] for curve in self.curves(pair, metric, performance)]
        return mean(value for values in taken for value in values)

    def chance(self) -> list[float]:
        """⌈0.05 L⌉ / L at every output word."""
        return [math.ceil(0.05 * inp) / inp for _, inp, out in self.lengths for _ in range(out)]


RULES = {"saliency": Saliency(), "lexical_probe": LexicalProbe()}


def steps_of(unit: TrainedUnit) -> list[int]:
    return [row["step"] for row in unit.log]


def highest(curve: dict[int, float]) -> tuple[int, float]:
    best = max(curve.values())
    return next((step, value) for step, value in curve.items() if value == best)


def top(curve: Curves) -> int:
    return highest({step: mean(values) for step, values in curve.items()})[0]


def only(rows: Sequence[Measurement], name: str, **axes: Any) -> Measurement:
    (row,) = select(rows, name, **axes)
    return row


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


Case = tuple[Plain, list[Measurement]]
Cases = dict[tuple[str, ...], Case]
KEYS = [(corpus, split, way) for corpus in CORPORA for split in SPLITS for way in WAYS]
every_case = for_each("key", KEYS)


@pytest.fixture(scope="module")
def cases(
    corpora: dict[str, SnellUnits], tables: dict[tuple[str, str], list[Measurement]]
) -> dict[tuple[str, ...], Case]:
    return {key: (Plain(corpora[key[0]], *key[1:]), tables[key[:2]]) for key in KEYS}


def test_the_tiny_runs_tell_the_ways_apart(cases: dict[tuple[str, ...], Case]) -> None:
    """Otherwise the tests below could not fail for a mistaken checkpoint or order."""
    text, code = ([cases[corpus, "val", way][0] for corpus in CORPORA] for way in WAYS)
    assert any(
        a.trained(a.reference) != b.trained(b.reference) for a, b in zip(text, code, strict=True)
    )
    for pair in PAIRS:
        ways = [[each.curves(pair, "top5pct") for each in plain] for plain in (text, code)]
        assert ways[0] != ways[1]


@for_each("metric", ["top5pct", "kendall_tau"])
@every_case
def test_every_agreement_is_the_mean_over_output_words_at_the_best_checkpoint(
    cases: Cases, key: tuple[str, ...], metric: str
) -> None:
    plain, rows = cases[key]
    for pair in (*PAIRS, "alpha,delta"):
        row = only(rows, NAMES[metric].format(pair), way=plain.way)
        assert row.value == near(100 * plain.level(pair, metric))
        assert row.found["at"] == top(plain.curves(pair, metric)[0])
        assert row.split == plain.split
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.value <= row.high
        assert row.n <= len(plain.batch)


@every_case
def test_excess_and_ratio_are_over_the_closed_form_of_chance(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    chance = mean(plain.chance())
    assert only(rows, "A_random", way=plain.way).value == near(100 * chance)
    for pair in PAIRS:
        value = plain.level(pair, "top5pct")
        excess, ratio = (only(rows, f"{n}({pair})", way=plain.way) for n in ("excess", "ratio"))
        assert excess.value == near(100 * (value - chance))
        assert ratio.value == near(value / chance)


def compared_runs(plain: Plain) -> list[TrainedUnit]:
    """Runs that have a reference other than themselves."""
    return [run for run in plain.attending if plain.references != [run]]


def hats(plain: Plain, metric: str, performance: str = "accuracy") -> dict[int, list[float]]:
    """𝒜(α, α̂_r(τ)) of every run r at every step τ, the mean over all other references' α."""
    found: dict[int, list[float]] = {}
    for step in steps_of(plain.reference):
        found[step] = []
        for run in compared_runs(plain):
            own = plain.words(run, "attention", step)
            others = [plain.alpha(one, performance) for one in plain.references if one is not run]
            found[step].append(mean(agreement(alpha, own, metric) for alpha in others))
    return found


def performances(plain: Plain, performance: str) -> tuple[dict[int, float], float]:
    """The runs' mean performance at every step, and the references' where they are trained."""
    scale = 100 if performance == "accuracy" else 1
    logged = {run: plain.performances(run, performance) for run in plain.attending}
    reached = {
        step: scale * mean(logged[run][step] for run in compared_runs(plain))
        for step in steps_of(plain.reference)
    }
    stars = [logged[run][plain.trained(run, performance)] for run in plain.references]
    return reached, scale * mean(stars)


@for_each("metric", ["top5pct", "kendall_tau"])
@every_case
def test_xi_is_the_performance_where_the_averaged_agreement_first_exceeds(
    cases: Cases, key: tuple[str, ...], metric: str
) -> None:
    plain, rows = cases[key]
    kinds = ("accuracy",) if is_classification(plain.runs.source) else ("accuracy", "bleu")
    for performance in kinds:
        hat = hats(plain, metric, performance)
        averaged = {step: mean(values) for step, values in hat.items()}
        reached, star = performances(plain, performance)
        axes = {"way": plain.way, "agreement": metric, "performance": performance}
        assert only(rows, "xi_star", **axes).value == near(star)
        for pair in PAIRS:
            level = plain.level(pair, metric, performance)
            above = [step for step in sorted(averaged) if averaged[step] > level]
            row = only(rows, f"xi({pair})", **axes)
            assert row.value == near(reached[above[0]] if above else star)
            assert row.found["tau0"] == (above[0] if above else "never exceeded")
            assert row.seeds == tuple(run.unit.seed for run in compared_runs(plain))


def test_some_xi_is_found_and_some_is_never_exceeded(
    tables: dict[tuple[str, str], list[Measurement]],
) -> None:
    """Both branches of the test above are gone through."""
    found = {
        str(row.found["tau0"]) for rows in tables.values() for row in select(rows, "xi(alpha,beta)")
    }
    assert "never exceeded" in found
    assert len(found) > 1


@every_case
def test_the_floor_is_the_start_or_the_majority_whichever_is_higher(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    reached, _ = performances(plain, "accuracy")
    targets = plain.batch.targets.numpy()
    words = [int(targets[n, t]) for n, _, out in plain.lengths for t in range(out)]
    majority = 100 * max(words.count(word) for word in words) / len(words)
    for metric in METRICS:
        row = only(rows, "floor", way=plain.way, agreement=metric, performance="accuracy")
        assert row.value == pytest.approx(max(reached[0], majority), rel=1e-9)


def test_classification_has_no_bleu(tables: dict[tuple[str, str], list[Measurement]]) -> None:
    rows = tables["grammar-sentiment", "val"]
    assert not [row for row in rows if row.axes.get("performance") == "bleu"]


@every_case
def test_the_attentions_of_all_pairs_of_seeds_are_compared_above_chance(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    units = plain.attending
    scores = [plain.alpha(unit) for unit in units]
    values = [agreement(u, v, "top5pct") for u, v in combinations(scores, 2)]
    row = only(rows, "excess(alpha_i,alpha_j)", way=plain.way)
    assert row.found["pairs"] == len(values)
    assert row.value == near(100 * (mean(values) - mean(plain.chance())))
    assert row.seeds == tuple(unit.unit.seed for unit in units)


def test_the_codes_checkpoint_is_that_of_the_tables_own_performance(
    corpora: dict[str, SnellUnits],
) -> None:
    runs = corpora["grammar-translation"]
    for split in SPLITS:
        plain = Plain(runs, split, "code")
        rows = agreements(AgreementTable(runs, split), CODE_BLEU, "top5pct")
        for pair in PAIRS:
            row = only(rows, f"A({pair})", way="code-bleu")
            assert row.value == near(100 * plain.level(pair, "top5pct", "bleu"))


def test_of_a_checkpoint_that_is_not_kept_the_better_of_the_kept_ones_is_taken() -> None:
    log = [
        {"step": 0, "accuracy": 0.1, "bleu": 1.0},
        {"step": 1, "accuracy": 0.9, "bleu": 3.0},
        {"step": 2, "accuracy": 0.5, "bleu": 9.0},
        {"step": 3, "accuracy": 0.6, "bleu": 5.0},
    ]
    unit = FakeUnit(log, best_step=1)
    assert (CODE.step(unit), CODE.weights(unit)) == (1, "best")
    assert (CODE_BLEU.step(unit), CODE_BLEU.weights(unit)) == (2, "last")
    assert (TEXT.step(unit), TEXT.weights(unit)) == (3, "last")


class FakeUnit(TrainedUnit):
    """A log alone."""

    def __init__(self, log: list[dict[str, Any]], best_step: int) -> None:
        self.log, self._best = log, best_step

    @property
    def best_step(self) -> int:
        return self._best


# Figure 2 and the curves through training: the validation part alone.


on_validation = for_each("key", [key for key in KEYS if key[1] == "val"])


@on_validation
def test_figure_2_shows_agreement_and_performance_of_the_comparison_runs(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    reached, _ = performances(plain, "accuracy")
    for metric in METRICS:
        axes = {"way": plain.way, "agreement": metric, "performance": "accuracy"}
        for step, values in hats(plain, metric).items():
            hat = only(rows, "hat_agreement", step=step, **axes)
            assert hat.value == near(100 * mean(values))
            assert only(rows, "hat_performance", step=step, **axes).value == near(reached[step])


@on_validation
def test_curves_go_through_every_checkpoint(cases: Cases, key: tuple[str, ...]) -> None:
    plain, rows = cases[key]
    uniform = plain.curves("alpha,beta_uf", "top5pct")
    for step in steps_of(plain.reference):
        row = only(rows, "curve(alpha,beta_uf)", way=plain.way, step=step)
        assert row.value == near(100 * mean(value for curve in uniform for value in curve[step]))
    for name, score in (("beta", "lexical_probe"), ("alpha", "attention")):
        for step in steps_of(plain.reference):
            later = plain.words(plain.reference, score, step)
            row = only(rows, f"curve(alpha,{name})", way=plain.way, step=step)
            assert row.value == near(
                100 * agreement(plain.alpha(plain.reference), later, "top5pct")
            )


@on_validation
def test_the_entropy_of_attention_is_in_units_of_log_length(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    for step in steps_of(plain.reference):
        weights = plain.words(plain.reference, "attention", step)
        spread = mean(-float((w * np.log(w)).sum()) / math.log(len(w)) for w in weights)
        row = only(rows, "entropy(alpha)", way=plain.way, step=step)
        assert row.value == pytest.approx(spread, abs=1e-7)  # stored in single precision


@on_validation
def test_inflation_is_what_choosing_on_the_other_half_of_sentences_loses(
    cases: Cases, key: tuple[str, ...]
) -> None:
    plain, rows = cases[key]
    sentences = [n for n, _, out in plain.lengths for _ in range(out)]
    values: Curves = {}
    for step in steps_of(plain.reference):
        found = [curve[step] for curve in plain.curves("alpha,beta_uf", "top5pct")]
        values[step] = [mean(pairs) for pairs in zip(*found, strict=True)]

    def half(step: int, parity: int) -> float:
        pairs = zip(values[step], sentences, strict=True)
        return mean(value for value, n in pairs if n % 2 == parity)

    chosen = [highest({step: half(step, parity) for step in values})[0] for parity in (0, 1)]
    honest = mean(half(step, 1 - parity) for parity, step in enumerate(chosen))
    best = max(mean(row) for row in values.values())
    assert only(rows, "inflation", way=plain.way).value == near(100 * (best - honest))


def test_the_training_part_has_no_curves(tables: dict[tuple[str, str], list[Measurement]]) -> None:
    for corpus in CORPORA:
        names = {row.name for row in tables[corpus, "train"]}
        assert not {name for name in names if name.startswith(("curve", "hat", "entropy"))}
        assert {row.split for row in tables[corpus, "train"]} == {"train"}


# What the paper prints.


def printed(source: Any, table: str, name: str, **variant: str) -> float | None:
    """Return the printed number; the corpora themselves are not needed for it."""
    sheet = sheet_of(source, 20, "val", TEXT, table)
    return sheet.point(name, 0.0, variant=variant).published


SENTIMENT = {"performance": "accuracy"}
TRANSLATION = {"performance": "token_accuracy"}


@for_each(
    ("source", "table", "name", "variant", "expected"),
    [
        # Table 2 (rounded) for Table 5; Table 3 with its decimals.
        (LabelledText(corpus="imdb"), "table5", "A(alpha,beta_uf)", {}, 53),
        (LabelledText(corpus="imdb"), "table5", "A_random", {}, 5),
        (LabelledText(corpus="sst"), "table5", "xi_star", SENTIMENT, 84),
        (LabelledText(corpus="newsgroups"), "table5", "xi(alpha,beta)", SENTIMENT, 85),
        (LabelledText(corpus="ag_news"), "table3", "kendall(alpha,beta_uf)", {}, 26.31),
        (ParallelText(corpus="multi30k-de-en"), "table5", "A(alpha,beta)", {}, 49),
        (ParallelText(corpus="multi30k-de-en"), "table5", "xi_star", TRANSLATION, 66),
        (ParallelText(corpus="tatoeba-de-en"), "table5", "xi(alpha,beta)", TRANSLATION, 44),
        # Table 11 prints fractions.
        (LabelledText(corpus="imdb"), "table11", "A(beta_uf,beta_px)", {}, 81),
    ],
    ids=str,
)
def test_numbers_are_compared_with_the_printed_ones(
    source: Any, table: str, name: str, variant: dict[str, str], expected: float
) -> None:
    found = printed(source, table, name, **variant)
    digits = 0 if isinstance(expected, int) else 2
    assert found is not None
    assert round(found, digits) == expected


def test_nothing_is_compared_with_numbers_that_the_paper_does_not_print() -> None:
    for source in (ParallelText(corpus="multi30k-en-de"), LabelledText(corpus="sms")):
        assert printed(source, "table5", "A(alpha,beta_uf)") is None
