"""Words and ids, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from attnscope.data.vocabulary import Vocabulary
from attnscope.errors import UsageError


@given(st.lists(st.text(max_size=4), unique=True, min_size=1, max_size=9), st.data())
def test_decoding_is_the_inverse_of_encoding(words, data):
    vocabulary = Vocabulary(tuple(words))
    text = data.draw(st.lists(st.sampled_from(words)))
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    assert [words[index] for index in ids] == text


def test_a_vocabulary_has_its_specials_first_then_its_words_in_alphabetical_order():
    built = Vocabulary.build([["b", "a", "<eos>"], ["c", "a"]], ["<pad>", "<eos>"])
    assert built.words == ("<pad>", "<eos>", "a", "b", "c")
    assert len(built) == 5


def test_other_words_are_the_unknown_word_where_there_is_one():
    vocabulary = Vocabulary(("<unk>", "a"), unknown="<unk>")
    assert vocabulary.encode(["a", "b", "<unk>"]) == [1, 0, 0]


@pytest.mark.parametrize("words", [("a", "b"), ("", "a")])
def test_another_word_is_one_sentence_where_there_is_no_unknown_word(words):
    with pytest.raises(UsageError, match=r"^The word 'c' is not among the vocabulary's 2 words"):
        Vocabulary(words).id("c")
