"""IBM Model 1 in both directions: links are nltk's, and further text helps."""

from __future__ import annotations

import pytest
from nltk.translate import AlignedSent, IBMModel1

from attnscope.analysis.alignment import link_sets, to_pharaoh
from attnscope.analysis.ibm_alignment import ibm_links, model1_score
from attnscope.data import grammar
from attnscope.data.corpus import GrammarTranslation

SENTENCES = (
    ("das haus ist klein", "the house is small"),
    ("das buch ist neu", "the book is new"),
    ("ein haus", "a house"),
    ("ein buch", "a book"),
    ("das kleine buch", "the small book"),
)
Sides = tuple[list[list[str]], list[list[str]]]


def sides(*pairs: tuple[str, str]) -> Sides:
    return [source.split() for source, _ in pairs], [target.split() for _, target in pairs]


def check_against_nltk(links: list[frozenset[tuple[int, int]]], text: Sides) -> None:
    """Check that each target's link is nltk's likeliest word; ties, exact in theory, are open."""
    sentences = list(zip(*text, strict=True))
    bitext = [AlignedSent(target, source) for source, target in sentences]
    table = IBMModel1(bitext, 5).translation_table
    for found, (source, target) in zip(links, sentences, strict=False):
        linked = {t: s for s, t in found}
        for t, word in enumerate(target):
            chosen = table[word][source[linked[t]] if t in linked else None]
            highest = max(table[word][other] for other in (None, *source))
            assert chosen == pytest.approx(highest, rel=1e-6)


def test_model1_finds_the_links_of_nltk() -> None:
    # Without repeated words, whose probability nltk halves.
    every = grammar.translation_corpus()["val"]
    distinct = [p for p in every if all(len(set(x)) == len(x) for x in (p.source, p.target))]
    sources = [list(pair.source) for pair in distinct[:30]]
    targets = [list(pair.target) for pair in distinct[:30]]
    text = (sources[12:], targets[12:])
    found = ibm_links(sources[:12], targets[:12], text, iterations=5, null=True)
    check_against_nltk(link_sets(found["forward"]), (sources, targets))
    check_against_nltk(link_sets(found["backward"].mT), (targets, sources))
    assert int(found["forward"].sum()) > 50


def test_directions_join_to_intersection_and_union() -> None:
    pairs = grammar.translation_corpus()["val"]
    found = ibm_links([p.source for p in pairs], [p.target for p in pairs], null=False)
    forward, backward = found["forward"], found["backward"]
    assert int(forward.sum(2).max()) == 1
    assert int(backward.sum(1).max()) == 1
    assert found["intersection"].equal(forward & backward)
    assert found["union"].equal(forward | backward)


def test_further_text_teaches_what_the_sentences_alone_do_not() -> None:
    asked = sides(("buch haus", "house book"))
    links = ibm_links(*asked, sides(*SENTENCES), iterations=10, null=False)
    assert to_pharaoh(links["union"]) == "0-1 1-0\n"
    alone = ibm_links(*asked, iterations=10, null=False)
    assert not alone["forward"].equal(links["union"])


def test_a_word_that_comes_with_every_sentence_is_left_to_the_null_word() -> None:
    asked = sides(*((source, f"{target} of") for source, target in ("ax", "by", "cz")))
    assert set(link_sets(ibm_links(*asked, null=True)["forward"])) == {frozenset({(0, 0)})}
    without = ibm_links(*asked, null=False)["forward"]
    assert set(link_sets(without)) == {frozenset({(0, 0), (0, 1)})}


def test_model1_as_a_score_is_a_distribution_that_finds_the_grammars_links() -> None:
    source = GrammarTranslation()
    batch = source.evaluation_batch(40)
    score = model1_score(source, batch, 2000)
    real = score.mask
    assert not score.values.masked_select(~batch.input_mask[:, None].expand_as(real)).any()
    sums = score.values.sum(-1)[batch.target_mask]
    assert 0 < float(sums.min()) <= float(sums.max()) <= 1 + 1e-6
    known = batch.gold >= 0
    right = (score.values.argmax(-1) == batch.gold)[known]
    assert float(right.double().mean()) > 0.5
