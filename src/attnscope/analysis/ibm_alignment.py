"""Word alignment by IBM Model 1: in both directions from sentences in words, and as a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.analysis.alignment import links_of
from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.corpus import Corpus
from attnscope.data.word_pairs import Words, padded
from attnscope.scores.score import Score
from attnscope.theory.ibm1 import IbmModel1, reverse
from attnscope.theory.initial_derivative import PaddedPairs

Links = Bool[Tensor, "batch out inp"]


def ibm_links(
    sources: Sequence[Words],
    targets: Sequence[Words],
    text: tuple[Sequence[Words], Sequence[Words]] = ((), ()),
    *,
    iterations: int = 5,
    null: bool = True,
    report: Callable[[int], None] = lambda iterations: None,
) -> dict[str, Links]:
    """Align sentence pairs by IBM Model 1.

    Parameters
    ----------
    sources, targets
        The words of the sentences to align. Model 1 learns from them as well.
    text
        Sources and targets of further sentences to learn from, spelled alike.
    iterations, null, report
        As in `attnscope.theory.ibm1.IbmModel1.fit`.

    Returns
    -------
    dict of Tensor
        ``forward`` gives each output word at most one input word, ``backward`` each input word at
        most one output word; their ``intersection`` and ``union``.

    Examples
    --------
    >>> from attnscope.analysis import to_pharaoh
    >>> links = ibm_links([["das", "Haus"], ["das"]], [["the", "house"], ["the"]], null=False)
    >>> print(to_pharaoh(links["intersection"]), end="")
    0-0 1-1
    0-0
    """
    inputs, input_mask, input_types = _numbered([*sources, *text[0]])
    outputs, output_mask, output_types = _numbered([*targets, *text[1]])
    pairs = PaddedPairs(inputs, input_mask, outputs, output_mask)
    asked = PaddedPairs(*(part[: len(sources)] for part in pairs))
    out, inp = max(map(len, targets)), max(map(len, sources))

    def aligned(pairs: PaddedPairs, asked: PaddedPairs, types: tuple[int, int]) -> Links:
        model = IbmModel1.fit(pairs, *types, iterations=iterations, null=null, report=report)
        shares = model.alignment(asked)
        floor = 1 - shares.sum(-1) if null else -torch.inf
        return links_of(shares, asked.input_mask, asked.target_mask, floor)

    forward = aligned(pairs, asked, (input_types, output_types))[:, :out, :inp]
    turned = (output_types, input_types)
    backward = aligned(reverse(pairs), reverse(asked), turned).mT[:, :out, :inp]
    return {
        "forward": forward,
        "backward": backward,
        "intersection": forward & backward,
        "union": forward | backward,
    }


def model1_score(source: Corpus, batch: Batch, pairs: int) -> Score:
    """Return IBM Model 1's alignment of a batch, as a score that others can be compared with.

    Parameters
    ----------
    source
        The corpus that the batch is of.
    pairs
        Training pairs that Model 1 is fitted to; its tables are dense.
    """
    model = IbmModel1.fit(
        PaddedPairs.of(source.training_batch(0, 0, pairs)),
        len(source.input_words),
        len(source.output_words),
    )
    return Score("ibm_model1", model.alignment(PaddedPairs.of(batch)), batch.input_mask, batch)


def _numbered(
    sentences: Sequence[Words],
) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"], int]:
    """Return sentences as padded ids, their mask, and the number of types."""
    types = {word: n for n, word in enumerate(dict.fromkeys(chain.from_iterable(sentences)))}
    ids = padded(([types[word] for word in sentence] for sentence in sentences), 0)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return ids, prefix_mask(lengths, ids.shape[1]), len(types)
