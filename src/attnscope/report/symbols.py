"""Every symbol of a report in plain words, shown where a reader points at it."""

from __future__ import annotations

import re
from collections.abc import Iterable

SCORES: dict[str, tuple[str, str]] = {
    "attention": (
        "α attention",
        "How much the model looks at this input word when it writes this output word: weights of a "
        "row sum to 1.",
    ),
    "lexical_probe": (
        "β lexical probe",
        "How probable the right output word would be if the model looked at this one input word "
        "only: what it knows about the two words, whatever it attends to.",
    ),
    "uniform_probe": (
        "βᵘᶠ uniform probe",
        "The lexical probe of a model that was trained looking everywhere equally: what can be "
        "learned about words before attention moves.",
    ),
    "proxy": (
        "βᵖˣ proxy",
        "A bag-of-words model without positions or attention: how strongly it links these two "
        "word types.",
    ),
    "saliency": (
        "Δ saliency",
        "How much the right output word gains from this input word, to first order; where the "
        "word speaks against it, the value is negative and the cell red.",
    ),
    "ibm_model1": (
        "IBM Model 1",
        "The classical statistical translation model: how probable it is that this input word "
        "produced this output word, from counts alone.",
    ),
    "logistic": (
        "βˡᵒᵍ logistic weights",
        "The weight of this word in a logistic regression on word counts.",
    ),
    "optimal_attention": (
        "α* optimal attention",
        "The attention that would make the right output most probable, with everything else of "
        "the model as it is.",
    ),
    "gold": ("gold position", "Where the output word really comes from."),
    "temporal_attention": (
        "attention of temporal components",
        "The attention that would remain if states knew nothing but the time step.",
    ),
}
"""Label and explanation of each score, by the name it is stored under."""

_PART = {"temporal": "time step", "word": "word", "delta": "rest"}


def score_symbol(name: str) -> tuple[str, str]:
    """Return label and explanation of a score."""
    if name.startswith("term_"):
        first, second = name.split("_")[1:3]
        label = f"{first} · {second}"
        return label, (
            f"The part of the attention logit that is the product of what the decoder's state says "
            f"about the {_PART.get(first, first)} and what the encoder's state says about the "
            f"{_PART.get(second, second)}."
        )
    return SCORES.get(name, (name.replace("_", " "), ""))


_LETTERS = {
    "alpha": "α",
    "alpha_fr": "αᶠʳ",
    "alpha_opt": "α*",
    "beta": "β",
    "beta_uf": "βᵘᶠ",
    "beta_px": "βᵖˣ",
    "beta_log": "βˡᵒᵍ",
    "delta": "Δ",
    "gold": "gold",
}
_LETTER_WORDS = {
    "alpha": "attention",
    "alpha_fr": "attention trained with everything else frozen",
    "alpha_opt": "the optimal attention",
    "beta": "the lexical probe",
    "beta_uf": "the probe under uniform attention",
    "beta_px": "the proxy",
    "beta_log": "logistic weights",
    "delta": "saliency",
    "gold": "the gold position",
}

_MEASURES = {
    "A": "How often the highest position of {0} is among the top 5 % of {1} (percent of output "
    "words).",
    "curve": "How often the highest position of {0} is among the top 5 % of {1}, at one training "
    "step.",
    "xi": "How well the model performs (percent) at the step of training where the attention of "
    "two seeds begins to agree better than {0} and {1} do: the higher, the stronger that "
    "agreement.",
    "excess": "Agreement of {0} and {1}, above chance.",
    "ratio": "Agreement of {0} and {1}, as a multiple of chance.",
    "entropy": "How spread out {0} is: 0 on one word, 1 on all alike.",
    "variation": "How much {0} varies from word to word: standard deviation over mean.",
    "accuracy": "Share of right answers of {0}.",
    "AUC": "How often a word of the group has a higher {0} than one of the others: .5 is chance.",
    "mean": "Mean {0} of the words of a group.",
    "beta_uf": "The probe under uniform attention at {0}.",
}

_NAMES = {
    "A_random": "The agreement that a shuffled score would have.",
    "F/E at the start": "Two terms of the gradient flow over each other at the first step.",
    "ablation_drop_permuted": "F1 lost when attention weights are shuffled, at each weight of "
    "the extra loss.",
    "ablation_drop_uniform": "F1 lost when attention is made uniform, at each weight of the "
    "extra loss.",
    "accepted": "Share of seeds that learned the task well enough to be measured.",
    "accuracy": "Share of right outputs on held-out examples.",
    "aer": "Alignment error rate against links made by people: 0 is perfect.",
    "alpha_opt": "Optimal attention of the paper's worked example.",
    "attention_on_gold": "How often attention is largest on the right input word.",
    "attention_similarity": "How much of a sequence's attention the mean attention already has: "
    "1 is all.",
    "average_precision": "How well a score ranks the words that people marked as reasons.",
    "avg_length": "Mean number of words of a text.",
    "beta": "Lexical probe of the paper's worked example.",
    "bleu": "BLEU: how close translations are to the references, up to 100.",
    "carries_over": "Whether a finding about the paper's networks is also found in this one: 1 "
    "yes, 0 no.",
    "certified": "Output words whose optimal attention is proved to be the optimum, in percent.",
    "chance_average_precision": "What a random ranking of the words would have.",
    "chance_rationale_f1": "What random words would have.",
    "chosen_weight": "The weight of the extra loss that was chosen on validation data.",
    "count_table_difference": "Largest difference between the co-occurrence counts of the two "
    "tasks.",
    "delta_share": "Share of what is not the time step in a state that is not its word either.",
    "dictionary": "How often the readout of an input word's component is its translation.",
    "difference": "The first agreement less the second.",
    "dot_sign": "Share of word pairs whose vectors point as predicted: the same way within a "
    "group.",
    "drop": "Accuracy below that of the best setting, in points.",
    "entropy": "How spread out attention is: 0 on one word, 1 on all alike.",
    "error_exponent": "How fast the error of a law shrinks as the network grows: the power of "
    "its size.",
    "f1_difference": "F1 of this model less that of the base model.",
    "f1_drop_permuted": "F1 lost when attention weights are shuffled.",
    "f1_drop_uniform": "F1 lost when attention is made uniform.",
    "f1_trained": "F1 with the attention that was learned.",
    "failure_rate": "Share of single heads that did not learn the task.",
    "gamma": "Log-odds of the right answer if attention were on this position alone.",
    "gap_size": "How far apart the attention of positive and of negative words is, whichever is "
    "higher.",
    "group_size": "Word types of a group.",
    "heads_found": "How many attention heads were found that do their part.",
    "ibm_difference": "Largest relative difference of the count table from IBM Model 1's first "
    "counts.",
    "identity": "Largest difference between ways to compute the same logit.",
    "jsd": "Jensen–Shannon divergence of two attentions: 0 alike, 0.69 apart.",
    "largest_gap": "How far the best may still be from what was found, or the first from the "
    "second.",
    "largest_share": "Share of the largest of the nine terms of a logit.",
    "largest_z": "Largest deviation of a count from its expectation, in standard errors.",
    "leakage_spearman": "Rank correlation of a model's certainty with how much single words say.",
    "left_out": "Examples left out, by reason.",
    "left_slope": "How the product of 'left' with the decoder's time changes with distance.",
    "median_length": "Median number of words of a text.",
    "mi_mf": "How much a state still says about its own word: mutual information, frequent words.",
    "mi_mf_shuffled": "The same with words shuffled: what chance gives.",
    "mi_rs": "How much a state still says about its own word: mutual information, words as they "
    "occur.",
    "mi_rs_shuffled": "The same with words shuffled: what chance gives.",
    "misprint_error": "Error of a formula as it is printed, and as it was put right.",
    "neutral_ratio": "A term of neutral words over that of polar words.",
    "offset_change": "How attention moves off the diagonal from the first third of the steps to "
    "the last.",
    "outlier": "Neutral words with much attention.",
    "own_word_largest": "Share of words that occur most often with their own translation.",
    "parameters": "Numbers that are trained, without embeddings.",
    "preceding_verb": "How often what is read at 'twice' is nearest to the verb before it.",
    "rank_correlation": "Spearman's rank correlation: 1 the same order, −1 the reverse.",
    "rationale_f1": "F1 of as many highest words as people marked, against those that they marked.",
    "reached": "Share of seeds with at least 98 % of outputs right.",
    "relative_error": "Difference between a formula and automatic differentiation, relative.",
    "search_jsd": "How far attention can be moved for a single text without changing the output.",
    "seeds_learned": "How many seeds learned the task within the budget.",
    "share_similarity_spearman": "Rank correlation of the temporal share with how alike "
    "attentions are.",
    "sign": "Share of words whose term has the sign that the theory predicts.",
    "silhouette": "How clearly states at 'twice' fall into clusters by the verb before it: up to "
    "1.",
    "slope": "How fast a quantity moves at the start of training for each unit of co-occurrence.",
    "spread_within_sets": "How much the counts of words of one set differ, relative to their mean.",
    "steps_to_95": "Training steps until 95 % of outputs were right.",
    "subphrase_difference": "Attention at the end of the own subphrase, less that of another "
    "sequence's.",
    "temporal_agreement": "How often the time step alone puts attention where it is.",
    "token_accuracy": "Share of right output words.",
    "token_probability": "Mean probability of the predicted label when one word speaks alone.",
    "token_probability_difference": "The base model's probability less this one's.",
    "token_share": "Share of words that carry the decision by themselves.",
    "token_share_difference": "The base model's share less this one's.",
    "train_size": "Training examples.",
    "tvd": "Total variation distance of two predictions.",
    "tvd_difference": "The base model's distance less this one's, where attentions are as far "
    "apart.",
    "twice_previous": "How often the output of 'twice' attends to the word before it.",
    "val_size": "Held-out examples.",
    "validation_f1": "F1 on validation data.",
    "variance_drop": "Share of a word's variance that goes away with the temporal component.",
    "vocab_size": "Word types.",
    "word_accuracy": "Share of right output words.",
    "xi_star": "How well the model performs at its best: the largest value that ξ can have.",
}


def measure_symbol(name: str) -> tuple[str, str]:
    """Return label and explanation of a measurement's name; the latter may be empty."""
    call = re.fullmatch(r"(\w+)\(([\w, ]+)\)", name)
    if call is None:
        return (
            {"xi_star": "ξ*", "A_random": "Â"}.get(name, name.replace("_", " ")),
            _NAMES.get(name, ""),
        )
    arguments = [part.strip() for part in call[2].split(",")]
    letters = ", ".join(_LETTERS.get(part, part.replace("_", " ")) for part in arguments)
    words = [_LETTER_WORDS.get(part, part.replace("_", " ")) for part in arguments] + [""]
    symbol = {"xi": "ξ", **_LETTERS}.get(call[1], call[1].replace("_", " "))
    return f"{symbol}({letters})", _MEASURES.get(call[1], "").format(*words)


PLANES: dict[str, tuple[str, str]] = {
    "temporal_path": (
        "temporal components",
        "The mean state at each time step, whatever the word: numbers are time steps. Where "
        "encoder and decoder run side by side, each decoder step points at its encoder step.",
    ),
    "input_plane": (
        "input components",
        "What is left of states when the mean of their time step is taken away: components are the "
        "mean of a word, readouts the directions in which a word is written, states single ones.",
    ),
    "context_plane": (
        "input components in context",
        "What is left of states when the mean of their time step is taken away, by the words that "
        "come before.",
    ),
    "word": (
        "word types",
        "Each point is a word. To the right: how strongly it speaks for the positive label "
        "(polarity score); upwards: how much attention it draws (attention score).",
    ),
}
"""Label and explanation of each kind of plane, by the name of its measurements."""


def plane_symbol(name: str) -> tuple[str, str]:
    """Return label and explanation of a kind of plane; the latter may be empty."""
    return PLANES.get(name, (name.replace("_", " "), ""))


def in_letters(text: str) -> str:
    """Return a sentence with its symbols as they are printed: ``A(alpha,beta_uf)`` as A(α, βᵘᶠ)."""
    names = r"\b\w+\((?:alpha|beta|delta|gold)\w*(?:, ?\w+)*\)"
    text = re.sub(names, lambda found: measure_symbol(found[0])[0], text)
    text = re.sub(r"(?<![\w^])(?:alpha|beta)(?:_\w+)?\b", _letter, text)
    # Numbers with a minus sign, not with a hyphen.
    text = re.sub(r"(?<![\w)\]])-(?=\.?\d)", "−", text)
    for plain, printed in _PRINTED.items():
        text = re.sub(plain, printed, text)
    return text


def is_measure(name: str) -> bool:
    """Tell whether a name is that of a measurement which is explained here."""
    return name in _NAMES


def _letter(found: re.Match[str]) -> str:
    return _LETTERS.get(found[0], found[0])


_PRINTED = {
    r"β\^uf": "βᵘᶠ",
    r"β\^px": "βᵖˣ",
    r"β\^log": "βˡᵒᵍ",
    r"α\^fr": "αᶠʳ",
    r"α\^opt": "α*",
    r"\bA_random\b": "Â",
    r"\bxi\b": "ξ",
}


def explained(names: Iterable[str]) -> dict[str, list[str]]:
    """Return label and explanation of each measurement's name."""
    return {name: list(measure_symbol(name)) for name in dict.fromkeys(names)}
