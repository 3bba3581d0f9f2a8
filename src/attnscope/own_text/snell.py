"""Sentences about a user's corpus from snell's tables: does attention follow what words mean?"""

from __future__ import annotations

from attnscope.claims.published import published
from attnscope.data.known import GENERATED
from attnscope.own_text.about import (
    NOTHING,
    REPORT,
    About,
    CorpusNumbers,
    above_chance,
    accuracy_sentence,
    accuracy_warnings,
    ends,
    learned,
    like_paper,
    printed_corpora,
    shown,
    translator_warnings,
)
from attnscope.runs.result import Measurement

_TEXT = {"way": "text", "split": "val"}
_ROUNDING = 1e-9  # far above that of sums, far below any real difference


def about_agreement(numbers: CorpusNumbers) -> About:
    """Return the sentences about the agreement tables."""
    accuracy = numbers.one("accuracy")
    agreed = numbers.one("A(alpha,beta_uf)", **_TEXT)
    if accuracy is None or agreed is None:
        return About(numbers.dataset)
    labelled = numbers.one("majority") is not None
    found = [_performance(numbers, accuracy), _agreement(numbers, agreed, labelled)]
    found += _uniform(numbers, accuracy)
    warned = accuracy_warnings if labelled else translator_warnings
    warnings = [*numbers.warnings, *warned(numbers, accuracy)]
    steps = [REPORT]
    if not learned(numbers, accuracy):
        steps.insert(0, "More texts or more steps come before any question about attention.")
    elif warnings:
        steps.insert(0, "More texts or more steps may take the model beyond single words.")
    else:
        other = "snell/table11" if labelled else "snell/optimal-attention"
        steps.append(f"`attnscope run {other}` asks the same of {_NEXT[other]}.")
    return About(
        numbers.dataset,
        tuple(warnings),
        tuple(found),
        (_meaning(numbers, agreed, labelled) if learned(numbers, accuracy) else NOTHING,),
        tuple(steps),
    )


_NEXT = {
    "snell/table11": "a bag-of-words model",
    "snell/optimal-attention": "the best attention that there is",
}


def _performance(numbers: CorpusNumbers, accuracy: Measurement) -> str:
    if numbers.one("majority") is not None:
        return accuracy_sentence(numbers, accuracy)
    bleu = numbers.one("xi_star", performance="bleu", **_TEXT)
    told = "" if bleu is None else f", and its BLEU is {shown(bleu.number)}"
    floor = numbers.one("previous_token")
    beside = "" if floor is None else f" (from the token before alone: {shown(floor.number)} %)"
    return f"The translator finds {shown(accuracy.number)} % of the next tokens{beside}{told}."


def _agreement(numbers: CorpusNumbers, agreed: Measurement, labelled: bool) -> str:
    chance = numbers.one("A_random", **_TEXT)
    of = "texts" if labelled else "output tokens"
    by_chance = "" if chance is None else f"chance {shown(chance.number)}"
    sentence = (
        f"Attention's top word is among the top 5 % of the uniform probe, which knows single words "
        f"only, in {shown(agreed.number)} % of the {of}{ends(agreed, by_chance)}"
    )
    model1 = numbers.one("A(alpha,ibm1)", split="val")
    if model1 is not None:
        sentence += f", and among IBM Model 1's in {shown(model1.number)} %{ends(model1)}"
    return f"{sentence}."


def _uniform(numbers: CorpusNumbers, accuracy: Measurement) -> list[str]:
    uniform = numbers.one("accuracy_uniform")
    if uniform is None:
        return []
    cost = accuracy.number - uniform.number
    word = "costs" if cost >= 0 else "gains"
    return [f"Taking attention away (uniform in training) {word} {shown(abs(cost))} points."]


def _meaning(numbers: CorpusNumbers, agreed: Measurement, labelled: bool) -> str:
    printed = printed_corpora("classification" if labelled else "translation")
    rows = [
        row.value
        for row in published("snell")
        if (row.table, row.metric) == ("table5", "A(alpha,beta_uf)") and row.dataset in printed
    ]
    if not above_chance(agreed, numbers.one("A_random", **_TEXT)):
        return (
            "Attention here is not where the telling words are: it agrees with what words mean by "
            f"themselves no better than chance, {like_paper(agreed, rows)}."
        )
    return f"Attention here follows what words mean by themselves, {like_paper(agreed, rows)}."


def about_frozen(numbers: CorpusNumbers) -> About:
    """Return the sentences about Table 10."""
    accuracy, frozen = numbers.one("accuracy"), numbers.one("A(alpha,alpha_fr)", **_TEXT)
    probe = numbers.one("A(alpha,beta_uf)", **_TEXT)
    if accuracy is None or frozen is None or probe is None:
        return About(numbers.dataset)
    chance = numbers.one("A_random", **_TEXT)
    by_chance = "" if chance is None else f"chance {shown(chance.number)}"
    lower = frozen.number < probe.number
    return About(
        numbers.dataset,
        (*numbers.warnings, *accuracy_warnings(numbers, accuracy)),
        (
            accuracy_sentence(numbers, accuracy),
            "Attention that was trained on top of frozen random features agrees with the trained "
            f"model's in {shown(frozen.number)} % of the texts{ends(frozen, by_chance)}; the "
            f"uniform probe, which knows single words only, in {shown(probe.number)} %"
            f"{ends(probe)}.",
        ),
        (
            NOTHING
            if not learned(numbers, accuracy)
            else "Attention has to know words before it can find them, as in the paper."
            if lower
            else "Attention can be found here without knowing words, unlike in the paper.",
        ),
        (REPORT,),
    )


def about_logistic(numbers: CorpusNumbers) -> About:
    """Return the sentences about Table 11."""
    accuracy = numbers.one("accuracy")
    proxy = numbers.one("A(beta_uf,beta_px)", **_TEXT)
    logistic = numbers.one("A(beta_uf,beta_log)", **_TEXT)
    if accuracy is None or proxy is None or logistic is None:
        return About(numbers.dataset)
    near = abs(proxy.number - logistic.number) <= 8.0  # points, as the paper's claim has it
    return About(
        numbers.dataset,
        (*numbers.warnings, *accuracy_warnings(numbers, accuracy)),
        (
            accuracy_sentence(numbers, accuracy),
            "The top word of the uniform probe is among the top 5 % of a bag-of-words network in "
            f"{shown(proxy.number)} % of the texts{ends(proxy)}, and of a logistic regression in "
            f"{shown(logistic.number)} %{ends(logistic)}.",
        ),
        (
            "What the model knows of words before attention moves is what a regression on counts "
            "knows, as in the paper."
            if near
            else "The two differ by more than in the paper: the probe is not just a regression.",
        ),
        (REPORT,),
    )


def about_optimal(numbers: CorpusNumbers) -> About:
    """Return the sentences about optimal attention."""
    best = numbers.one("A(alpha_opt,beta)", **_TEXT)
    own = numbers.one("A(alpha_opt,alpha)", **_TEXT)
    bleu = numbers.one("bleu", **_TEXT)
    if best is None or own is None:
        return About(numbers.dataset)
    chance = numbers.one("A_random", **_TEXT)
    by_chance = "" if chance is None else f"chance {shown(chance.number)}"
    told = [] if bleu is None else [f"The translator's BLEU is {shown(bleu.number)}."]
    return About(
        numbers.dataset,
        tuple(numbers.warnings),
        (
            *told,
            "The best possible attention has its top word among the probe's top 5 % in "
            f"{shown(best.number)} % of the output tokens{ends(best, by_chance)}, and among the "
            f"model's own attention's in {shown(own.number)} %{ends(own)}.",
        ),
        (
            "The best place to look is mostly the one that alone says most, as in the paper."
            if best.number > 50
            else "The best place to look is often not the one that alone says most.",
        ),
        (REPORT,),
    )


def about_counts(numbers: CorpusNumbers) -> About:
    """Return the sentences about co-occurrence counts; nothing is trained on the corpus."""
    off = numbers.one("ibm_difference")
    if off is None or numbers.dataset in GENERATED:
        return About(numbers.dataset)
    same = off.number < _ROUNDING
    return About(
        numbers.dataset,
        (),
        (
            f"The co-occurrence counts of {off.n:,} training examples differ from the first counts "
            f"of IBM Model 1 by at most {off.number:.0e}, relatively.",
        ),
        (
            "They are the same: under uniform attention a model first learns what IBM Model 1 "
            "counts, as in the paper."
            if same
            else "They are not the same, unlike in the paper, where the two are equal.",
        ),
        ("`attnscope run snell/table5` asks whether attention follows what can be counted.",),
    )


def about_gold(numbers: CorpusNumbers) -> About:
    """Return how well each method finds the gold links of one corpus."""
    rates = {}
    for method, words in _METHODS.items():
        rows = numbers.all("aer", method=method)
        if rows:
            rates[words] = min(row.number for row in rows)
    if not rates:
        return About(numbers.dataset)
    told = [f"{words} {shown(100 * rate)} %" for words, rate in rates.items()]
    attention, diagonal = (rates.get(_METHODS[name]) for name in ("attention", "diagonal"))
    behind = attention is not None and diagonal is not None and attention >= diagonal
    return About(
        numbers.dataset,
        (_NO_LINKS,) if behind else (),
        (f"Links that are wrong (alignment error rate, best setting): {', '.join(told)}.",),
        (f"The gold links are found best by {min(rates, key=rates.__getitem__)}.",),
        (REPORT,),
    )


_NO_LINKS = (
    "The translator's attention finds the links no better than the diagonal, which knows no words: "
    "it is trained too little, or attends elsewhere than to a word's translation."
)
_METHODS = {
    "diagonal": "the diagonal",
    "ibm_model1": "IBM Model 1",
    "attention": "attention",
    "lexical_probe": "the lexical probe",
}

RULES = {
    "snell/cooccurrence": about_counts,
    "snell/table5": about_agreement,
    "snell/table10": about_frozen,
    "snell/table11": about_logistic,
    "snell/optimal-attention": about_optimal,
    "snell/alignment": about_gold,
}
