"""Figures 2–7: what each word of a sentence alone would have the models say (Eq. 9).

``sentence="…"`` draws any sentence; without one, four of the held-out texts are chosen by rule. The
share of words that carry the decision by themselves is measured over all held-out texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field
from scipy import stats

from attnscope.analysis.intervals import crossed_interval, mean_interval
from attnscope.analysis.token_probabilities import (
    SentenceProbabilities,
    TokenProbabilities,
    sentence_probabilities,
)
from attnscope.claims.decide import Verdict, above, all_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.errors import UsageError
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Lab
from attnscope.recipes.tutek.fig2_figures import draw
from attnscope.recipes.tutek.fig2_identity import EXACT, identity_rows
from attnscope.recipes.tutek.held_out import best_model, held_out
from attnscope.recipes.tutek.judging import (
    cells,
    deviations,
    evidence_of,
    full_size,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows, axes_of, point, rng
from attnscope.recipes.tutek.table3 import measure_tokens
from attnscope.recipes.tutek.units import (
    SMALL,
    Attentions,
    Runs,
    TutekConfig,
    Which,
    open_corpus,
    train_corpora,
)
from attnscope.runs.result import Measurement

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure"]

_MODELS = ("base", "tying", "mlm")
# The words of a sentence for a figure: fewer show nothing, more do not fit.
_READABLE = (6, 30)


class Config(TutekConfig):
    """Settings of the figures."""

    corpus: Names = Field(("tutek-sst",), min_length=1)  # the paper's figures are of SST
    attention: Attentions = Field(("additive",), min_length=1, max_length=1)
    sentence: str = ""  # drawn in place of held-out ones

    @property
    def parts(self) -> list[str]:
        """A sentence of one's own stands beside the figures."""
        return super().parts + ["sentence"] * bool(self.sentence)


QUICK = SMALL
HEADLINE = ("token_share", "token_share_difference", "leakage_spearman")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Read base, tying and masked-word models word by word."""
    if config.sentence:
        for name in config.corpus:  # One that cannot be read is told before anything is trained.
            _given(open_corpus(config, name), config.sentence)
    models = [Which(name, config.attention[0]) for name in _MODELS]
    made: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        found = {w.model: measure_tokens(units, lab.device) for w, units in runs.units.items()}
        made += _leakage_rows(config, runs, found)
        made += _sentence_rows(config, runs, found, lab.device)
        made += identity_rows(config, runs.source)
    return made


Found = Mapping[str, Sequence[TokenProbabilities]]


def _leakage_rows(config: Config, runs: Runs, found: Found) -> list[Measurement]:
    rows = Rows(runs.source, range(config.seeds))
    shares = {name: _stacked(each, "token_share") for name, each in found.items()}
    made = [
        rows.row("token_share", crossed_interval(shares[which.model], rng=rng()), axes_of(which))
        for which in runs.units
    ]
    for which in runs.units:
        if which.model == "base":
            continue
        share = crossed_interval(shares["base"] - shares[which.model], rng=rng())
        made.append(rows.row("token_share_difference", share, axes_of(which)))
        trends = [
            _spearman(base.confidence.numpy(), (base.token_mean - own.token_mean).numpy())
            for base, own in zip(found["base"], found[which.model], strict=True)
        ]
        trend = mean_interval(trends, rng=rng())
        made.append(rows.row("leakage_spearman", trend, axes_of(which)))
    return made


def _stacked(each: Sequence[TokenProbabilities], name: str) -> np.ndarray:
    return np.stack([getattr(one, name).numpy() for one in each])


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    return float(stats.spearmanr(x, y).statistic)


def _sentence_rows(config: Config, runs: Runs, found: Found, device: str) -> list[Measurement]:
    """Return what the figures show: words, their probabilities, and the models' own."""
    rows = Rows(runs.source, (0,))
    if config.sentence:
        chosen = {"given": _given(runs.source, config.sentence)}
    else:
        chosen = chosen_sentences(runs.source, found)
    made = []
    for which, units in runs.units.items():
        model = best_model(units[0], device)
        for title, batch in chosen.items():
            read = sentence_probabilities(
                model, batch.to(device), runs.source.input_words, runs.source.output_words
            )[0]
            made += _one_sentence(rows, which, title, read)
    return made


def _given(source: Corpus, sentence: str) -> Batch:
    ids = source.encode(sentence)
    if len(ids) == len(source.encode("")):
        raise UsageError(f"sentence={sentence!r} has no word that {source.dataset} would read.")
    return collate([Example(0, ids, [0], [0])])


def _one_sentence(
    rows: Rows, which: Which, title: str, read: SentenceProbabilities
) -> list[Measurement]:
    axes = axes_of(which) | {"sentence": title}
    whole = {"label": read.label}
    made = [rows.row("confidence", point(read.confidence), axes, found=whole)]
    words = zip(read.words, read.probabilities, read.attention, strict=True)
    for place, (word, probability, weight) in enumerate(words):
        here, told = axes | {"place": place}, {"word": word}
        made.append(rows.row("word_probability", point(probability), here, found=told))
        made.append(rows.row("word_attention", point(weight), here, found=told))
    return made


def chosen_sentences(source: Corpus, found: Found) -> dict[str, Batch]:
    """Return held-out sentences for the figures, as the paper's are described.

    The one that the base model is surest of among those it has right (figures 2, 4), the longest
    readable one (5), the one it is least sure of (6), and the one where the tied model is surer of
    the right label by most (7); seed 0, and of equals the first.
    """
    batch = held_out(source).batch
    base, tied = found["base"][0], found["tying"][0]
    lengths = batch.input_lengths.numpy()
    readable = (lengths >= _READABLE[0]) & (lengths <= _READABLE[1])
    right = (base.correct & tied.correct).numpy()
    able = readable & right if (readable & right).any() else np.ones_like(right)
    confidence, other = base.confidence.numpy(), tied.confidence.numpy()
    wanted = {
        "sure": confidence,
        "long": lengths.astype(float),
        "unsure": -confidence,
        "regularised surer": other - confidence,
    }
    places = {
        title: int(np.where(able, value, -np.inf).argmax()) for title, value in wanted.items()
    }
    return {title: batch.rows(slice(place, place + 1)).trimmed() for title, place in places.items()}


def leakage(pool: Pool) -> Decision:
    """Decide tutek.leakage: more words carry the base model's decision, and more so if sure."""
    pool = full_size(pool)
    shares = cells(pool, "token_share_difference", "attention", model="tying")
    trends = cells(pool, "leakage_spearman", "attention", model="tying")
    evidence = evidence_of(cells(pool, "token_share", "model"))
    evidence |= {f"share, base less tying: {k}": v for k, v in evidence_of(shares).items()}
    evidence |= {f"Spearman: {k}": v for k, v in evidence_of(trends).items()}
    parts: list[Verdict] = [
        all_of([above(interval_of(shares[key])), above(interval_of(trends[key]))])
        for key in shares
        if key in trends
    ]
    if not parts:
        return too_few("a corpus with five seeds", 0, evidence)
    return Decision(all_of(parts), evidence, deviations(pool, {key[0] for key in shares}))


def identity(pool: Pool) -> Decision:
    """Decide tutek.identity: three ways to a logit agree in double precision."""
    rows = pool.select("identity")
    if not rows:
        return too_few("a run of tutek/fig2", 0, {})
    off: dict[str, float] = {}
    for row in rows:
        way = str(row.axes["way"])
        off[way] = max(off.get(way, 0.0), math.inf if row.value is None else row.value)
    names = sorted({str(row.axes["classifier"]) for row in rows})
    evidence = {"largest relative difference": off, "classifiers": ", ".join(names)}
    return Decision(verdict(max(off.values()) <= EXACT, True), evidence)


CLAIMS = {"tutek.leakage": leakage, "tutek.identity": identity}
