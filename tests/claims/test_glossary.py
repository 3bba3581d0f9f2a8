"""Symbols of the claims: each is explained in its own paper's words, and nothing else is."""

import re

from attnscope.claims.catalogue import catalogue
from attnscope.claims.glossary import GLOSSARY
from attnscope.claims.symbols import in_letters
from cases import for_each

STATEMENTS = {
    paper: [in_letters(entry.statement) for entry in catalogue() if entry.paper == paper]
    for paper in GLOSSARY
}


def test_every_paper_has_a_glossary():
    assert GLOSSARY.keys() == {entry.paper for entry in catalogue()}


@for_each("paper", GLOSSARY)
def test_every_explained_symbol_is_printed_somewhere(paper):
    text = " ".join(STATEMENTS[paper])
    assert [symbol for symbol in GLOSSARY[paper] if symbol not in text] == []


@for_each("paper", GLOSSARY)
def test_every_greek_letter_of_a_statement_is_explained(paper):
    for statement in STATEMENTS[paper]:
        known = {symbol for symbol in GLOSSARY[paper] if symbol in statement}
        letters = set(re.findall("[α-ωΑ-Ω]", statement))
        assert letters <= set("".join(known)), statement
