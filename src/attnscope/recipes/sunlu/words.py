"""Groups of words by the counts of their labels: positive, negative and neutral ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxtyping import Int
from torch import Tensor

from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import NEUTRAL, GroupRule, corpus_counts, nearest_rule
from attnscope.figures import palette
from attnscope.recipes.kit.corpora import printed_name

NEGATIVE, POSITIVE = "negative", "positive"
# The supplement's Table 1: members of each group. The rule for three classes is not given, and is
# the one that comes nearest to these sizes.
GROUP_SIZES = {
    "SST": (265, 412, 1384),
    "IMDB": (1900, 2163, 5968),
    "20News I": (557, 957, 1011),
    "20News II": (49, 268, 192, 164),
}


@dataclass(frozen=True)
class Grouped:
    """A corpus' groups of words: of each label, in its order, and the neutral ones.

    With two labels the groups are called ``negative`` (the first label's) and ``positive``.
    """

    rule: GroupRule
    members: dict[str, Int[Tensor, " _"]]

    @property
    def polar(self) -> tuple[str, ...]:
        """The labels' groups."""
        return tuple(name for name in self.members if name != NEUTRAL)

    @property
    def binary(self) -> bool:
        """Whether there are two labels, and so one polarity."""
        return set(self.polar) == {NEGATIVE, POSITIVE}


@lru_cache(maxsize=4)
def groups_of(source: Corpus) -> Grouped:
    """Return the groups by the paper's rule; only counts enter."""
    counts, labels = corpus_counts(source), source.output_words.words
    printed = printed_name(source, "sunlu")
    rule = GroupRule()
    if printed is not None and len(labels) > 2:
        rule = nearest_rule(counts, GROUP_SIZES[printed], minimum=range(60)).rule
    names = (NEGATIVE, POSITIVE) if len(labels) == 2 else labels
    return Grouped(rule, rule.groups(counts, names))


def colours_of(groups: Sequence[str]) -> dict[str, str]:
    """Return a colour for each group of words; neutral is grey."""
    roles, scores = palette.ROLES, palette.SCORES
    others = iter((roles["control"], roles["hard"], scores["gold"], roles["mixed"]))
    # The most words of a corpus are neutral: they lie below the others.
    order = sorted(groups, key=lambda name: name != NEUTRAL)
    return {name: palette.GROUPS.get(name) or next(others, palette.NEUTRAL) for name in order}
