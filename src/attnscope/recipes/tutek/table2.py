"""Table 2: mutual information between words' embeddings and their states, in nats.

Occurrences are those of the training part, as a thousand word types have too few elsewhere. The
estimate for shuffled pairs, which have nothing in common, stands beside each value: it is the
estimate's bias.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from pydantic import Field

from attnscope.analysis.information import (
    CLUSTER_BATCH,
    CLUSTERS,
    OCCURRENCES,
    SAMPLES,
    TYPES,
    Information,
    cluster_labels,
    label_information,
    occurrences,
    word_counts,
)
from attnscope.analysis.intervals import mean_interval, paired_difference_interval
from attnscope.claims.decide import Verdict, above, all_of, below, share_of
from attnscope.claims.pool import Decision, Pool, interval_of
from attnscope.data.batch import Batch, collate
from attnscope.data.corpus import Corpus
from attnscope.data.randomness import generator, seed_of
from attnscope.data.tokens import SPECIALS
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.held_out import best_model
from attnscope.recipes.tutek.judging import (
    against,
    cells,
    deviations,
    evidence_of,
    full_size,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows, axes_of, rng
from attnscope.recipes.tutek.table1_figures import dot_table
from attnscope.recipes.tutek.units import SMALL, Attentions, Runs, TutekConfig, Which, train_corpora
from attnscope.runs.result import Measurement, Result

# "It is not possible for concat": its states are wider than its words.
_MODELS = ("base", "residual", "tying", "mlm")
_NAMES = {"most-frequent": "mi_mf", "unigram-sample": "mi_rs"}


class Config(TutekConfig):
    """Settings of table 2."""

    attention: Attentions = Field(("additive",), min_length=1)  # the paper shows no other
    words: int = Field(TYPES, ge=2)  # types in a sample
    clusters: int = Field(CLUSTERS, ge=2)
    # The paper has "at most 1M"; a fifth gives the same picture in a fifth of the time.
    occurrences: int = Field(OCCURRENCES, ge=2)


QUICK = SMALL | {
    "words": 60,
    "clusters": 40,
    "occurrences": 1000,
}
HEADLINE = ("mi_mf", "mi_mf_shuffled", "mi_rs", "mi_rs_shuffled")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Cluster words and states of every model, seed by seed."""
    models = [Which(name, attention) for attention in config.attention for name in _MODELS]
    made: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        made += _rows(config, runs, _informations(config, runs, lab))
    return made


Informations = dict[tuple[Which, str], list[Information]]


def _informations(config: Config, runs: Runs, lab: Lab) -> Informations:
    """Return the estimates by model and sample, one a seed; clusterings go side by side."""
    batch = _part_of_train(runs.source, 2 * config.occurrences)
    counts = word_counts(batch, len(runs.source.input_words), _specials(runs.source))
    batch = batch.to(lab.device)
    found: Informations = {}
    for sample, draw_types in SAMPLES.items():
        types = draw_types(counts, config.words, 0)
        for seed in range(config.seeds):
            read = [
                occurrences(
                    best_model(units[seed], lab.device),
                    batch,
                    types,
                    limit=config.occurrences,
                )
                for units in runs.units.values()
            ]
            # Frozen embeddings are the same in all models of a seed.
            points = [read[0].embeddings, *(one.states for one in read)]
            names = ["inputs", *("states" for _ in read)]
            labels = Parallel(n_jobs=lab.workers.jobs)(
                delayed(cluster_labels)(
                    part, config.clusters, CLUSTER_BATCH, seed_of("clusters", name, seed) % 2**32
                )
                for name, part in zip(names, points, strict=True)
            )
            for which, own in zip(runs.units, labels[1:], strict=True):
                information = label_information(labels[0], own, seed=seed)
                found.setdefault((which, sample), []).append(information)
    return found


def _specials(source: Corpus) -> list[int]:
    words = source.input_words.words
    return [words.index(word) for word in SPECIALS if word in words]


def _part_of_train(source: Corpus, tokens: int) -> Batch:
    """Return random training examples of about so many tokens, or all of them."""
    examples = source.training_examples
    order = torch.randperm(len(examples), generator=generator("part for information")).tolist()
    lengths = np.cumsum([len(examples[place].inputs) for place in order])
    count = int(np.searchsorted(lengths, tokens)) + 1
    return collate([examples[place] for place in order[:count]])


def _rows(config: Config, runs: Runs, found: Informations) -> list[Measurement]:
    rows = Rows(runs.source, range(config.seeds), "table2")
    made = []
    for (which, sample), each in found.items():
        name = _NAMES[sample]
        values = {"": [one.value for one in each], "_shuffled": [one.shuffled for one in each],
                  "_entropy": [one.entropy for one in each]}  # fmt: skip
        for suffix, numbers in values.items():
            interval = mean_interval(numbers, rng=rng())
            told = {"occurrences": each[0].n}
            made.append(
                rows.row(f"{name}{suffix}", interval, axes_of(which), found=told, split="train")
            )
    for attention in config.attention:
        for sample, name in _NAMES.items():
            for larger, smaller in _ORDERINGS:
                both = [
                    [one.value for one in found[Which(model, attention), sample]]
                    for model in (larger, smaller)
                ]
                axes = {"attention": attention, "larger": larger, "smaller": smaller}
                difference = paired_difference_interval(*both, rng=rng())
                made.append(rows.row(f"{name}_difference", difference, axes, split="train"))
    return made


# base < MLM < tying, tying ≤ residual + .25: fixed beforehand.
_ORDERINGS = (("mlm", "base"), ("tying", "mlm"), ("tying", "residual"))
_SLACK, _SHARE, _CORPORA = 0.25, 3 / 4, 4


def information(pool: Pool) -> Decision:
    """Decide tutek.information: the order of the models, for both samples of every corpus."""
    pool = full_size(pool)
    parts: dict[tuple[str, str], Verdict] = {}
    evidence: dict[str, str] = {}
    for name in _NAMES.values():
        found = cells(pool, f"{name}_difference", "larger", "smaller", attention="additive")
        levels = cells(pool, name, "model", attention="additive")
        evidence |= {f"{name} {key}": shown for key, shown in evidence_of(levels).items()}
        for dataset in dict.fromkeys(key[0] for key in found):
            first, second, third = (interval_of(found[dataset, *pair]) for pair in _ORDERINGS)
            parts[dataset, name] = all_of([above(first), above(second), below(third, _SLACK)])
    corpora = {dataset for dataset, _ in parts}
    if len(corpora) < pool.needed(_CORPORA):
        return too_few("four corpora with five seeds", len(corpora), evidence)
    decided = share_of(list(parts.values()), _SHARE)
    note = against(parts, list(parts.values()))
    return Decision(decided, evidence, deviations(pool, corpora), note)


CLAIMS = {"tutek.information": information}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both samples of every corpus, the estimates for shuffled pairs beside them."""
    columns = {
        "mi_mf": "most frequent words (nats)",
        "mi_rs": "words drawn by frequency (nats)",
        "mi_mf_shuffled": "most frequent, shuffled pairs (nats)",
        "mi_rs_shuffled": "drawn, shuffled pairs (nats)",
    }
    datasets = dict.fromkeys(row.dataset for row in result.select("mi_mf"))
    return {
        f"table2-{name}": dot_table(result, name, columns, alike=list(columns), across=2)
        for name in datasets
    }
