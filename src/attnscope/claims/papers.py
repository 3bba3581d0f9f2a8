"""The papers that the package reproduces, by the names that recipes and claims begin with."""

from __future__ import annotations

PAPERS = {
    "snell": "Approximating How Single Head Attention Learns",
    "sunlu": "Understanding Attention for Text Classification",
    "tutek": "Staying True to Your Word: (How) Can Attention Become Explanation?",
    "aitken": "Understanding How Encoder-Decoder Architectures Attend",
}
"""Title by name."""
