"""Examples show the words of their text: case, punctuation, and words that the model lacks."""

from __future__ import annotations

from attnscope.data.carried import CarriedText
from attnscope.report.surface import original_text, surface_words
from cases import for_each


def source(tokens="words", edges="marked"):
    known = ("<pad>", "<bos>", "<eos>", "<unk>", "a", "film")
    return CarriedText(
        name="own", inputs=known, outputs=("no", "yes"), labels=True, tokens=tokens, edges=edges
    )


@for_each(
    ("text", "told"),
    [
        ("A Superb film!", ["A", "Superb", "film!"]),
        ("(A film, Xavier)", ["(A", "film,", "Xavier)"]),
        ("a a a", ["a", "a", "a"]),
        ("it's a film", ["it's", "a", "film"]),
    ],
)
def test_words_are_shown_as_they_stand_in_the_text(text, told):
    own = source()
    words = own.input_words.decode(own.encode(text))
    assert surface_words(own, text, words) == ["<bos>", *told, "<eos>"]
    assert "".join(told) == text.replace(" ", "")


def test_rewritten_words_and_texts_that_do_not_fit_lose_nothing():
    own = source("words-no-numbers", "bare")
    words = own.input_words.decode(own.encode("In 1984 a film"))
    assert surface_words(own, "In 1984 a film", words) == ["In", "1984", "a", "film"]
    assert surface_words(own, "another text altogether", ["a", "film"]) == ["a", "film"]


def test_pieces_stay_as_they_are():
    assert surface_words(source("pieces"), "A film", ["▁A", "▁film"]) == ["▁A", "▁film"]


def test_a_source_without_texts_has_no_original_text():
    assert original_text(source(), "val", 0) is None
