"""Labels and explanations of scores and measured names, shown where a reader points at them.

Measured names are explained in the tables of their papers (`attnscope.runs.measures`).
"""

from __future__ import annotations

import re

from attnscope.runs.measures import Measures, arguments_of, measure_of

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
    "value_norm": (
        "‖αv‖ value norm",
        "The length of what attention adds to the output's state from this input word: its weight "
        "times the word's value vector.",
    ),
    "rollout": (
        "attention rollout",
        "Attention of all layers multiplied, with half of each layer's weight left on the word "
        "itself: how much of this input word reaches the output.",
    ),
    "leave_one_out": (
        "leave one out",
        "How much the right output loses, in log-odds, when this input word is taken out.",
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
    "ibm1": "IBM 1",
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
    "ibm1": "IBM Model 1",
}

_FUNCTIONS = {"xi": "ξ", **_LETTERS}


def measure_words(name: str, measures: Measures) -> tuple[str, str]:
    """Return label and explanation of a measured name; the latter may be empty."""
    measure = measure_of(measures, name)
    _, arguments = arguments_of(name)
    says = "" if measure is None else measure.says
    if measure is not None and measure.label:
        return measure.label, says
    if not arguments:
        return name.replace("_", " "), says
    words = [_LETTER_WORDS.get(part, part.replace("_", " ")) for part in arguments]
    return _call(name), says.format(*words, "")


_SHORT_WORDS = {
    "alpha": "attention",
    "alpha_fr": "attention over frozen states",
    "alpha_opt": "optimal attention",
    "alpha_i": "attention of one seed",
    "alpha_j": "of another",
    "beta": "lexical probe",
    "beta_uf": "uniform probe",
    "beta_px": "proxy",
    "beta_log": "logistic weights",
    "delta": "saliency",
    "gold": "gold position",
}


def in_words(name: str, measures: Measures) -> str:
    """Return a name in words, with its symbol: "attention and uniform probe, A(α, βᵘᶠ)"."""
    measure, (_, arguments) = measure_of(measures, name), arguments_of(name)
    label, _ = measure_words(name, measures)
    if measure is None or not measure.words:
        return label
    words = [_SHORT_WORDS.get(part, part.replace("_", " ")) for part in arguments]
    named = measure.words.format(*words, "")
    return f"{named}, {label}" if measure.label or arguments else named


_DRAWN = {"βᵘᶠ": "β uniform", "βᵖˣ": "β proxy", "βˡᵒᵍ": "β logistic", "αᶠʳ": "α frozen"}


def in_figures(name: str, measures: Measures) -> str:
    """Return a name as figures have it: "attention and uniform probe, A(α, β uniform)".

    Few fonts have superscript letters, and a label with one would be set in another font.
    """
    label = in_words(name, measures)
    for printed, drawn in _DRAWN.items():
        label = label.replace(printed, drawn)
    return label


def score_in_figures(letter: str) -> str:
    """Return a score as figures have it: ``beta_uf`` as "uniform probe, β uniform"."""
    symbol = _LETTERS[letter]
    return f"{_SHORT_WORDS[letter]}, {_DRAWN.get(symbol, symbol)}"


def _call(name: str) -> str:
    """Return ``A(alpha,beta_uf)`` as A(α, βᵘᶠ)."""
    family, arguments = arguments_of(name)
    function = family.removesuffix("()")
    letters = ", ".join(_LETTERS.get(part, part.replace("_", " ")) for part in arguments)
    return f"{_FUNCTIONS.get(function, function.replace('_', ' '))}({letters})"


def in_names(text: str) -> str:
    """Return what a user has read as A(α, βᵘᶠ) as it is stored: ``A(alpha,beta_uf)``."""
    text = text.replace(" ", "")
    names = {letter: name for name, letter in _FUNCTIONS.items()}
    for letter in sorted(names, key=len, reverse=True):
        text = text.replace(letter, names[letter])
    return text


def in_letters(text: str) -> str:
    """Return a sentence with its symbols as they are printed: ``A(alpha,beta_uf)`` as A(α, βᵘᶠ)."""
    names = r"\b\w+\((?:alpha|beta|delta|gold)\w*(?:, ?\w+)*\)"
    text = re.sub(names, lambda found: _call(found[0]), text)
    text = re.sub(r"(?<![\w^])(?:alpha|beta)(?:_\w+)?\b", _letter, text)
    text = re.sub(_PRODUCT, _product, text)
    # Numbers with a minus sign, not with a hyphen.
    text = re.sub(r"(?<![\w)\]])-(?=\.?\d)", "−", text)
    for plain, printed in _PRINTED.items():
        text = re.sub(plain, printed, text)
    return text


# A product of a decoder's and an encoder's component, as aitken's terms are named.
_PRODUCT = r"\b(mu|chi|deltah)D\.(mu|chi|deltah)E\b"
_COMPONENTS = {"mu": "μ", "chi": "χ", "deltah": "Δh"}
_COMPONENT_WORDS = {"mu": "time", "chi": "word", "deltah": "rest"}


def product_in_figures(name: str) -> str:
    """Return ``muD.muE`` as "time·time, μ·μ", a sum likewise, and other words as they are."""
    terms = [re.fullmatch(_PRODUCT, term) for term in name.split("+")]
    if not all(terms):
        return name
    parts = [term.groups() for term in terms if term]
    words = " + ".join("·".join(_COMPONENT_WORDS[part] for part in pair) for pair in parts)
    letters = " + ".join("·".join(_COMPONENTS[part] for part in pair) for pair in parts)
    return f"{words}, {letters}"


def _product(found: re.Match[str]) -> str:
    return f"{_COMPONENTS[found[1]]}·{_COMPONENTS[found[2]]}"


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
