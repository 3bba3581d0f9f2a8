"""How embeddings start: at random or from word vectors."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from attnscope.data.randomness import seeded
from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError
from attnscope.models.embedding import (
    Embeddings,
    RandomEmbeddings,
    Rescaled,
    UniformEmbeddings,
    VectorEmbeddings,
    orthonormal_map,
)

WORDS = Vocabulary(("<pad>", "<eos>", "Good", "good", "BAD", "zebra"))
FILE = "good 1 0 2\nbad 0 3 0\nGood 4 4 4\n"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text(FILE)
    return str(file)


def table(spec, width, words=WORDS, seed=0):
    with seeded("model", seed):
        return spec.table(words, width).weight.detach()


def test_random_embeddings_are_pytorchs():
    with seeded("model", 0):
        expected = nn.Embedding(6, 4).weight
    assert table(RandomEmbeddings(), 4).equal(expected)


def test_uniform_embeddings_are_spread_evenly_and_follow_the_seed():
    words = Vocabulary(tuple(map(str, range(50))))
    one, again = (table(UniformEmbeddings(spread=0.3), 40, words) for _ in range(2))
    assert one.equal(again)
    assert stats.kstest(one.flatten().numpy(), stats.uniform(-0.3, 0.6).cdf).pvalue > 0.01
    assert UniformEmbeddings().spread == 0.1  # sunlu's


def test_words_are_found_as_they_are_written_and_else_in_lower_case(path):
    rows = table(VectorEmbeddings(path=path), 3)
    assert rows[2].tolist() == [4, 4, 4]
    assert rows[3].tolist() == [1, 0, 2]
    assert rows[4].tolist() == [0, 3, 0]


def test_missing_words_are_drawn_with_the_spread_of_those_found(tmp_path):
    found = np.random.default_rng(0).normal(scale=0.3, size=(50, 40))
    lines = [" ".join([f"w{n}", *map(str, row)]) for n, row in enumerate(found)]
    (tmp_path / "v.txt").write_text("\n".join(lines))
    words = Vocabulary(tuple(f"w{n}" for n in range(100)))
    rows = table(VectorEmbeddings(path=str(tmp_path / "v.txt")), 40, words)
    missing = rows[50:].flatten().numpy()
    assert stats.kstest(missing, stats.norm(scale=found.std()).cdf).pvalue > 0.01


def test_missing_words_follow_the_seed_and_found_ones_do_not(path):
    one, other = (table(VectorEmbeddings(path=path), 5, seed=seed) for seed in (0, 1))
    assert one[2:5].equal(other[2:5])
    assert not one[[0, 1, 5]].isclose(other[[0, 1, 5]]).any()
    assert table(VectorEmbeddings(path=path), 5).equal(one)


def test_narrow_vectors_keep_their_lengths_and_angles_in_a_wider_table(path):
    narrow, wide = (table(VectorEmbeddings(path=path), width)[2:5] for width in (3, 8))
    torch.testing.assert_close(wide @ wide.T, narrow @ narrow.T)
    assert (wide != 0).all()


def test_a_rescaled_table_has_the_mean_length_and_the_same_directions(path):
    vectors = VectorEmbeddings(path=path)
    plain, scaled = (table(spec, 3) for spec in (vectors, Rescaled(of=vectors, length=0.5)))
    assert scaled.norm(dim=1).mean().item() == pytest.approx(0.5)
    normalise = nn.functional.normalize
    torch.testing.assert_close(normalise(scaled), normalise(plain))


def test_the_map_to_a_wider_table_is_orthonormal_and_always_the_same():
    one = orthonormal_map(4, 9)
    torch.testing.assert_close(one @ one.T, torch.eye(4))
    torch.rand(3)
    assert orthonormal_map(4, 9).equal(one)


def test_a_pinned_file_is_recognised_and_a_changed_one_refused(path):
    pinned = VectorEmbeddings.pinned(path)
    assert len(pinned.digest) == 64
    assert table(pinned, 3).equal(table(VectorEmbeddings(path=path), 3))
    with open(path, "a") as file:
        file.write("zebra 1 1 1\n")
    assert VectorEmbeddings.pinned(path).digest != pinned.digest
    with pytest.raises(UsageError, match=r"are not those that the digest .* pins"):
        table(pinned, 3)


def test_vectors_wider_than_the_model_are_one_sentence(path):
    with pytest.raises(UsageError, match=r"have 3 numbers: set embedding to at least as many"):
        table(VectorEmbeddings(path=path), 2)


def test_vectors_without_a_single_word_of_the_vocabulary_are_one_sentence(path):
    with pytest.raises(UsageError, match="none of the vocabulary's 1 words"):
        table(VectorEmbeddings(path=path), 3, Vocabulary(("xylophone",)))


def test_a_configuration_names_its_vectors():
    read = Embeddings.model_validate({"kind": "vectors", "path": "a.txt", "digest": "00"})
    assert read == VectorEmbeddings(path="a.txt", digest="00")


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_the_shared_vectors_fill_a_table_of_the_papers_width():
    words = Vocabulary(("<pad>", "film", "movie", "the", "qqqqqq"))
    rows = table(VectorEmbeddings.pinned("glove_100d"), 300, words)
    film, movie, the = nn.functional.normalize(rows[1:4])
    assert film @ movie > 0.8 > film @ the
    # The copied rows' spread is theirs: 100 numbers' worth of length over 300.
    spread = rows[1:4].std(correction=0)
    drawn = rows[[0, 4]].std(correction=0)
    assert math.isclose(drawn, spread, rel_tol=0.2)
