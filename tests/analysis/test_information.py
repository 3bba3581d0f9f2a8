"""Mutual information by clusters against closed forms and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information
from threadpoolctl import threadpool_info, threadpool_limits

from attnscope.analysis.information import (
    SAMPLES,
    Clustering,
    cluster_labels,
    label_information,
    most_frequent,
    mutual_information,
    mutual_informations,
    occurrences,
    training_part,
    unigram_sample,
    word_counts,
)
from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment
from attnscope.errors import UsageError


def blobs(labels: np.ndarray, width: int = 3) -> torch.Tensor:
    """Points near one of some corners that lie far apart."""
    stream = np.random.default_rng(9)
    corners = 100 * stream.normal(size=(labels.max() + 1, width))
    return torch.from_numpy(corners[labels] + stream.normal(size=(len(labels), width)))


def test_identical_labels_share_their_entropy():
    labels = np.repeat(np.arange(4), [1, 2, 3, 4])
    found = label_information(labels, labels)
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    assert found.value == pytest.approx(-(shares * np.log(shares)).sum())
    assert found.entropy == pytest.approx(found.value)
    assert found.n == 10


def test_independent_labels_show_no_more_than_shuffled_ones():
    stream = np.random.default_rng(0)
    one, other = stream.integers(40, size=(2, 3000))
    found = label_information(one, other)
    # Far from 0, though nothing is shared: the bias is (40 − 1)² / (2 · 3000) to first order.
    assert found.value > 0.2
    assert found.value == pytest.approx(found.shuffled, rel=0.1)
    assert found.shuffled == pytest.approx(39**2 / 6000, rel=0.15)


def test_the_shuffled_value_is_near_its_exact_expectation():
    stream = np.random.default_rng(1)
    one = stream.integers(20, size=800)
    other = np.where(stream.random(800) < 0.5, one, stream.integers(20, size=800))
    found = label_information(one, other)
    exact = expected_mutual_information(contingency_matrix(one, other, sparse=True), 800)
    assert found.shuffled == pytest.approx(exact, rel=0.1)
    assert found.value == pytest.approx(mutual_info_score(one, other))
    assert found.value > 3 * found.shuffled


@pytest.mark.parametrize("clustering", ["shared", "separate"])
def test_clusters_that_lie_apart_are_found_and_share_what_their_labels_share(
    clustering: Clustering,
) -> None:
    one = np.arange(2000) % 8
    other = one // 2  # The second tells which pair of the first: ln 4 of its ln 8.
    inputs, states = blobs(one), blobs(other) + 1000
    clusters = 12 if clustering == "shared" else 8
    found = mutual_information(inputs, states, clusters=clusters, clustering=clustering)
    # Clusters that are left over split a blob, which adds a little bias.
    assert found.value == pytest.approx(math.log(4), abs=0.02)
    assert found.shuffled < 0.05


def test_a_shared_clustering_gives_equal_points_one_label_and_separate_ones_do_not() -> None:
    points = torch.from_numpy(np.random.default_rng(5).normal(size=(400, 3)))
    shared = mutual_information(points, points, clusters=20)
    assert shared.value == pytest.approx(shared.entropy)
    separate = mutual_information(points, points, clusters=20, clustering="separate")
    assert separate.value < 0.9 * separate.entropy


def test_a_shared_clustering_has_no_more_clusters_for_both_than_separate_ones_for_each() -> None:
    # Far from the inputs, states have what clusters the inputs leave: here one of five.
    one = np.arange(400) % 4
    inputs, states = blobs(one), 1e-3 * blobs(one) + 1e4
    separate = mutual_information(inputs, states, clusters=5, clustering="separate")
    assert separate.value == pytest.approx(math.log(4), abs=0.02)
    assert mutual_information(inputs, states, clusters=5).value == pytest.approx(0.0, abs=1e-9)


def test_representations_of_unequal_width_are_clustered_separately_alone() -> None:
    labels = np.arange(40) % 4
    with pytest.raises(UsageError, match=r"width 3 and states of width 5.*clustering=separate"):
        mutual_information(blobs(labels), blobs(labels, 5))
    found = mutual_information(blobs(labels), blobs(labels, 5), clusters=4, clustering="separate")
    assert found.value == pytest.approx(math.log(4))


def test_the_same_seed_gives_the_same_number():
    points = blobs(np.arange(300) % 5)
    first, second = (mutual_information(points, points, clusters=20, seed=3) for _ in range(2))
    assert first == second


def test_fewer_points_than_clusters_have_as_many_clusters_as_points():
    points = torch.arange(12.0)[:, None] * 10
    found = mutual_information(points, points)
    assert found.value == pytest.approx(math.log(12))
    assert found.entropy == pytest.approx(math.log(12))


def test_the_most_frequent_words_are_counted_without_padding_and_boundaries(reviews):
    counts = word_counts(reviews, 9, without=(0,))
    plain = np.bincount(
        np.concatenate(
            [
                reviews.inputs[n, :length].numpy()
                for n, length in enumerate(reviews.input_lengths.tolist())
            ]
        ),
        minlength=9,
    )
    assert counts[0] == 0
    assert counts[1:].tolist() == plain[1:].tolist()
    top = most_frequent(counts, 3)
    assert sorted(counts[top].tolist()) == sorted(plain[1:])[-3:]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_sample_has_distinct_words_that_occur(name):
    counts = torch.tensor([0, 5, 0, 1, 300, 2, 0])
    found = SAMPLES[name](counts, 1000, 0)
    assert found.tolist() == [1, 3, 4, 5]
    assert len(SAMPLES[name](counts, 2, 0)) == 2


def test_words_are_drawn_in_proportion_to_the_power_of_their_frequency():
    counts = torch.tensor([1, 16, 81, 256])
    draws = np.bincount([int(unigram_sample(counts, 1, seed)[0]) for seed in range(4000)])
    expected = np.array([1, 8, 27, 64]) / 100
    assert draws / 4000 == pytest.approx(expected, abs=0.025)


def test_occurrences_are_those_of_the_chosen_words_with_their_own_states(classifier, reviews):
    model = classifier()
    found = occurrences(model, reviews, torch.tensor([2, 5]))
    trace = model.trace(reviews)
    chosen = reviews.input_mask & ((reviews.inputs == 2) | (reviews.inputs == 5))
    assert len(found.words) == found.found == int(chosen.sum())
    assert set(found.words.tolist()) == {2, 5}

    def ordered(rows: torch.Tensor) -> torch.Tensor:
        return rows[rows[:, 0].argsort()]

    torch.testing.assert_close(ordered(found.states), ordered(trace.encoder_states[chosen]))
    assert found.embeddings.equal(model.embedding.weight[found.words])


def test_a_limit_draws_the_same_occurrences_however_examples_are_batched(classifier, reviews):
    model, types = classifier(), torch.arange(9)
    whole = occurrences(model, reviews, types, limit=20, seed=1)
    parts = occurrences(model, reviews, types, limit=20, seed=1, positions=12)
    assert len(whole.words) == len(parts.words) == 20
    assert whole.found == int(reviews.input_lengths.sum())
    torch.testing.assert_close(whole.states.sum(0), parts.states.sum(0))
    other = occurrences(model, reviews, types, limit=20, seed=2)
    assert not torch.allclose(whole.states.sum(0), other.states.sum(0))


def test_words_that_do_not_occur_are_one_sentence(classifier):
    batch = collate([Example(0, [1, 2], [0], [1])])
    with pytest.raises(UsageError, match="None of the word types occurs"):
        occurrences(classifier(), batch, torch.tensor([3]))


def test_clustering_takes_one_thread_whatever_there_are(monkeypatch: pytest.MonkeyPatch):
    fit, seen = MiniBatchKMeans.fit, []

    def watched(self: MiniBatchKMeans, *given: np.ndarray) -> MiniBatchKMeans:
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(self, *given)

    monkeypatch.setattr(MiniBatchKMeans, "fit", watched)
    with threadpool_limits(limits=2):
        cluster_labels(blobs(np.arange(20) % 2), 2, 10, 0)
    assert seen
    assert set(seen) == {1}


@pytest.mark.parametrize("clustering", ["shared", "separate"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_several_pairs_have_the_information_of_each(clustering: Clustering, jobs: int) -> None:
    stream = np.random.default_rng(3)
    one, *others = (blobs(part) for part in stream.integers(5, size=(4, 200)))
    # The first two pairs have the same inputs, as frozen embeddings are; the third has its own.
    pairs = [(one, others[0]), (one.clone(), others[1]), (others[2], others[0])]
    found = mutual_informations(pairs, clusters=5, clustering=clustering, seed=4, jobs=jobs)
    alone = [mutual_information(*pair, clusters=5, clustering=clustering, seed=4) for pair in pairs]
    assert found == alone
    assert len({information.value for information in found}) == 3


def test_a_part_of_the_training_texts_has_about_the_tokens_asked_for():
    source = GrammarSentiment()
    part = training_part(source, 500)
    lengths = part.input_lengths.tolist()
    assert sum(lengths[:-1]) < 500 <= sum(lengths)
    assert len(set(part.ids.tolist())) == len(part)
    assert len(training_part(source, 10**9)) == len(source.training_examples)
