"""Audits of models whose answers are known in advance."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from attnscope.claims.decide import Verdict
from attnscope.errors import UsageError
from attnscope.recipes.audit import running
from attnscope.recipes.audit.claims import CLAIMS, QUESTIONS
from attnscope.recipes.audit.running import audit
from attnscope.recipes.audit.stored import export
from attnscope.recipes.audit.texts import Texts, read_texts


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


def test_a_killed_audit_resumes_with_the_next_question_to_the_same_numbers(
    keyword, planted, tmp_path, monkeypatch
):
    whole = audit(keyword, planted, out=tmp_path / "whole", only=["uniform", "idle"])

    def killed(subject):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(running.MEASURES, "idle", killed)
        with pytest.raises(KeyboardInterrupt):
            audit(keyword, planted, out=tmp_path / "killed", only=["uniform", "idle"])

    def never(subject):
        raise AssertionError("this question was measured already")

    monkeypatch.setitem(running.MEASURES, "uniform", never)
    resumed = audit(keyword, planted, out=tmp_path / "killed", only=["uniform", "idle"])
    assert resumed.result.measurements == whole.result.measurements
    assert resumed.result.pictures == whole.result.pictures
    for name in ("uniform", "idle"):
        files = [each.folder / "questions" / f"{name}.json" for each in (whole, resumed)]
        assert files[0].read_bytes() == files[1].read_bytes()


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
    ],
)
def test_a_wrong_setting_is_one_sentence(keyword, planted, tmp_path, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        audit(keyword, planted, out=tmp_path, **settings)


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
    from attnscope.recipes.kit.duration import seconds_of

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
