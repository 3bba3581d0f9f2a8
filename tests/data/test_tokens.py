"""The tokenisers of snell A.8 and those of sunlu, and how their texts are cleaned."""

from __future__ import annotations

import pytest

from attnscope.data.tokens import CLEANING, SPECIALS, TOKENISERS, UNKNOWN
from cases import for_each


def test_the_specials_are_those_of_the_authors_code_in_its_order() -> None:
    assert SPECIALS == ("<pad>", "<bos>", "<eos>", "<unk>")
    assert UNKNOWN == "<unk>"


@for_each(
    ("text", "expected"),
    [
        ("It ISN'T bad, it's great!!", ["it", "isn't", "bad", "it's", "great"]),
        ("Don’t ask", ["don’t", "ask"]),  # a typographic apostrophe
        ("'quoted' words'", ["quoted", "words"]),
        ("Größe ÉTÉ", ["größe", "été"]),
        ("7 of 10 in 1994", ["7", "of", "10", "in", "1994"]),
        ("snake_case", ["snake_case"]),
        ("<br /> <pad>", ["br", "pad"]),  # a text cannot name a special
        (" ... ?! ", []),
    ],
)
def test_words_are_lower_case_and_without_punctuation(text: str, expected: list[str]) -> None:
    assert TOKENISERS["words"](text) == expected


def test_marks_stand_alone_where_they_are_kept() -> None:
    assert TOKENISERS["words-and-marks"]("No, it's 3.5!") == ["no", ",", "it's", "3", ".", "5", "!"]


@pytest.mark.parametrize("name", ["words-no-numbers", "words-no-numbers-split"])
def test_integers_of_more_than_one_digit_are_unknown(name: str) -> None:
    """A.8: 'all non-single digit integer "words"' of AG News and 20 Newsgroups."""
    words = TOKENISERS[name]("5 of 55 won 100 to 0 in the 2nd year of 3.14")
    unknown = UNKNOWN
    expected = ["5", "of", unknown, "won", unknown, "to", "0", "in", "the", "2nd", "year", "of"]
    assert words == [*expected, "3", unknown]


def test_words_are_split_at_underscores_for_20_newsgroups_alone() -> None:
    text = "home_run by_1993 _stressed_ plain"
    split = ["home", "run", "by", UNKNOWN, "stressed", "plain"]
    assert TOKENISERS["words-no-numbers-split"](text) == split
    assert TOKENISERS["words-no-numbers"](text) == ["home_run", "by_1993", "_stressed_", "plain"]


def test_blanks_leave_a_tokenised_text_as_it_is() -> None:
    assert TOKENISERS["blanks"]("Ein  Mann , der\tSchläft .") == [
        "Ein",
        "Mann",
        ",",
        "der",
        "Schläft",
        ".",
    ]


def test_plain_words_are_cut_at_every_sign() -> None:
    found = TOKENISERS["plain-words"]("It's a co-writer's 21st film_noir ...")
    assert found == ["it", "s", "a", "co", "writer", "s", "21st", "film_noir"]


def test_marks_are_kept_once_and_what_has_a_digit_is_one_word() -> None:
    found = TOKENISERS["words-and-marks-no-numbers"]("Don't!!! 3-2 in the 2nd -- ok")
    assert found == ["don't", "!", "qqq", "-", "qqq", "in", "the", "qqq", "-", "ok"]


def test_a_message_body_has_no_headers_quotes_or_signature() -> None:
    text = (
        "From: a@b.c\nSubject: Re: goals\n\nx@y.z writes:\n> They lost.\n\n"
        "They won twice.\n\n--\nA. Name\n"
    )
    assert CLEANING["message-body"](text).split() == ["They", "won", "twice."]


def test_line_breaks_of_html_part_words() -> None:
    assert CLEANING["line-breaks"]("one<br />two<BR>three").split() == ["one", "two", "three"]
