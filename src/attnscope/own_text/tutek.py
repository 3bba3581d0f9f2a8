"""Sentences about a user's corpus from tutek's recipes: do the answers depend on attention?"""

from __future__ import annotations

from collections.abc import Mapping

from attnscope.own_text.about import (
    REPORT,
    About,
    CorpusNumbers,
    accuracy_sentence,
    accuracy_warnings,
    ends,
    in_percent,
    like_paper,
    printed_values,
    shown,
)
from attnscope.runs.result import Measurement

_MODELS = {"tying": "states tied to their words", "mlm": "states that also predict masked words"}


def about_fragility(numbers: CorpusNumbers) -> About:
    """Return the sentences about a model under uniform and permuted attention."""
    accuracy = numbers.one("accuracy_trained", model="base") or numbers.one("accuracy_trained")
    if accuracy is None:
        return About(numbers.dataset)
    cell = dict(accuracy.axes)
    f1, uniform, permuted = (
        numbers.one(name, **cell) for name in ("f1_trained", "f1_drop_uniform", "f1_drop_permuted")
    )
    if f1 is None or uniform is None or permuted is None:
        return About(numbers.dataset)
    return About(
        numbers.dataset,
        (*numbers.warnings, *accuracy_warnings(numbers, accuracy)),
        (
            accuracy_sentence(numbers, accuracy),
            f"Its F1 of {shown(f1.number)} % {_change(uniform)} when attention is made uniform, "
            f"and {_change(permuted)} when it is shuffled.",
            *_others(numbers),
        ),
        (_meaning(uniform),),
        (
            "`attnscope run tutek/fig1` looks for another attention with the same answers.",
            REPORT,
        ),
    )


def _change(row: Measurement) -> str:
    if row.number > 0:
        return f"rises by {shown(row.number)} points{ends(row)}"
    lost = _lost(row)
    return f"falls by {shown(lost.number)} points{ends(lost)}"


def _lost(row: Measurement) -> Measurement:
    """Return a change as a loss, its interval turned round."""
    low, high = (None if end is None else -end for end in (row.high, row.low))
    return row.model_copy(update={"value": -row.number, "low": low, "high": high})


def _others(numbers: CorpusNumbers) -> list[str]:
    """Return what models lose whose states keep their words."""
    told = []
    for model, words in _MODELS.items():
        row = numbers.one("extra_drop", model=model, modification="uniform")
        if row is not None:
            more = "more" if row.number > 0 else "less"
            told.append(f"with {words} it loses {shown(abs(row.number))} points {more}")
    if not told:
        return []
    return [f"Next to the base model under uniform attention: {'; '.join(told)}."]


def _meaning(uniform: Measurement) -> str:
    printed = printed_values("tutek", "table1", "f1_drop_uniform", model="base")
    like = like_paper(_lost(uniform), [-value for value in printed], " points")
    sure = (uniform.number if uniform.high is None else uniform.high) < 0
    if not sure:
        return (
            "The answers do not depend on attention: uniform weights do as well, so that attention "
            f"cannot explain them; the loss is {like}."
        )
    return f"The answers depend on attention; the loss is {like}."


def about_information(numbers: CorpusNumbers) -> About:
    """Return the sentences about mutual information of states and words."""
    rows = _by_model(numbers, "mi_mf")
    base = rows.get("base")
    if base is None:
        return About(numbers.dataset)
    told = [f"{_MODELS[m]}: {row.number:.2f}" for m, row in rows.items() if m in _MODELS]
    more = all(row.number > base.number for m, row in rows.items() if m in _MODELS)
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            f"A state of the base model knows its own word to {base.number:.2f} nats; of models "
            f"with {', '.join(told)}."
            if told
            else f"A state of the base model knows its own word to {base.number:.2f} nats.",
        ),
        (
            "Extra losses keep states closer to their words, as in the paper."
            if more
            else "Extra losses do not keep states closer to their words here, unlike in the paper.",
        ),
        ("`attnscope run tutek/table1` asks what the answers lose without attention.",),
    )


def about_single_words(numbers: CorpusNumbers) -> About:
    """Return the sentences about the answer that one word alone gives, of Table 3."""
    rows = _by_model(numbers, "token_probability")
    base = rows.get("base")
    if base is None:
        return About(numbers.dataset)
    told = [
        f"with {_MODELS[m]} {row.number:.2f}{_two(row)}" for m, row in rows.items() if m in _MODELS
    ]
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            "With all attention on one word, the base model gives its answer a probability of "
            f"{base.number:.2f} on average{_two(base)}{'; ' + ', '.join(told) if told else ''}.",
        ),
        (_fewer_words(rows),),
        ("`attnscope run tutek/fig2` shows what each word of a sentence alone would say.",),
    )


def about_leakage(numbers: CorpusNumbers) -> About:
    """Return the sentences about words that carry the decision by themselves, of Figures 2–7."""
    rows = _by_model(numbers, "token_share")
    base = rows.get("base")
    if base is None:
        return About(numbers.dataset)
    shares = {model: in_percent(row) for model, row in rows.items()}
    told = [f"with {_MODELS[m]} {shown(r.number)} %" for m, r in shares.items() if m in _MODELS]
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            f"{shown(shares['base'].number)} % of single words alone have the base model give its "
            f"answer{ends(shares['base'])}{'; ' + ', '.join(told) if told else ''}.",
        ),
        (_fewer_words(rows),),
        ("`attnscope run tutek/table1` asks what the answers lose without attention.", REPORT),
    )


def _by_model(numbers: CorpusNumbers, name: str) -> dict[str, Measurement]:
    """Return the first measurement of each model."""
    found: dict[str, Measurement] = {}
    for row in numbers.all(name):
        found.setdefault(str(row.axes["model"]), row)
    return found


def _fewer_words(rows: Mapping[str, Measurement]) -> str:
    others = [row for model, row in rows.items() if model in _MODELS]
    if all(row.number < rows["base"].number for row in others):
        return (
            "In models whose states keep their words, single words carry less of the decision, as "
            "in the paper."
        )
    return (
        "In models whose states keep their words, single words do not all carry less of the "
        "decision, unlike in the paper."
    )


def about_adversaries(numbers: CorpusNumbers) -> About:
    """Return the sentences about another attention with nearly the same answers."""
    rows = numbers.all("search_jsd", model="base") or numbers.all("search_jsd")
    if not rows:
        return About(numbers.dataset)
    row = rows[0]
    far = row.number > 0.35  # half of the largest divergence, log 2
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            "Attention of a single text can be moved by a divergence of "
            f"{row.number:.2f} (0 alike, 0.69 apart) without changing the answer.",
        ),
        (
            "Very different attention gives the same answer: attention is not the explanation."
            if far
            else "Attention cannot be moved far without changing the answer.",
        ),
        ("`attnscope run tutek/table1` asks what the answers lose without attention.",),
    )


def about_rationales(numbers: CorpusNumbers) -> About:
    """Return the sentences about words that people marked."""
    rows = {str(row.axes["score"]): row for row in reversed(numbers.all("average_precision"))}
    chance = numbers.one("chance_average_precision")
    if not rows or chance is None:
        return About(numbers.dataset)
    words = {"attention": "attention", "lexical_probe": "the probe", "saliency": "saliency"}
    told = [f"{words[name]} {row.number:.2f}{_two(row)}" for name, row in rows.items()]
    best = max(rows, key=lambda name: rows[name].number)
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            "Ranking words by how well they match the marked ones (average precision, chance "
            f"{chance.number:.2f}): {', '.join(told)}.",
        ),
        (f"The marked words are found best by {words[best]}.",),
        (REPORT,),
    )


def _two(row: Measurement) -> str:
    if row.low is None or row.high is None:
        return ""
    return f" ({row.low:.2f} to {row.high:.2f})"


RULES = {
    "tutek/table1": about_fragility,
    "tutek/table2": about_information,
    "tutek/table3": about_single_words,
    "tutek/fig1": about_adversaries,
    "tutek/fig2": about_leakage,
    "tutek/table6": about_fragility,
    "tutek/initialisation": about_fragility,
    "tutek/rationales": about_rationales,
}
