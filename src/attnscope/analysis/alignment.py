"""Word alignments: links read off a score, their error rate against gold, and Pharaoh's format.

Links have the shape of a score, True where output word t is linked to input word l, so that union
and intersection are ``|`` and ``&`` and the other direction is ``.mT``. Annotators mark links as
sure or as possible; the error rate asks for the sure ones and forgives the possible ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.intervals import RESAMPLES, Interval, sentence_ratio_interval
from attnscope.errors import UsageError

Link = tuple[int, int]  # source position, target position


def links_of(
    values: Float[Tensor, "batch out inp"],
    input_mask: Bool[Tensor, "batch inp"],
    target_mask: Bool[Tensor, "batch out"],
    null: Float[Tensor, "batch out"] | float = -torch.inf,
) -> Bool[Tensor, "batch out inp"]:
    """Link each output word to the input word with the highest score; the first of several.

    Parameters
    ----------
    values
        A score, such as attention or the posterior of IBM Model 1.
    input_mask, target_mask
        True at real positions.
    null
        The threshold below which a word stays unlinked. For IBM Model 1,
        ``1 - values.sum(-1)``: the probability of the NULL word.

    Returns
    -------
    Tensor
        At most one link for each output word.
    """
    real = target_mask[:, :, None] & input_mask[:, None, :]
    values = values.masked_fill(~real, -torch.inf)
    floor = torch.as_tensor(null, dtype=values.dtype, device=values.device)[..., None]
    highest = values.amax(-1, keepdim=True)
    first = (values == highest) & real
    return first & (first.cumsum(-1) == 1) & (highest > floor)


def diagonal_links(
    input_lengths: Int[Tensor, " batch"], target_lengths: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch out inp"]:
    """Link each output word to the input word at the same part of the sentence: a baseline."""
    targets = torch.arange(int(target_lengths.max()))
    place = (2 * targets + 1) * input_lengths[:, None] // (2 * target_lengths[:, None])
    at_place = place[:, :, None] == torch.arange(int(input_lengths.max()))
    return at_place & (targets < target_lengths[:, None])[:, :, None]


def alignment_error(
    links: Bool[Tensor, "batch out inp"],
    sure: Bool[Tensor, "batch out inp"],
    possible: Bool[Tensor, "batch out inp"],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the alignment error rate 1 − (|A∩S| + |A∩P|) / (|A| + |S|) of [1]_.

    Parameters
    ----------
    links
        The links A.
    sure, possible
        The gold links S and P; sure ones count as possible, whether repeated there or not.
    rng, resamples
        Of the bootstrap, as in `attnscope.analysis.intervals.sentence_interval`.

    Returns
    -------
    Interval
        The rate over all links of all sentences, and its 95 % interval over sentences; NaN where
        there is no link at all.

    References
    ----------
    .. [1] F. J. Och, H. Ney. "A Systematic Comparison of Various Statistical Alignment Models."
       Computational Linguistics 29(1), 2003.
    """
    below = _count(links) + _count(sure)
    hit = _count(links & sure) + _count(links & (possible | sure))
    return _ratio(below - hit, below, rng, resamples)


def alignment_precision(
    links: Bool[Tensor, "batch out inp"],
    sure: Bool[Tensor, "batch out inp"],
    possible: Bool[Tensor, "batch out inp"],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the share of links that are possible, |A∩P| / |A|; arguments as `alignment_error`."""
    return _ratio(_count(links & (possible | sure)), _count(links), rng, resamples)


def alignment_recall(
    links: Bool[Tensor, "batch out inp"],
    sure: Bool[Tensor, "batch out inp"],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the share of sure links found, |A∩S| / |S|; arguments as `alignment_error`."""
    return _ratio(_count(links & sure), _count(sure), rng, resamples)


def link_tensor(
    sentences: Sequence[Iterable[Link]], out: int, inp: int, device: torch.device | None = None
) -> Bool[Tensor, "batch out inp"]:
    """Return sets of links (source position, target position), one a sentence, as a tensor.

    Parameters
    ----------
    sentences
        The links of each sentence, such as the sure ones of a gold alignment.
    out, inp
        How many output and input positions the tensor has.
    """
    index = torch.tensor(
        [(n, t, s) for n, links in enumerate(sentences) for s, t in links], dtype=torch.long
    ).view(-1, 3)
    wrong = (index < 0).any(1) | (index[:, 1] >= out) | (index[:, 2] >= inp)
    if wrong.any():
        n, t, s = index[wrong][0].tolist()
        raise UsageError(
            f"Link {s}-{t} of sentence {n} is outside its {inp} source and {out} target positions: "
            "positions count from 0, and the source comes first."
        )
    tensor = torch.zeros(len(sentences), out, inp, dtype=torch.bool)
    tensor[tuple(index.unbind(1))] = True
    return tensor.to(device)


def link_sets(links: Bool[Tensor, "batch out inp"]) -> list[frozenset[Link]]:
    """Return the links of each sentence as pairs (source position, target position)."""
    sets: list[list[Link]] = [[] for _ in range(len(links))]
    for n, t, s in links.nonzero().tolist():
        sets[n].append((s, t))
    return [frozenset(pairs) for pairs in sets]


def to_pharaoh(links: Bool[Tensor, "batch out inp"]) -> str:
    """Write one line a sentence, such as ``0-0 1-2``: source-target, in order of the source."""
    sets = link_sets(links)
    return "".join(" ".join(f"{s}-{t}" for s, t in sorted(pairs)) + "\n" for pairs in sets)


def read_pharaoh(text: str, name: str = "alignment") -> list[frozenset[Link]]:
    """Read the format that `to_pharaoh` writes; `link_tensor` turns links into a tensor.

    Parameters
    ----------
    text
        One line a sentence; an empty one has no links.
    name
        The text's name in errors, such as its file.
    """
    return [_read_line(line, f"{name}, line {n}") for n, line in enumerate(text.splitlines(), 1)]


def _read_line(line: str, place: str) -> frozenset[Link]:
    pairs = set()
    for word in line.split():
        match = re.fullmatch(r"([0-9]+)-([0-9]+)", word)
        if not match:
            raise UsageError(
                f"{place}: {word!r} is not a link: write source-target positions from 0, as in 0-0."
            )
        pairs.add((int(match[1]), int(match[2])))
    return frozenset(pairs)


def _count(links: Bool[Tensor, "batch out inp"]) -> np.ndarray:
    return links.sum((1, 2)).cpu().numpy().astype(np.float64)[:, None]


def _ratio(
    above: np.ndarray, below: np.ndarray, rng: np.random.Generator, resamples: int
) -> Interval:
    real = np.ones_like(below, dtype=bool)
    return sentence_ratio_interval(above, below, real, rng=rng, resamples=resamples)
