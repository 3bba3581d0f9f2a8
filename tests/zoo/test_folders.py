"""Models and tokenisers from folders on disk, as Hugging Face writes them."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from attnscope.audits import replaceable
from attnscope.audits.running import audit
from attnscope.audits.texts import Texts
from attnscope.data.grammar import sentiment_corpus, translation_corpus
from attnscope.data.tokenised import TokenisedBatch, Tokeniser
from attnscope.errors import UsageError
from attnscope.models.adapter import adapt

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [" ".join(text.tokens) for text in sentiment_corpus()["train"][:200]]
LABELS = [text.label for text in sentiment_corpus()["train"][:200]]


def word_piece():
    cut = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cut.normalizer, cut.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    cut.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=90, special_tokens=SPECIALS)
    )
    cut.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return cut


def byte_level():
    cut = Tokenizer(models.BPE())
    cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    cut.train_from_iterator(TEXTS, trainer)
    cut.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return cut


def sentence_piece():
    cut = Tokenizer(models.Unigram())
    cut.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=SPECIALS, unk_token="[UNK]")
    cut.train_from_iterator(TEXTS, trainer)
    cut.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return cut


def fast(cut: Tokenizer):
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=cut,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


KINDS = {"WordPiece": word_piece, "byte-level": byte_level, "SentencePiece": sentence_piece}


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_matched_to_the_words_between_blanks(kind):
    cut = Tokeniser(fast(KINDS[kind]()))
    for text in TEXTS[:20]:
        encoded = cut.encode(text)
        assert encoded.words[0] == encoded.words[-1] == -1
        pieces: dict[int, str] = {}
        for word, piece in zip(encoded.words, cut.decode(encoded.ids), strict=True):
            if word >= 0:
                pieces[word] = pieces.get(word, "") + piece.strip().strip("▁Ġ")
        assert [pieces[n] for n in sorted(pieces)] == text.lower().split() or [
            pieces[n] for n in sorted(pieces)
        ] == text.split()


def small(kind, **settings):
    config = kind.config_class(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=48,
        pad_token_id=0,
        **settings,
    )
    torch.manual_seed(0)
    model = kind(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return model.eval()


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "tiny-bert"
    cut = fast(word_piece())
    small(transformers.BertForSequenceClassification, vocab_size=len(cut)).save_pretrained(folder)
    cut.save_pretrained(folder)
    return folder


def test_a_folder_is_adapted_with_its_tokeniser(bert_folder):
    model = adapt(bert_folder)
    assert model.places.names == ["encoder.1.self", "encoder.2.self"]
    batch = model.batch(TEXTS[:4], LABELS[:4])
    assert isinstance(batch, TokenisedBatch)
    assert batch.inputs[:, 0].eq(2).all()  # [CLS]


def test_reading_a_folder_prints_nothing(bert_folder, capfd):
    adapt(bert_folder)
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_a_folder_is_audited_from_end_to_end(bert_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(replaceable, "STEPS", 3)  # the search itself is tested elsewhere
    texts = Texts("reviews", "all", tuple(TEXTS[:32]), labels=tuple(LABELS[:32]))
    done = audit(bert_folder, texts, out=tmp_path)
    assert done.result.config["site"] == "encoder.2.self"
    assert done.folder.name.startswith("tiny-bert-reviews-")
    assert {row.name for row in done.result.measurements} >= {
        "entropy",
        "changed",
        "dependence",
        "replaceable",
        "found_share",
        "agreement",
    }
    assert any("has not learned" in notice for notice in done.notices)


def test_a_language_model_is_audited_word_by_word(tmp_path):
    cut = fast(word_piece())
    model = small(transformers.LlamaForCausalLM, vocab_size=len(cut), num_key_value_heads=1)
    done = audit(
        model,
        Texts("reviews", "all", tuple(TEXTS[:32])),
        tokenizer=cut,
        out=tmp_path,
        only=["uniform", "idle", "finds", "agrees"],
    )
    assert done.result.config["site"] == "decoder.2.self"
    [attention] = done.result.select("found_share", score="attention")
    assert attention.value is not None


def test_texts_that_are_too_long_are_counted_and_left_out(bert_folder):
    model = adapt(bert_folder)
    read = model.read([" ".join(TEXTS[:6]), *TEXTS[:2]], [0, 0, 1])
    assert read.left_out == {"more than 48 pieces": 1}
    assert read.batch.ids.tolist() == [1, 2]


def test_a_tokeniser_that_knows_nothing_is_refused(bert_folder):
    model = adapt(bert_folder)
    with pytest.raises(UsageError, match="knows fewer than half of the words"):
        model.batch(["Ψ Ω Σ Φ Λ Δ Θ Ξ"] * 2, [0, 1])


def test_a_folder_without_a_tokeniser_is_adapted_and_cannot_read_texts(tmp_path):
    small(transformers.BertForSequenceClassification, vocab_size=40).save_pretrained(tmp_path)
    model = adapt(tmp_path)
    with pytest.raises(UsageError, match="has no tokeniser"):
        model.batch(["a text"], [0])


def test_a_model_without_a_head_is_refused(tmp_path):
    small(transformers.BertModel, vocab_size=40).save_pretrained(tmp_path)
    with pytest.raises(Exception, match="BertModel has no head"):
        adapt(tmp_path)


def test_a_model_that_does_not_run_is_one_sentence(tmp_path):
    config = transformers.GPT2Config(vocab_size=30, n_embd=16, n_layer=1, n_head=2)
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"does not run on an example: .*padding token"):
        adapt(tmp_path)


def test_code_that_comes_with_a_model_is_never_run_unasked(bert_folder, tmp_path):
    config = json.loads((bert_folder / "config.json").read_text())
    config |= {"auto_map": {"AutoModel": "evil.Evil"}, "architectures": ["Evil"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text("raise SystemExit('this code ran')\n")
    with pytest.raises(UsageError, match="comes with code of its own"):
        adapt(tmp_path)


def test_what_is_no_model_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"is not a Hugging Face model: it has no config\.json"):
        adapt(tmp_path)
    with pytest.raises(UsageError, match="neither a folder nor a name on the hub"):
        adapt("no-such-model")


def test_a_translator_is_audited_on_parallel_text(tmp_path):
    pairs = translation_corpus()["train"][:32]
    sources, targets = (
        [" ".join(getattr(p, side)) for p in pairs] for side in ("source", "target")
    )
    raw = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.train_from_iterator(
        [*sources, *targets], trainers.WordLevelTrainer(special_tokens=[*SPECIALS, "</s>"])
    )
    raw.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 5)]
    )
    cut = fast(raw)
    cut.add_special_tokens({"eos_token": "</s>"})
    config = transformers.MarianConfig(
        vocab_size=len(cut),
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=40,
        pad_token_id=0,
        eos_token_id=5,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1 and "positions" not in name:
            torch.nn.init.normal_(parameter, std=0.25)
    links = tuple(frozenset((s, t) for t, s in pair.alignment) for pair in pairs)
    texts = Texts(
        "grammar", "all", tuple(sources), targets=tuple(targets), sure=links, possible=links
    )
    done = audit(model, texts, tokenizer=cut, out=tmp_path, only=["idle", "finds", "gold"])
    assert done.result.config["site"] == "cross.2"
    [best] = done.result.select("gold_best_head")
    assert str(best.axes["site"]).startswith("cross.")


def test_a_hugging_face_folder_is_no_unit(bert_folder):
    from attnscope import load

    with pytest.raises(UsageError, match=r"a model of Hugging Face: use attnscope\.adapt"):
        load(bert_folder)
