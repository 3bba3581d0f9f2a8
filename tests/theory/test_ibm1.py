"""IBM Model 1 against exact arithmetic, against nltk, and on corpora whose dictionary is known."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import log

import pytest
import torch
from nltk.translate import AlignedSent, IBMModel1
from torch import Tensor

from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.theory import ibm1
from attnscope.theory.counts import count_table
from attnscope.theory.initial_derivative import PaddedPairs, random_corpus

Corpus = Sequence[tuple[Sequence[str], Sequence[str]]]
TOY: Corpus = [
    (("das", "Haus"), ("the", "house")),
    (("das", "Buch"), ("the", "book")),
    (("ein", "Buch"), ("a", "book")),
]
UNEVEN: Corpus = [
    *TOY,
    (("das", "Haus", "das", "Buch"), ("the", "house", "the", "book", "indeed")),
    (("ein",), ("a", "the")),
]


class Encoded:
    """A corpus of words as padded ids."""

    def __init__(self, corpus: Corpus) -> None:
        inputs, targets = zip(*corpus, strict=True)
        self.input_words, rows = self._ids(inputs)
        self.output_words, columns = self._ids(targets)
        self.pairs = PaddedPairs(*self._padded(rows), *self._padded(columns))
        self.sizes = len(self.input_words), len(self.output_words)

    @staticmethod
    def _ids(sentences: Iterable[Sequence[str]]) -> tuple[list[str], list[Tensor]]:
        words = sorted({word for sentence in sentences for word in sentence})
        number = {word: index for index, word in enumerate(words)}
        return words, [torch.tensor([number[word] for word in row]) for row in sentences]

    @staticmethod
    def _padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
        # Padding is the id of a real word, so that only the mask tells them apart.
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1)
        return ids, torch.arange(ids.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]

    def trained(self, steps: int) -> Tensor:
        translation = ibm1.uniform_translation(*self.sizes)
        for _ in range(steps):
            translation = ibm1.em_step(translation, *self.pairs)
        return translation

    def lookup(self, table: Tensor) -> dict[tuple[str, str], float]:
        return {
            (word, output): table[i, o].item()
            for i, word in enumerate(self.input_words)
            for o, output in enumerate(self.output_words)
        }


def exact_em(corpus: Corpus, steps: int) -> tuple[dict, dict]:
    """Expected counts and translation table in fractions, by dictionaries."""
    outputs = {output for _, target in corpus for output in target}
    translation: dict = defaultdict(lambda: Fraction(1, len(outputs)))
    for _ in range(steps):
        counts: dict = defaultdict(Fraction)
        for source, target in corpus:
            for output in target:
                total = sum(translation[word, output] for word in source)
                for word in source:
                    counts[word, output] += translation[word, output] / total
        rows: dict = defaultdict(Fraction)
        for (word, _), count in counts.items():
            rows[word] += count
        translation = defaultdict(
            Fraction, {(word, o): count / rows[word] for (word, o), count in counts.items()}
        )
    return counts, translation


@cache
def german_english() -> Encoded:
    return Encoded([(pair.source, pair.target) for pair in translation_corpus()["train"]])


@pytest.mark.parametrize("corpus", [TOY, UNEVEN], ids=["toy", "uneven"])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_em_equals_exact_arithmetic(corpus: Corpus, steps: int) -> None:
    encoded = Encoded(corpus)
    counts, translation = exact_em(corpus, steps)
    observed = ibm1.expected_counts(encoded.trained(steps - 1), *encoded.pairs)
    for pair, value in encoded.lookup(observed).items():
        assert value == pytest.approx(float(counts[pair]), abs=1e-12)
    for pair, value in encoded.lookup(encoded.trained(steps)).items():
        assert value == pytest.approx(float(translation[pair]), abs=1e-12)


@pytest.mark.parametrize("steps", [1, 5])
def test_with_a_null_word_prepended_em_equals_that_of_nltk(steps: int) -> None:
    # nltk shares one unit among all occurrences of a word in a target sentence, where the model
    # has one for each, and leaves words that never meet at their first value: both left out.
    every = translation_corpus()["train"]
    pairs = [pair for pair in every if len(set(pair.target)) == len(pair.target)][:60]
    corpus: Corpus = [(("", *pair.source), pair.target) for pair in pairs]
    encoded = Encoded(corpus)
    trained = encoded.lookup(encoded.trained(steps))
    aligned = [AlignedSent(list(pair.target), list(pair.source)) for pair in pairs]
    reference = IBMModel1(aligned, steps).translation_table
    for word, output in {(w, o) for source, target in corpus for w in source for o in target}:
        expected = reference[output][word or None]
        assert trained[word, output] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_first_expected_counts_are_the_count_table_on_random_corpora(seed: int) -> None:
    pairs = random_corpus(torch.Generator().manual_seed(seed), 7, 9, pairs=50)
    counts = ibm1.expected_counts(ibm1.uniform_translation(7, 9), *pairs)
    torch.testing.assert_close(counts, count_table(*pairs, 7, 9), rtol=1e-12, atol=1e-12)


def test_first_expected_counts_are_the_count_table_on_text() -> None:
    reviews = [(text.tokens, (str(text.label),)) for text in sentiment_corpus()["train"]]
    for encoded in (german_english(), Encoded(reviews)):
        counts = ibm1.expected_counts(ibm1.uniform_translation(*encoded.sizes), *encoded.pairs)
        table = count_table(*encoded.pairs, *encoded.sizes)
        torch.testing.assert_close(counts, table, rtol=1e-12, atol=1e-12)


def test_chunks_never_change_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = german_english()
    translation = encoded.trained(2)
    whole = ibm1.expected_counts(translation, *encoded.pairs)
    monkeypatch.setattr(ibm1, "_CELLS_PER_CHUNK", 1000)
    chunked = ibm1.expected_counts(translation, *encoded.pairs)
    torch.testing.assert_close(chunked, whole, rtol=1e-12, atol=1e-12)


def test_likelihood_never_falls() -> None:
    sentences = [(pair.source, pair.target) for pair in translation_corpus()["val"]]
    encoded = Encoded(sentences)
    likelihoods = []
    for steps in range(8):
        table = encoded.lookup(encoded.trained(steps))
        likelihoods.append(
            sum(
                log(sum(table[word, output] for word in source) / len(source))
                for source, target in sentences
                for output in target
            )
        )
    assert all(before < after for before, after in pairwise(likelihoods))


def test_toy_corpus_converges_to_its_dictionary() -> None:
    encoded = Encoded(TOY)
    table = encoded.lookup(encoded.trained(200))
    for pair in [("das", "the"), ("Haus", "house"), ("Buch", "book"), ("ein", "a")]:
        assert table[pair] > 0.95


def test_german_nouns_find_their_translations() -> None:
    links: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in translation_corpus()["train"]:
        for t, s in pair.alignment:
            links[pair.source[s]][pair.target[t]] += 1
    encoded = german_english()
    best = encoded.trained(10).argmax(1)
    nouns = [word for word in encoded.input_words if word[0].isupper()]
    found = [
        encoded.output_words[best[encoded.input_words.index(noun)]]
        == links[noun].most_common(1)[0][0]
        for noun in nouns
    ]
    assert len(nouns) == 20
    assert sum(found) >= 18


def test_alignment_is_a_distribution_over_real_input_positions() -> None:
    encoded = german_english()
    _, input_mask, _, target_mask = encoded.pairs
    shares = ibm1.alignment(encoded.trained(3), *encoded.pairs)
    assert shares.masked_select(~input_mask[:, None, :]).eq(0).all()
    torch.testing.assert_close(shares.sum(-1), target_mask.double())


def test_alignment_grows_with_the_translation_probability() -> None:
    encoded = Encoded(UNEVEN)
    translation = encoded.trained(1)
    probability = ibm1.pair_probability(translation, *encoded.pairs)
    by_hand = encoded.lookup(translation)
    for m, (source, target) in enumerate(UNEVEN):
        for t, output in enumerate(target):
            expected = [by_hand[word, output] for word in source]
            assert probability[m, t, : len(source)].tolist() == expected
            shares = ibm1.alignment(translation, *encoded.pairs)[m, t, : len(source)]
            assert shares.tolist() == pytest.approx([p / sum(expected) for p in expected])


def test_words_that_cannot_be_explained_or_never_occur_get_zeros() -> None:
    translation = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    pairs = PaddedPairs(
        torch.tensor([[0, 99]]), torch.tensor([[True, False]]),
        torch.tensor([[0, 1, -9]]), torch.tensor([[True, True, False]]),
    )  # fmt: skip
    shares = ibm1.alignment(translation, *pairs)
    assert shares.tolist() == [[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]
    assert ibm1.em_step(translation, *pairs).tolist() == [[1.0, 0.0], [0.0, 0.0]]
