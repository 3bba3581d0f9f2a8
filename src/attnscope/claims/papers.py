"""The papers that the package reproduces, by the names that recipes and claims begin with."""

from __future__ import annotations

from dataclasses import dataclass

PAPERS = {
    "snell": "Approximating How Single Head Attention Learns",
    "sunlu": "Understanding Attention for Text Classification",
    "tutek": "Staying True to Your Word: (How) Can Attention Become Explanation?",
    "aitken": "Understanding How Encoder-Decoder Architectures Attend",
}
"""Title by name."""


@dataclass(frozen=True)
class Abstract:
    """A paper in three lines: its authors and year, the question it asks, and its answer."""

    authors: str
    question: str
    answer: str


ABSTRACTS = {
    "snell": Abstract(
        "Charlie Snell, Ruiqi Zhong, Dan Klein, Jacob Steinhardt (2021)",
        "Why does attention end up on the right word, when nothing tells it to?",
        "The model first learns which words go together, under attention that is still uniform; "
        "then attention moves to where that knowledge is. Where words cannot be learned first, "
        "attention is not learned.",
    ),
    "sunlu": Abstract(
        "Xiaobing Sun, Wei Lu (2020)",
        "What do attention scores of words mean in a classifier?",
        "They grow with the polarity of a word, driven by two terms of the gradient whose balance "
        "a scaling factor λ decides; with a bad λ a model is accurate while its attention is "
        "meaningless.",
    ),
    "tutek": Abstract(
        "Martin Tutek, Jan Šnajder (2020)",
        "Can training make attention a faithful explanation?",
        "Yes, by tying recurrent states to their words: predictions then depend on attention, and "
        "adversarial attention costs more.",
    ),
    "aitken": Abstract(
        "Kyle Aitken, Vinay V. Ramasesh, Yuan Cao, Niru Maheswaranathan (2021)",
        "Does attention come from positions or from words?",
        "States split into a temporal, an input and a remaining component; where the order of "
        "output and input is fixed, temporal components alone give the attention.",
    ),
}
"""Abstract by name."""
