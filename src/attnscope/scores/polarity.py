"""Polarity s_e and attention score a_e of every word type (sunlu Eq. 1, 7).

The polarity is the readout of a word's state, the same function as the lexical probe; the attention
score is the site's logit. Where a state depends on the words around it there are two readings: of
the word fed alone, the supplement's "global" score, and of the mean over its occurrences in a
corpus, its "local" one (G.1). Without context the two agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.scores.attention import site_of
from attnscope.scores.lexical_probe import log_odds
from attnscope.scores.lexicon import Lexicon

# Types that are fed alone at once.
_TYPES = 2**13


@dataclass(frozen=True)
class WordTypeScores:
    """Two numbers for each word type, and how many occurrences they are means of.

    Attributes
    ----------
    logits
        s_e: the output as if all attention were on the word. With two labels the first column is
        0 in the package's classifiers; `polarity` is then the second.
    attention
        a_e, the attention logit; the mean over heads where there are several.
    weights
        α: the mean attention weight of the word's occurrences (sunlu Fig. 5); 1 when alone.
    occurrences
        How many the means are over; a word without any has NaN everywhere.
    """

    logits: Float[Tensor, "type label"]
    attention: Float[Tensor, " type"]
    weights: Float[Tensor, " type"]
    occurrences: Int[Tensor, " type"]

    @property
    def polarity(self) -> Float[Tensor, " type"]:
        """s_e for two labels: towards the second. With more, each label has its own in `logits`."""
        if self.logits.shape[1] != 2:
            raise UsageError(
                f"Polarity is defined for two labels; use `logits` for {self.logits.shape[1]}."
            )
        return self.logits[:, 1] - self.logits[:, 0]

    def lexicons(self) -> tuple[Lexicon, Lexicon]:
        """Return both as lexicons: ``polarity`` as the log-odds of each label, ``attention_score``.

        Without context the first is the lexical probe of every text.
        """
        types, labels = self.logits.shape
        every = torch.arange(labels, device=self.logits.device).expand(types, labels)
        odds = log_odds(self.logits[:, None].expand(-1, labels, -1), every)
        scores = self.attention[:, None].expand(-1, labels)
        return Lexicon("polarity", odds), Lexicon("attention_score", scores)

    def columns(self, words: Vocabulary, labels: Vocabulary) -> dict[str, np.ndarray]:
        """Return a table, one row a word: how often, attention score and weight, s_e by label."""
        parts = {
            "occurrences": self.occurrences,
            "attention": self.attention,
            "weight": self.weights,
        }
        parts |= {
            f"polarity.{name}": column
            for name, column in zip(labels.words, self.logits.unbind(1), strict=True)
        }
        table = {name: part.detach().cpu().numpy() for name, part in parts.items()}
        return {"word": np.array(words.words), **table}


@torch.no_grad()
def scores_alone(
    model: AttentionModel, types: int, site: str = "cross", device: torch.device | str = "cpu"
) -> WordTypeScores:
    """Return the scores of each word fed alone, as a text of one word ("global").

    Parameters
    ----------
    model
        A classifier.
    types
        The size of its vocabulary.
    site
        Where its attention is.
    device
        Where the model is.
    """
    parts = torch.arange(types).split(_TYPES)
    return mean_scores(model, (_alone(part).to(device) for part in parts), types, site)


@torch.no_grad()
def mean_scores(
    model: AttentionModel, batches: Iterable[Batch], types: int, site: str = "cross"
) -> WordTypeScores:
    """Return the mean scores over all occurrences of each word in a corpus ("local").

    Parameters
    ----------
    model, types, site
        As in `scores_alone`.
    batches
        The corpus, on the model's device. Nothing is kept of a batch but its sums.
    """
    sums: Tensor | None = None
    for batch in batches:
        found = _occurrences(model, model.trace(batch), site)
        if sums is None:
            sums = found.new_zeros(types, found.shape[1])
        ids = batch.inputs[batch.input_mask]
        # Unlike index_add_, which adds in any order on a GPU, this gives the same bytes every time.
        sums.index_put_((ids,), found, accumulate=True)
    if sums is None:
        raise UsageError("There are no words to score; give at least one batch.")
    means = sums / sums[:, -1:]
    attention, weights, logits = means[:, 0], means[:, 1], means[:, 2:-1]
    return WordTypeScores(logits, attention, weights, sums[:, -1].long())


def _alone(ids: Int[Tensor, " type"]) -> Batch:
    """Return each word as a text with an arbitrary label."""
    one, none = torch.ones_like(ids), torch.zeros_like(ids)[:, None]
    return Batch(ids, ids[:, None], one, none, none, one, none - 1)


def _occurrences(
    model: AttentionModel, trace: Trace, name: str
) -> Float[Tensor, "occurrence column"]:
    """Return a_j, α_j, the probe's logits and 1 at every real position, in double precision."""
    site = site_of(trace, name)
    if not hasattr(model, "readout"):
        raise MissingCapability("The polarity of words needs a model with a readout.")
    if trace.logits.shape[1] != 1:
        raise MissingCapability(
            "The scores of word types need a classifier: this model writes sequences."
        )
    real = trace.batch.input_mask
    values = site.values.transpose(1, 2)[real]
    example = real.nonzero()[:, 0]
    logits = model.readout(values, needed(trace.query, "query")[example, 0])
    scores = (part.mean(1)[:, 0][real] for part in (site.logits, site.weights))
    columns = [*(part[:, None] for part in scores), logits]
    return torch.cat([*columns, torch.ones_like(columns[0])], 1).double()
