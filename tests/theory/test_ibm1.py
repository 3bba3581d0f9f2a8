"""IBM Model 1 against exact arithmetic, against nltk, and on corpora whose dictionary is known."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import log

import pytest
import torch
from hypothesis import given, strategies as st
from nltk.translate import AlignedSent, IBMModel1
from torch import Tensor

from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.errors import UsageError
from attnscope.theory import ibm1
from attnscope.theory.counts import count_table
from attnscope.theory.ibm1 import IbmModel1
from attnscope.theory.initial_derivative import PaddedPairs, random_corpus
from cases import for_each

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

    def fitted(self, steps: int, null: bool) -> IbmModel1:
        return IbmModel1.fit(self.pairs, *self.sizes, iterations=steps, null=null)

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


@for_each("corpus", [TOY, UNEVEN], ids=["toy", "uneven"])
@for_each("steps", [1, 2, 4])
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


@for_each("seed", range(5))
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


def dense(model: IbmModel1, output_types: int) -> Tensor:
    """Return the whole table, the NULL word's row last."""
    table = torch.zeros(output_types, model.input_types + 1, dtype=torch.float64)
    table.view(-1)[model.keys] = model.probability
    return table.T


def with_null(pairs: PaddedPairs, word: int) -> PaddedPairs:
    first = torch.full((len(pairs.inputs), 1), word)
    inputs = torch.cat([first, pairs.inputs], 1)
    return pairs._replace(inputs=inputs, input_mask=torch.cat([first == word, pairs.input_mask], 1))


corpora = st.builds(
    lambda seed, inputs, outputs, pairs: (
        random_corpus(torch.Generator().manual_seed(seed), inputs, outputs, pairs),
        (inputs, outputs),
    ),
    st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.integers(1, 20),
)  # fmt: skip


@given(corpora, st.integers(0, 6), st.booleans())
def test_model_on_pairs_that_meet_equals_em_on_the_dense_table(
    corpus: tuple[PaddedPairs, tuple[int, int]], steps: int, null: bool
) -> None:
    pairs, (inputs, outputs) = corpus
    model = IbmModel1.fit(pairs, inputs, outputs, iterations=steps, null=null)
    whole = with_null(pairs, inputs) if null else pairs
    table = ibm1.uniform_translation(inputs + 1, outputs)
    for _ in range(steps):
        table = ibm1.em_step(table, *whole)
    found = dense(model, outputs)
    torch.testing.assert_close(found, table * (found > 0), rtol=1e-12, atol=1e-12)
    expected = ibm1.alignment(table, *whole)[:, :, int(null) :]
    torch.testing.assert_close(model.alignment(pairs), expected, rtol=1e-10, atol=1e-12)
    expected = ibm1.pair_probability(table, *pairs)
    torch.testing.assert_close(model.pair_probability(pairs), expected, rtol=1e-10, atol=1e-12)


@for_each("steps", [0, 1, 5])
def test_model_with_null_equals_that_of_nltk(steps: int) -> None:
    # Sentences without repeated output words: see the test of the dense table.
    every = translation_corpus()["train"]
    pairs = [pair for pair in every if len(set(pair.target)) == len(pair.target)][:60]
    encoded = Encoded([(pair.source, pair.target) for pair in pairs])
    table = dense(encoded.fitted(steps, null=True), len(encoded.output_words))
    aligned = [AlignedSent(list(pair.target), list(pair.source)) for pair in pairs]
    reference = IBMModel1(aligned, steps).translation_table
    words = [*encoded.input_words, None]
    places = table.nonzero().tolist()
    assert len(places) > 1000
    for i, o in places:
        expected = reference[encoded.output_words[o]][words[i]]
        assert table[i, o].item() == pytest.approx(expected, abs=1e-6)


def test_other_direction_is_a_model_of_the_exchanged_corpus() -> None:
    back = [(target, source) for source, target in UNEVEN]
    encoded, other = Encoded(UNEVEN), Encoded(back)
    model = IbmModel1.fit(ibm1.reverse(encoded.pairs), *encoded.sizes[::-1], iterations=3)
    assert torch.equal(model.keys, other.fitted(3, null=True).keys)
    torch.testing.assert_close(model.probability, other.fitted(3, null=True).probability)


@given(corpora, st.booleans())
def test_log_likelihood_never_falls(
    corpus: tuple[PaddedPairs, tuple[int, int]], null: bool
) -> None:
    pairs, sizes = corpus
    likelihoods = IbmModel1.fit(pairs, *sizes, iterations=12, null=null).log_likelihoods
    assert len(likelihoods) == 13
    for before, after in pairwise(likelihoods):
        assert after >= before - 1e-9 * abs(before)


def test_log_likelihood_is_that_of_the_table() -> None:
    encoded = Encoded(UNEVEN)
    for steps, value in enumerate(encoded.fitted(4, null=False).log_likelihoods):
        table = encoded.lookup(encoded.trained(steps))
        expected = sum(
            log(sum(table[word, output] for word in source) / len(source))
            for source, target in UNEVEN
            for output in target
        )
        assert value == pytest.approx(expected, rel=1e-12)


def test_what_a_row_lacks_from_one_is_the_share_of_null() -> None:
    encoded = Encoded(UNEVEN)
    table = dense(encoded.fitted(3, null=True), len(encoded.output_words))
    shares = encoded.fitted(3, null=True).alignment(encoded.pairs)
    for m, (source, target) in enumerate(UNEVEN):
        for t, output in enumerate(target):
            column = table[:, encoded.output_words.index(output)]
            rest = sum(column[encoded.input_words.index(word)] for word in source)
            expected = float(column[-1] / (column[-1] + rest))
            assert 1 - shares[m, t].sum().item() == pytest.approx(expected, abs=1e-12)


def test_new_words_and_pairs_that_never_met_have_no_share() -> None:
    model = Encoded(TOY).fitted(2, null=False)  # Buch Haus das ein; a book house the
    # Input 5 is nobody; with output 0 it would spell the key of Buch and book.
    pairs = PaddedPairs(
        torch.tensor([[1, 3, 5, -1]]), torch.ones(1, 4, dtype=torch.bool),
        torch.tensor([[2, 0, 4, -1]]), torch.ones(1, 4, dtype=torch.bool),
    )  # fmt: skip
    house, a, new, negative = model.alignment(pairs)[0].tolist()
    assert house == [1, 0, 0, 0]
    assert a == [0, 1, 0, 0]
    assert new == negative == [0, 0, 0, 0]


@pytest.mark.parametrize("null", [False, True])
def test_blocks_and_padding_never_change_the_model(
    monkeypatch: pytest.MonkeyPatch, null: bool
) -> None:
    pairs = random_corpus(torch.Generator().manual_seed(0), 7, 9, pairs=50)
    whole = IbmModel1.fit(pairs, 7, 9, null=null)
    right = PaddedPairs(*(part.flip(1) for part in pairs))  # padding first
    right = right._replace(inputs=right.inputs.masked_fill(~right.input_mask, -5))
    monkeypatch.setattr(ibm1, "_CELLS_PER_CHUNK", 20)
    chunked = IbmModel1.fit(right, 7, 9, null=null)
    assert torch.equal(chunked.keys, whole.keys)
    torch.testing.assert_close(chunked.probability, whole.probability, rtol=1e-12, atol=1e-12)


def test_large_vocabularies_need_only_the_pairs_that_meet() -> None:
    inputs, outputs = torch.tensor([[59_999, 7]]), torch.tensor([[39_999, 0]])
    real = torch.ones(1, 2, dtype=torch.bool)
    model = IbmModel1.fit(PaddedPairs(inputs, real, outputs, real), 60_000, 40_000)
    assert len(model.keys) == 6
    assert model.alignment(PaddedPairs(inputs, real, outputs, real))[0, 0].tolist() == (
        pytest.approx([1 / 3, 1 / 3])
    )


@for_each(
    ("change", "sentence"),
    [
        ({"input_types": 3}, "input word 3 is not one of 3 types: count them all."),
        ({"output_types": 2}, "output word 3 is not one of 2 types: count them all."),
        ({"iterations": -1}, "iterations=-1: it must be at least 0."),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(change: dict, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        IbmModel1.fit(Encoded(TOY).pairs, **{"input_types": 4, "output_types": 4, **change})
    assert str(caught.value) == sentence


def test_an_empty_corpus_is_refused() -> None:
    pairs = Encoded(TOY).pairs
    with pytest.raises(UsageError, match="has no input words"):
        IbmModel1.fit(pairs._replace(input_mask=torch.zeros_like(pairs.input_mask)), 4, 4)
