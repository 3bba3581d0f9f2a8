"""A translator of subword pieces: the page can put its pieces together."""

import pytest

from attnscope import write_corpus
from attnscope.data.grammar import translation_corpus
from attnscope.data.text import open_text
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.report.page import request_of
from attnscope.report.payload import payload
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    pairs = [(" ".join(p.source), " ".join(p.target)) for p in translation_corpus()["train"][:300]]
    corpus = write_corpus(folder / "corpus", pairs, languages=("de", "en"))
    source = open_text(str(corpus), translation={"pieces": 90})
    training = Training(
        steps=1,
        batch_size=4,
        evaluate_at=(),
        examples=5,
        stored=5,
        scores=(Attention(), LexicalProbe()),
    )
    model = Seq2SeqSpec(embedding=4, hidden=4)
    train_unit(Unit(source=source, model=model, training=training), folder)
    (made,) = payload(request_of(folder))["scenes"]
    return made


def test_every_piece_has_its_word(scene):
    for example in scene["examples"]:
        groups, pieces = example["inputGroups"], example["inputs"]
        assert len(groups) == len(pieces)
        words = {}
        for piece, group in zip(pieces, groups, strict=True):
            words.setdefault(group, []).append(piece)
        special = words.pop(-1)
        assert set(special) <= {"<bos>", "<eos>"}
        assert sorted(words) == list(range(len(words)))
        assert all(own[0].startswith("▁") for own in words.values())
        assert any(len(own) > 1 for own in words.values())


def test_shares_add_up_and_of_likelihoods_the_largest_counts(scene):
    merge = {each["score"]: each["merge"] for each in scene["maps"]}
    assert merge["attention"] == merge["ibm_model1"] == "sum"
    assert merge["lexical_probe"] == "max"
