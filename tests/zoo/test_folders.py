"""Models and tokenisers from folders on disk, as Hugging Face writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from attnscope.audits import replaceable
from attnscope.audits.checkpoints import with_weights
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


CODE = """
from pathlib import Path
from transformers import BertConfig, BertForSequenceClassification

Path(__file__).with_name("ran").touch()


class MineConfig(BertConfig):
    model_type = "mine"


class Mine(BertForSequenceClassification):
    config_class = MineConfig
"""


@pytest.mark.parametrize("kind", ["mine", "bert"])
def test_code_that_comes_with_a_model_is_run_where_it_is_trusted(bert_folder, tmp_path, kind):
    folder = tmp_path / f"own_{kind}"
    shutil.copytree(bert_folder, folder)
    (folder / "code.py").write_text(CODE)
    own = {"AutoConfig": "code.MineConfig", "AutoModelForSequenceClassification": "code.Mine"}
    changed = {"model_type": kind, "architectures": ["Mine"], "auto_map": own}
    told = json.loads((folder / "config.json").read_text()) | changed
    (folder / "config.json").write_text(json.dumps(told))
    with pytest.raises(UsageError, match="code of its own: read it, then pass trust_remote_code"):
        adapt(folder)
    assert "Mine" in type(adapt(folder, trust_remote_code=True).module).__name__


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_pickled_objects_are_not_loaded_and_said_in_one_sentence(bert_folder, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(bert_folder, folder)
    weights = adapt(bert_folder).module.state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert adapt(folder).places.names == adapt(bert_folder).places.names
    torch.save({**weights, "harm": Harm(tmp_path / "harmed")}, folder / "pytorch_model.bin")
    with pytest.raises(UsageError, match="pickled objects besides weights: not loaded"):
        adapt(folder)
    with pytest.raises(UsageError, match="pickled objects besides weights: not loaded"):
        with_weights(adapt(bert_folder), folder)
    assert not (tmp_path / "harmed").exists()


def test_damaged_files_of_a_folder_are_one_sentence(bert_folder, tmp_path):
    for name, content, sentence in (
        ("model.safetensors", b"{", "has no weights that fit"),
        ("tokenizer.json", b"{", r"The tokeniser of .* cannot be read"),
    ):
        folder = tmp_path / name
        shutil.copytree(bert_folder, folder)
        (folder / name).write_bytes(content)
        with pytest.raises(UsageError, match=sentence):
            adapt(folder)
    with pytest.raises(UsageError, match="has weights that cannot be read"):
        with_weights(adapt(bert_folder), tmp_path / "model.safetensors")


def test_weights_that_a_folder_lacks_are_not_drawn_at_random(bert_folder, tmp_path):
    shutil.copytree(bert_folder, tmp_path / "bare")
    weights = load_file(bert_folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "classifier" not in name}
    save_file(kept, tmp_path / "bare" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match="lacks weights of BertForSequenceClassification"):
        adapt(tmp_path / "bare")


def test_a_checkpoint_in_several_files_is_one(bert_folder, tmp_path):
    weights = load_file(bert_folder / "model.safetensors")
    names = sorted(weights)
    files = {name: f"model-{number % 2}.safetensors" for number, name in enumerate(names)}
    for file in sorted(set(files.values())):
        save_file({n: weights[n] for n in names if files[n] == file}, tmp_path / file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    twin = with_weights(adapt(bert_folder), tmp_path)
    assert all(value.equal(twin.module.state_dict()[name]) for name, value in weights.items())


def test_a_tokeniser_without_a_vocabulary_is_found(tmp_path):
    cut = transformers.ByT5Tokenizer()
    cut.save_pretrained(tmp_path)
    settings = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(vocab_size=len(cut), decoder_start_token_id=0, **settings)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    assert len(adapt(tmp_path).batch(["ab"], ["b"]).inputs[0]) == 3


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
