"""The letters and abbreviations of the papers' claims in plain words, paper by paper.

The papers' letters clash (s is a polarity score in one and a time step in another), so each paper
has its own list.
"""

from __future__ import annotations

_GREATER = "Much greater: the interval of the difference lies above 0."
_ABOUT = "About equal: the interval of the difference lies within a margin fixed before any run."

_CLASSIFIERS = {
    "F1": "How well labels are found: the harmonic mean of precision and recall.",
    "MLM": "A model that also learns to guess masked words.",
    "tying": "A model whose states are kept close to the embeddings of their words.",
    "tied": "A model whose states are kept close to the embeddings of their words.",
    "base": "The plain model, without anything that ties its states to words.",
    "concat": "A model whose states are concatenated with their word's embedding.",
    "residual": "A model whose states have their word's embedding added.",
}

GLOSSARY: dict[str, dict[str, str]] = {
    "snell": {
        "≫": _GREATER,
        "≈": _ABOUT,
        "A": "Agreement: how often the highest position of one score is among the top 5 % of "
        "another.",
        "Â": "Chance: the agreement that a shuffled score would have.",
        "α": "Attention: how much the model looks at an input word.",
        "αᶠʳ": "Attention trained with everything else of the model frozen.",
        "α*": "Optimal attention: that which makes the right output most probable.",
        "β": "Lexical probe: how probable the right output would be if the model looked at one "
        "input word only.",
        "βᵘᶠ": "The lexical probe of a model trained under uniform attention.",
        "βᵖˣ": "The proxy: a bag-of-words model without positions or attention.",
        "βˡᵒᵍ": "Weights of a logistic regression on word counts.",
        "Δ": "Saliency: how much the right output gains from an input word, to first order.",
        "ξ": "How well the model performs when the attention of two seeds begins to agree better "
        "than two scores do.",
        "ξ*": "How well the model performs at its best.",
        "τ-b": "Kendall's rank correlation: 1 for the same order, 0 for none in common.",
        "τ": "Training time.",
        "d(logit)/dτ": "How fast the proxy's logits change when training begins.",
        "d(θ)/dτ": "How fast the proxy's probabilities change when training begins.",
        "C": "The count table: how often an input and an output word occur together.",
        "C̄": "The mean of the count table.",
        "γ_{l*}": "What the state at the keyword says about the output.",
        "γ_{l*+1}": "What the state after the keyword says about the output.",
        "γ_L": "What the last state says about the output.",
        "γ̄": "What a mean state says about the output.",
        "BLEU": "How close translations are to the references, up to 100.",
        "IBM Model 1": "The classical statistical translation model, from counts alone.",
    },
    "sunlu": {
        "≈": _ABOUT,
        "λ": "The scaling factor: attention logits are divided by it.",
        "s": "Polarity score: what a word alone would make the model say.",
        "ds_e/dτ": "How fast the polarity score of a word changes in training.",
        "da_e/dτ": "How fast the attention score of a word changes in training: the logit of its "
        "attention, before the softmax.",
        "V^T W": "The product of the query and the output weights: its sign says which words "
        "attention prefers.",
        "DP": "Dot-product attention over word embeddings.",
        "DP-A": "Dot-product attention, states an affine function of embeddings.",
        "DP-L": "Dot-product attention over the states of an LSTM.",
        "AD": "Additive attention over word embeddings.",
    },
    "tutek": {
        "MI(e; h)": "Mutual information of words' embeddings and their states.",
        "MF": "The most frequent words.",
        "RS": "A random sample of words.",
        "JSD": "Jensen–Shannon divergence: how far apart two attentions are.",
        "TVD": "Total variation distance: how far apart two predictions are.",
        "leakage": "A state knows about words that are not its own.",
        **_CLASSIFIERS,
    },
    "aitken": {
        "AED": "An encoder and a decoder with recurrence and attention.",
        "AO": "Attention only: no recurrence, positions are given by an encoding.",
        "VED": "A plain encoder and decoder, without attention.",
        "μ^D": "Temporal component of the decoder: its mean state at a time step.",
        "μ^E": "Temporal component of the encoder: its mean state at a time step.",
        "μ": "Temporal component: the mean state at a time step.",
        "μμ": "The product of the temporal components of decoder and encoder.",
        "χ": "Input component: the mean of a word's states, less the temporal component.",
        "χ^E": "Input component of the encoder: the mean of a word's states, less the temporal "
        "component.",
        "Δh": "Delta: what is left of a state without temporal and input component.",
        "Δh^D": "Delta of the decoder: what is left without temporal and input component.",
        "Δh^E": "Delta of the encoder: what is left without temporal and input component.",
        "⊥": "At right angles.",
        "PCs": "Principal components: directions in which points vary most.",
        "eSCAN": "A task of commands: 'jump twice and run left' becomes a sequence of actions.",
        "GRU": "A recurrent cell with two gates.",
        "LSTM": "A recurrent cell with a memory and three gates.",
        "UGRNN": "A recurrent cell with one gate.",
    },
}
"""Explanations by paper and symbol, as statements of claims print it."""
