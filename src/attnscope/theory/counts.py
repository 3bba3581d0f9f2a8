"""The co-occurrence count table C of a corpus (snell Eq. 16, 52; Fig. 1), and its expectation.

Each output word adds 1/L to the entry of every input word of its sentence. The expected tables
are the formulas behind Fig. 4 and 8 for copying: constant, constant in blocks, informative.
"""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def bag_of_words(
    ids: Int[Tensor, "batch position"],
    mask: Bool[Tensor, "batch position"],
    types: int,
    weights: Float[Tensor, " batch"],
) -> Float[Tensor, "batch type"]:
    """Count each sentence's words, times its weight, as a sparse matrix; padding is not read."""
    sentence = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)[mask]
    index = torch.stack([sentence, ids[mask]])
    size = (len(ids), types)
    return torch.sparse_coo_tensor(index, weights[sentence], size, check_invariants=True).coalesce()


def count_table(
    inputs: Int[Tensor, "batch inp"],
    input_mask: Bool[Tensor, "batch inp"],
    targets: Int[Tensor, "batch out"],
    target_mask: Bool[Tensor, "batch out"],
    input_types: int,
    output_types: int,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "input_type output_type"]:
    """Return the count table C of a batch of sentence pairs.

    Tables of batches add up to the table of the corpus. A pair without input adds nothing.

    Parameters
    ----------
    inputs, input_mask
        Input word ids, and True where they are real.
    targets, target_mask
        Output word ids, and True where they are real; for classification, one label a row.
    input_types, output_types
        Sizes of the two vocabularies.
    dtype
        Type of the table.

    Returns
    -------
    Tensor
        C_{i,o} = Σ_m (1/L^m) #{l : x_l = i} #{t : y_t = o} [1]_.

    References
    ----------
    .. [1] Snell et al., "Approximating How Single Head Attention Learns", 2021, Eq. 16.

    Examples
    --------
    >>> words, real = torch.tensor([[0, 1]]), torch.tensor([[True, True]])
    >>> count_table(words, real, words, real, 2, 3).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    """
    # As a product of sparse matrices: memory grows with the words and with the table's entries,
    # not with the T·L word pairs of every sentence.
    length = input_mask.sum(1).to(dtype)
    shares = bag_of_words(inputs, input_mask, input_types, 1 / length)
    words = bag_of_words(targets, target_mask, output_types, torch.ones_like(length))
    with warnings.catch_warnings():  # about an intermediate format that never leaves the product
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return (shares.T @ words).to_dense()


def expected_permutation_table(types: int) -> Float[Tensor, "input_type output_type"]:
    """Expect C per sentence for copying permutations of all types: 1/n everywhere (§4.3, Fig. 4).

    Every sentence has exactly this table, so that it carries no information about any word.
    """
    return torch.full((types, types), 1 / types, dtype=torch.float64)


def expected_mixture_table(types: int) -> Float[Tensor, "input_type output_type"]:
    """Expect C per sentence for copying permutations of one of two disjoint sets (A.3, Fig. 8).

    ``types`` is the size n of each set; either is drawn with probability ½. Entries are 1/(2n)
    within a set and 0 between sets: the table separates the sets, but not the words of a set.
    """
    return torch.block_diag(*[expected_permutation_table(types) / 2] * 2)


def expected_sampled_table(length: int, types: int) -> Float[Tensor, "input_type output_type"]:
    """Expect C per sentence for copying ``length`` distinct words out of ``types`` (§3.3).

    A word is in a sentence with probability k/V and two words are with k(k−1)/(V(V−1)), so that
    the diagonal, 1/V, exceeds the rest, (k−1)/(V(V−1)), whenever k < V.
    """
    together = (length - 1) / (types * max(types - 1, 1))
    table = torch.full((types, types), together, dtype=torch.float64)
    return table.fill_diagonal_(1 / types)


def append_eos(
    expected: Float[Tensor, "input_type output_type"], length: int
) -> Float[Tensor, "input_type_and_eos output_type_and_eos"]:
    """Add the EOS that ends input and target to an expected table of copying.

    ``length`` counts the words without it. EOS becomes the last type: it meets each word as often
    as the word occurs, itself in every sentence, and every share falls from 1/L to 1/(L+1).
    """
    together = expected * length  # the probability that both words are in a sentence
    alone = together.diagonal()
    table = torch.ones(len(alone) + 1, len(alone) + 1, dtype=expected.dtype, device=expected.device)
    table[:-1, :-1], table[:-1, -1], table[-1, :-1] = together, alone, alone
    return table / (length + 1)


def standard_error(
    expected: Float[Tensor, "input_type output_type"], length: int, sentences: int
) -> Float[Tensor, "input_type output_type"]:
    """Return the standard error of a copying task's table, averaged over ``sentences``.

    A word is at most once in a sentence, so that each entry is 1/L times a coin. ``length`` is L
    with EOS where the table has it.
    """
    together = expected * length
    return (together * (1 - together)).clamp(min=0).div(sentences).sqrt() / length
