"""Contractions: written out by language, or kept."""

from __future__ import annotations

import pytest

from attnscope.data.contractions import SPELLINGS, cut


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("fr", "L'ami du roi n'est pas là.", "le ami de le roi ne est pas là ."),
        ("fr", "Aujourd’hui, aux enfants qu'il voit", "aujourd' hui , à les enfants que il voit"),
        ("fr", "C'est au sud des Alpes, dessous", "ce est à le sud de les alpes , dessous"),
        ("en", "I don't; we can't, won't.", "i do not ; we cannot , will not ."),
        ("en", "Tom's dog's fine, they're in", "tom 's dog 's fine , they are in"),
        ("de", "Wie geht's dir?", "wie geht's dir ?"),
    ],
)
def test_contractions_are_written_out_as_in_the_hansards(
    language: str, text: str, words: str
) -> None:
    rules = SPELLINGS["expanded"].get(language, ())
    assert cut(text, rules) == words.split()


def test_plain_spelling_keeps_contractions() -> None:
    assert SPELLINGS["plain"] == {}
    assert cut("L'ami n'est pas là.") == ["l'ami", "n'est", "pas", "là", "."]
