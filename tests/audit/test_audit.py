"""Audits of models whose answers are known in advance."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.audits import prepare, running
from attnscope.audits.claims import CLAIMS, QUESTIONS
from attnscope.audits.prepare import subject_of
from attnscope.audits.running import audit
from attnscope.audits.stored import export
from attnscope.audits.texts import Texts, read_texts
from attnscope.claims.decide import Verdict
from attnscope.data.folder import CorpusError
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.adapter import adapt
from attnscope.runs.atomic import read_json
from cases import for_each


@pytest.fixture(scope="session")
def planted(labelled) -> Texts:
    texts, labels = labelled
    return Texts("planted", "all", tuple(texts), labels=tuple(labels))


def verdict(done, name: str) -> Verdict:
    return done.verdicts[f"audit.{name}"].verdict


def value(done, name: str, **axes) -> float:
    [row] = done.result.select(name, **axes)
    return row.number


def test_a_model_that_attends_to_its_keyword_is_trusted(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["uniform", "idle", "finds", "agrees"])
    assert verdict(done, "idle") is Verdict.FAILS
    assert verdict(done, "finds") is Verdict.HOLDS
    assert verdict(done, "uniform") is Verdict.FAILS
    assert verdict(done, "agrees") is Verdict.HOLDS
    assert done.sentence.startswith("Trust the attention at cross")


def test_uniform_attention_has_entropy_1_and_finds_nothing(uniform, planted, tmp_path):
    done = audit(uniform, planted, out=tmp_path, only=["uniform", "idle", "finds"])
    assert value(done, "entropy", site="cross") == pytest.approx(1.0, abs=1e-6)
    assert verdict(done, "uniform") is Verdict.HOLDS
    assert verdict(done, "finds") is Verdict.FAILS
    assert value(done, "found_share", score="lexical_probe") > 0.99
    assert done.sentence.startswith("Do not trust the attention at cross")
    assert "finds 100 %" in done.sentence


def test_a_site_that_the_output_ignores_is_idle_exactly_and_replaceable(idle, planted, tmp_path):
    done = audit(idle, planted, out=tmp_path, only=["idle", "replaceable"])
    assert value(done, "changed", site="cross", rule="permuted") == 0.0
    assert value(done, "changed", site="cross", rule="uniform") == 0.0
    assert verdict(done, "idle") is Verdict.HOLDS
    assert value(done, "replaceable") == 1.0
    assert verdict(done, "replaceable") is Verdict.HOLDS


def test_a_copy_model_finds_its_alignment_and_its_right_head_is_named(reverse, parallel, tmp_path):
    sources, targets = parallel
    links = []
    for source in sources:
        length = len(source.split())
        links.append(frozenset((length - 1 - t, t) for t in range(length)))
    gold = Texts(
        "reversed",
        "all",
        tuple(sources),
        targets=tuple(targets),
        sure=tuple(links),
        possible=tuple(links),
    )
    done = audit(reverse, gold, out=tmp_path, only=["idle", "finds", "gold"])
    assert value(done, "accuracy") == 1.0
    assert value(done, "found_share", score="attention") >= 0.95
    assert verdict(done, "finds") is Verdict.HOLDS
    assert verdict(done, "gold") is Verdict.HOLDS
    [best] = done.result.select("gold_best_head")
    assert (best.axes["site"], best.axes["head"], best.value) == ("cross", 2, 0.0)
    shifted = value(done, "alignment_error", score="lexical_probe", reading="next row")
    assert value(done, "alignment_error", score="lexical_probe", reading="own row") < shifted


def test_two_models_of_the_same_weights_agree_entirely(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["stable"], against=[keyword])
    assert value(done, "stability", score="attention") == 1.0
    assert value(done, "stability", score="lexical_probe") == 1.0


def renumbered(module):
    """Return a model with the same words under other ids: what was word n is the nth from last."""
    other = type(module)(module.sharp)
    with torch.no_grad():
        other.embedding.weight[1:] = module.embedding.weight[1:].flip(0)
        other.output.weight.copy_(module.output.weight)
    return other


class Halves:
    """A tokeniser that cuts each word into two pieces: its number from the last, and ``##``."""

    def __call__(self, text, verbose):
        return {"input_ids": [piece for word in text.split() for piece in (40 - int(word), 1)]}

    def convert_ids_to_tokens(self, ids):
        return ["##" if each == 1 else str(each) for each in ids]


def test_models_are_compared_through_their_own_tokenisers(keyword, planted, tmp_path):
    def numbers(text):
        return [40 - int(word) for word in text.split()]

    for cut in (numbers, Halves()):  # other ids, other pieces
        rival = adapt(renumbered(keyword.module), tokenizer=cut)
        done = audit(keyword, planted, out=tmp_path, only=["stable"], against=[rival])
        assert value(done, "stability", score="attention") == 1.0
        assert value(done, "stability", score="lexical_probe") == 1.0


def test_models_that_read_other_words_are_not_compared(keyword, planted, tmp_path):
    rival = adapt(keyword.module, tokenizer=lambda text: [int(word) for word in text.split()][:-1])
    with pytest.raises(UsageError, match="cuts texts into other pieces"):
        audit(keyword, planted, out=tmp_path, only=["stable"], against=[rival])


def test_other_checkpoints_and_other_gold_links_are_another_audit(keyword, planted, tmp_path):
    from safetensors.torch import save_file

    folder = tmp_path / "models" / "checkpoint-5"
    folder.mkdir(parents=True)
    state = {name: value.clone() for name, value in keyword.module.state_dict().items()}
    found = [audit(keyword, planted, out=tmp_path, only=["stable"])]
    for scale in (1.0, 0.5):
        state["output.weight"] *= scale
        save_file(state, folder / "model.safetensors")
        settings = {"only": ["stable"], "checkpoints": tmp_path / "models"}
        found.append(audit(keyword, planted, out=tmp_path, **settings))
    assert len({each.folder for each in found}) == 3
    assert [len(each.result.pictures) for each in found] == [0, 3, 3]
    links = [(frozenset({(0, 0)}),), (frozenset({(0, 1)}),)]
    gold = [Texts("pair", "all", ("1 2",), targets=("2 1",), sure=e, possible=e) for e in links]
    assert gold[0].digest != gold[1].digest


def test_a_pass_that_is_not_the_models_own_on_the_texts_is_refused(keyword, planted, tmp_path):
    class Long(type(keyword.module)):
        """Other outputs under watch, for texts that are longer than those of the first pass."""

        def forward(self, ids):
            watched = torch.overrides._get_current_function_mode() is not None
            return super().forward(ids) * (2 if watched and ids.shape[1] > 8 else 1)

    model = adapt(Long(sharp=8.0), tokenizer=keyword.tokeniser.cut)
    with pytest.raises(MissingCapability, match="is not the model's own"):
        audit(model, planted, out=tmp_path, only=["uniform"])


def contents(folder) -> dict[str, bytes]:
    """Return every file of an audit; of its JSON files without the seconds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                content = re.sub(rb'"seconds": ?[0-9.]+', b'"seconds": 0', content)
            found[str(path.relative_to(folder))] = content
    return found


def test_a_killed_audit_resumes_to_the_same_bytes_but_for_its_seconds(
    keyword, planted, tmp_path, monkeypatch
):
    asked = ["uniform", "agrees", "finds"]
    whole = audit(keyword, planted, out=tmp_path / "whole", only=asked)

    def killed(subject):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(running.MEASURES, "agrees", killed)
        with pytest.raises(KeyboardInterrupt):
            audit(keyword, planted, out=tmp_path / "killed", only=asked)

    def never(subject):
        raise AssertionError("this question was measured already")

    monkeypatch.setitem(running.MEASURES, "uniform", never)
    monkeypatch.setitem(running.MEASURES, "finds", never)
    resumed = audit(keyword, planted, out=tmp_path / "killed", only=asked)
    assert contents(resumed.folder) == contents(whole.folder)
    assert "scores/lexical_probe.safetensors" in contents(whole.folder)
    spent = [read_json(each)["seconds"] for each in (resumed.folder / "questions").iterdir()]
    assert resumed.result.seconds == pytest.approx(sum(spent), abs=0.05)


def test_a_translators_scores_are_compared_with_ibm_model_1(reverse, parallel, tmp_path):
    # Every word is copied: after some sentences Model 1 knows each word's translation, itself.
    sources, targets = parallel
    texts = Texts("reversed", "all", tuple(sources), targets=tuple(targets))
    done = audit(reverse, texts, examples=30, out=tmp_path, only=["agrees"])
    assert value(done, "agreement_with_ibm1", score="leave_one_out") >= 0.95
    assert value(done, "agreement", score="ibm_model1") == value(
        done, "agreement_with_ibm1", score="attention"
    )
    assert "ibm_model1" in {file.stem for file in (done.folder / "scores").glob("*.safetensors")}
    text = export(done.folder, tmp_path / "scores.csv").read_text()
    assert '"ibm_model1",0,0,' in text


def test_the_map_of_agreement_names_the_head_that_the_output_reads(reverse, parallel, tmp_path):
    sources, targets = parallel
    texts = Texts("reversed", "all", tuple(sources), targets=tuple(targets))
    done = audit(reverse, texts, examples=30, out=tmp_path, only=["agrees"])
    [heads] = [each for each in done.result.pictures if each.name == "agreement_map"]
    [[idle, copying]] = heads.values
    assert (heads.rows, copying) == (("cross",), 1.0)
    assert idle < 0.5


def test_ibm_model_1_learns_from_all_pairs_that_the_sample_was_drawn_from(reverse, parallel):
    sources, targets = parallel
    texts = Texts("reversed", "all", tuple(sources), targets=tuple(targets)).sample(5, seed=0)
    assert len(texts.texts) == 5
    assert texts.study == tuple(zip(sources, targets, strict=True))


def test_a_classifier_is_not_compared_with_ibm_model_1(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["agrees"])
    assert not done.result.select("agreement_with_ibm1")


def test_other_weights_are_another_audit(keyword, graded, planted, tmp_path):
    folders = {audit(m, planted, out=tmp_path, only=["uniform"]).folder for m in (keyword, graded)}
    assert len(folders) == 2


def test_few_examples_give_no_verdict(keyword, planted, tmp_path):
    done = audit(keyword, planted, examples=20, out=tmp_path, only=["uniform", "idle"])
    assert {each.verdict for each in done.verdicts.values()} == {Verdict.UNDECIDED}
    assert done.sentence == "Undecided: 20 examples are fewer than 30."


def test_a_budget_takes_fewer_examples_and_says_so(keyword, planted, tmp_path):
    done = audit(keyword, planted, budget="0s", out=tmp_path, only=["uniform"])
    assert done.result.config["examples"] == 30
    assert any("The budget allows 30 of 60 examples." in notice for notice in done.notices)


def test_a_stopped_audit_goes_on_with_as_many_examples_as_its_budget_allowed(
    keyword, planted, tmp_path, monkeypatch
):
    settings = {"budget": "9s", "out": tmp_path, "only": ["uniform"]}
    for count in (40, 35):  # what is timed is never quite the same
        monkeypatch.setattr(prepare, "_affordable", lambda *_, count=count: count)
        done = audit(keyword, planted, **settings)
        assert done.result.config["examples"] == 40
    assert audit(keyword, planted, **settings | {"budget": "1m"}).folder != done.folder


@for_each("text", ["", "[]", "{}", '{"examples": "many"}', '{"examples": 0}'])
def test_a_damaged_note_of_a_budget_is_made_again(keyword, planted, tmp_path, text):
    settings = {"budget": "0s", "out": tmp_path, "only": ["uniform"]}
    done = audit(keyword, planted, **settings)
    (note,) = (tmp_path / "audits" / "budgets").glob("*.json")
    note.write_text(text)
    assert audit(keyword, planted, **settings).folder == done.folder
    assert note.read_text() != text


def test_notices_are_stored_with_the_result(keyword, planted, tmp_path):
    done = audit(keyword, planted, budget="0s", out=tmp_path, only=["uniform"])
    stored = read_json(done.folder / "result.json")["config"]["notices"]
    assert tuple(stored) == done.notices
    assert "The budget allows 30 of 60 examples." in stored


class Deaf(nn.Module):
    """Attends to its words, and says the same whatever it reads."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(60, 8)

    def forward(self, ids):
        states = self.embedding(ids)
        logits = states[..., 0].masked_fill(ids == 0, -1e9)
        context = (logits.softmax(-1).unsqueeze(1) @ states).squeeze(1)
        return 0 * context[:, :2] + torch.tensor([1.0, 0.0])


class Sunk(Deaf):
    """Attends to all words alike, and most of all to none of them."""

    def forward(self, ids):
        states = self.embedding(ids)
        logits = (0 * states[..., 0]).masked_fill(ids == 0, -1e9)
        sink = torch.full((len(ids), 1), 3.0)
        weights = torch.cat([logits, sink], -1).softmax(-1)[:, :-1]
        return (weights.unsqueeze(1) @ states).squeeze(1)[:, :2]


def test_what_a_sink_takes_is_no_part_of_the_entropy(planted, tmp_path):
    model = adapt(Sunk(), tokenizer=lambda text: [int(word) for word in text.split()])
    assert model.places[0].sinks == 1
    done = audit(model, planted, out=tmp_path, only=["uniform"])
    (entropy,) = done.result.select("entropy")
    assert entropy.value == pytest.approx(1.0)


def test_a_model_that_hears_nothing_agrees_with_nothing_and_nothing_is_found(planted, tmp_path):
    model = adapt(Deaf(), tokenizer=lambda text: [int(word) for word in text.split()])
    done = audit(model, planted, out=tmp_path, only=["finds", "agrees"])
    for row in done.result.select("agreement_above_chance"):
        if row.axes["score"] not in ("value_norm",):  # the others are the same at all words
            assert row.value == 0, row
    assert all(row.value is None for row in done.result.select("found_share"))
    assert {each.verdict for each in done.verdicts.values()} == {Verdict.UNDECIDED}
    assert any("Leave-one-out finds no more than chance" in notice for notice in done.notices)


def test_scores_that_are_read_together_are_those_read_apart_in_fewer_passes(
    reverse, parallel, monkeypatch
):
    sources, targets = parallel
    texts = Texts("reversed", "all", tuple(sources), targets=tuple(targets)).sample(20, seed=0)
    together, apart = (subject_of(reverse, texts, 0, torch.device("cpu")) for _ in range(2))
    passes = []
    run = reverse.trace
    monkeypatch.setattr(reverse, "trace", lambda *a, **k: passes.append(1) or run(*a, **k))
    shared = together.all_scores(together.rules)
    fewer = len(passes)
    for name in apart.rules:
        for one, other in zip(shared[name], apart.scores(name), strict=True):
            torch.testing.assert_close(one.values, other.values)
            assert one.input_mask.equal(other.input_mask)
    assert fewer < len(passes) - fewer
    assert together.scores("attention") is shared["attention"]


def test_a_model_at_chance_is_noticed(keyword, labelled, tmp_path):
    texts, _ = labelled
    wrong = Texts("planted", "all", tuple(texts), labels=tuple(n % 4 // 2 for n in range(60)))
    done = audit(keyword, wrong, out=tmp_path, only=["uniform"])
    assert any("has not learned" in notice for notice in done.notices)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"only": ["depends"]}, "There is no question 'depends'"),
        ({"budget": "soon"}, "budget='soon'"),
        ({"examples": 0}, "examples=0: an audit needs texts"),
        ({"examples": -3}, "examples=-3: an audit needs texts"),
        ({"device": "gpu"}, "No device 'gpu'; valid: auto, cpu, cuda"),
    ],
)
def test_a_wrong_setting_is_one_sentence(keyword, planted, tmp_path, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        audit(keyword, planted, out=tmp_path, **settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_one_sentence(keyword, planted, tmp_path):
    with pytest.raises(UsageError, match="No CUDA device was found"):
        audit(keyword, planted, out=tmp_path, device="cuda")


def test_an_answer_that_was_not_asked_for_is_not_given(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["uniform"])
    assert done.sentence == "Undecided: the answer takes both questions, idle and finds."
    done = audit(keyword, planted, out=tmp_path, only=["finds"])
    assert done.sentence.startswith("Undecided: the answer takes both questions")


@pytest.mark.parametrize(
    ("name", "lines", "sentence"),
    [
        ("some.tsv", "a b\tc d\ne f", "none for 'e f'"),
        ("some.tsv", "a b\t1\ne f", "none for 'e f'"),
        ("some.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}', "none for 'b'"),
        ("some.jsonl", "[1, 2]", "line 1: this is not a JSON object"),
    ],
)
def test_a_row_that_lacks_something_is_one_sentence(tmp_path, name, lines, sentence):
    (tmp_path / name).write_text(lines)
    with pytest.raises(CorpusError, match=sentence):
        read_texts(tmp_path / name)


def test_a_split_of_what_has_none_is_refused(tmp_path):
    (tmp_path / "some.tsv").write_text("a b\t1\n")
    with pytest.raises(UsageError, match="has no splits, and 'test' was asked for"):
        read_texts(tmp_path / "some.tsv", "test")


def test_texts_without_labels_are_refused_by_a_classifier(keyword, tmp_path):
    with pytest.raises(UsageError, match="has no labels"):
        audit(keyword, Texts("plain", "all", ("10 11 12", "13 14")), out=tmp_path)


def test_scores_are_exported_with_their_words(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["agrees"])
    lines = export(done.folder, tmp_path / "scores.csv").read_text().splitlines()
    assert lines[0] == '"score","example","t","output","l","input","value"'
    first = [line for line in lines if line.startswith('"attention",0,')]
    assert len(first) == len(planted.texts[0].split())
    assert [line.split(",")[5].strip('"') for line in first] == planted.texts[0].split()
    arrays = np.load(export(done.folder, tmp_path / "scores.npz"))
    assert len(arrays["value"]) == len(lines) - 1
    total = sum(float(line.split(",")[-1]) for line in first)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_parquet_has_the_rows_of_the_csv(keyword, planted, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done = audit(keyword, planted, out=tmp_path, only=["agrees"])
    with open(export(done.folder, tmp_path / "scores.csv"), newline="") as file:
        plain = list(csv.DictReader(file))
    rows = parquet.read_table(export(done.folder, tmp_path / "table", "parquet")).to_pylist()
    assert [{name: str(cell) for name, cell in row.items()} for row in rows] == plain
    with pytest.raises(UsageError, match="'xlsx' is not a format; valid"):
        export(done.folder, tmp_path / "scores.xlsx")


def test_without_pyarrow_one_sentence_names_the_extra(keyword, planted, tmp_path, monkeypatch):
    done = audit(keyword, planted, out=tmp_path, only=["agrees"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    sentence = r"needs pyarrow: pip install 'attnscope\[arrow\]'\.$"
    with pytest.raises(UsageError, match=sentence):
        export(done.folder, tmp_path / "scores.parquet")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    (tmp_path / "saved" / "data-00000-of-00001.arrow").write_bytes(b"")
    with pytest.raises(UsageError, match=sentence):
        read_texts(tmp_path / "saved")


def saved(folder, *tables) -> Path:
    """Write a data set as `datasets` does with save_to_disk: Arrow streams, their names, facts."""
    pyarrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{len(tables):05}.arrow" for n in range(len(tables))]
    for name, columns in zip(names, tables, strict=True):
        table = pyarrow.table(columns)
        with pyarrow.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    return folder


def test_a_saved_data_set_is_read_with_labels_translations_and_splits(tmp_path):
    shards = [{"sentence": ["a good film"], "label": [1]}, {"sentence": ["dull"], "label": [0]}]
    read = read_texts(saved(tmp_path / "reviews", *shards))
    assert (read.name, read.texts, read.labels) == ("reviews", ("a good film", "dull"), (1, 0))
    pairs = {"translation": [{"de": "ein Haus", "en": "a house"}]}
    read = read_texts(saved(tmp_path / "pairs", pairs))
    assert (read.texts, read.targets) == (("ein Haus",), ("a house",))
    for split in ("train", "validation"):
        saved(tmp_path / "split" / split, {"text": [split], "label": [0]})
    (tmp_path / "split" / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    read = read_texts(tmp_path / "split")
    assert (read.split, read.texts) == ("validation", ("validation",))
    assert read_texts(tmp_path / "split", "train").texts == ("train",)
    with pytest.raises(UsageError, match="has no split 'tset'"):
        read_texts(tmp_path / "split", "tset")


def test_a_saved_data_set_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"has no column 'text', .* but .'review'.*"):
        read_texts(saved(tmp_path / "other", {"review": ["fine"]}))
    with pytest.raises(UsageError, match=r"a label that is not a whole number: 0\.5"):
        read_texts(saved(tmp_path / "grades", {"text": ["fine"], "label": [0.5]}))
    folder = saved(tmp_path / "broken", {"text": ["fine"]})
    (folder / "data-00000-of-00001.arrow").write_bytes(b"no Arrow at all, but some bytes")
    with pytest.raises(UsageError, match="cannot be read as Arrow"):
        read_texts(folder)


def test_an_audit_is_plain_json(keyword, planted, tmp_path):
    done = audit(keyword, planted, out=tmp_path, only=["uniform"])
    again = json.loads(json.dumps(done.as_json()))
    assert again["verdicts"][0]["id"] == "audit.uniform"
    assert again["sentence"] == done.sentence


def test_every_question_has_a_claim_and_a_measure():
    assert {f"audit.{name}" for name in QUESTIONS} == CLAIMS.keys()
    assert set(QUESTIONS) == {*running.MEASURES, "stable"}


def test_files_of_texts_are_read(tmp_path):
    (tmp_path / "reviews.tsv").write_text("text\tlabel\na good film\t1\na bad one\t0\n")
    read = read_texts(tmp_path / "reviews.tsv")
    assert (read.name, read.texts, read.labels) == ("reviews", ("a good film", "a bad one"), (1, 0))
    (tmp_path / "pairs.jsonl").write_text('{"source": "ein Haus", "target": "a house"}\n')
    assert read_texts(tmp_path / "pairs.jsonl").targets == ("a house",)
    (tmp_path / "broken.jsonl").write_text('{"text": "fine", "label": 0}\nnot JSON\n')
    with pytest.raises(Exception, match=r"broken\.jsonl, line 2: this is not JSON"):
        read_texts(tmp_path / "broken.jsonl")
    with pytest.raises(UsageError, match="neither a file, a folder nor a known corpus"):
        read_texts("no-such-corpus")


def test_a_sample_is_even_and_always_the_same():
    texts = Texts("sorted", "all", tuple(map(str, range(100))), labels=(0,) * 50 + (1,) * 50)
    drawn = texts.sample(40, seed=0)
    assert drawn == texts.sample(40, seed=0)
    assert 10 < sum(drawn.labels) < 30
    assert [int(text) for text in drawn.texts] == list(drawn.ids)


def test_the_budget_is_read_in_seconds_minutes_and_hours():
    from attnscope.running.duration import seconds_of

    assert [seconds_of(each) for each in ("90", "90s", "5m", "1.5h")] == [90, 90, 300, 5400]


def test_checkpoints_of_another_shape_are_refused(keyword, planted, tmp_path):
    from safetensors.torch import save_file

    state = {name: value.clone() for name, value in keyword.module.state_dict().items()}
    for step in (10, 30):  # gaps are allowed
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file(state, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    done = audit(keyword, planted, out=tmp_path, only=["stable"], checkpoints=tmp_path)
    from attnscope.runs.result import Curve

    curve = done.result.picture(Curve, "agreement_with_last", score="attention")
    assert (curve.x, curve.y) == ((10, 30), (1.0, 1.0))
    state["output.weight"] = torch.zeros(3, 8)
    save_file(state, tmp_path / "checkpoint-30" / "model.safetensors")
    with pytest.raises(UsageError, match=r"is of another shape: output\.weight is \[3, 8\]"):
        audit(keyword, planted, out=tmp_path / "other", only=["stable"], checkpoints=tmp_path)
