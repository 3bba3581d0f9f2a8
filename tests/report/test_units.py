import json
from pathlib import Path

from attnscope.report.units import Candidate, chosen, labels, read_candidate
from cases import for_each


def candidate(seed=0, scores=("attention",), **model):
    training = {
        "attention": {},
        "scores": [{"kind": score} for score in scores],
        "final_scores": [],
    }
    config = {"source": {}, "model": {"kind": "seq2seq", **model}, "training": training}
    return Candidate(Path(f"unit-{seed}-{sorted(model.items())}"), config | {"seed": seed})


def test_few_units_are_followed_whatever_their_number():
    many = [candidate(seed, hidden=hidden) for seed in range(20) for hidden in range(20)]
    assert len(chosen(many)) == 6
    assert chosen(many) == chosen(many[::-1])


def test_every_kind_is_followed_before_a_second_seed():
    units = [candidate(seed, cell=cell) for seed in range(5) for cell in ("gru", "lstm", "tanh")]
    cells = sorted(unit.config["model"]["cell"] for unit in chosen(units))
    assert cells == ["gru", "gru", "lstm", "lstm", "tanh", "tanh"]


def test_the_unit_with_most_scores_comes_first():
    units = [candidate(0), candidate(7, scores=("attention", "lexical_probe"))]
    assert [unit.config["seed"] for unit in chosen(units)] == [7, 0]


def test_seeds_alone_are_told_by_their_seeds():
    two = labels([candidate(0, hidden=4), candidate(1, hidden=4)])
    assert two == ["model, seed 0", "model, seed 1"]


def test_units_are_named_by_what_they_are():
    uniform, proxy = candidate(12), candidate(0)
    uniform.config["training"]["attention"] = {"cross": {"kind": "uniform"}}
    proxy.config["model"]["kind"] = "proxy"
    assert labels([candidate(20), uniform, proxy]) == [
        "model",
        "model with uniform attention",
        "bag-of-words proxy",
    ]


def test_as_few_settings_as_tell_units_apart_are_told():
    units = [
        candidate(0, cell="gru", hidden=4, layers=1),
        candidate(0, cell="gru", hidden=8, layers=2),
        candidate(0, cell="lstm", hidden=4, layers=1),
    ]
    told = labels(units)
    assert len(set(told)) == 3
    assert told[0] == "model, cell gru, hidden 4"
    assert not any("layers" in label for label in told)


@for_each("config", [[], {}, {"model": 3}, {"model": {}, "training": {}}, None])
def test_a_foreign_configuration_is_a_notice(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    notices = []
    assert read_candidate(tmp_path, notices) is None
    assert notices == [f"{tmp_path} is not a unit of this version: it is left out."]


def test_a_unit_that_has_not_stored_anything_yet_is_no_notice(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(candidate().config))
    notices = []
    assert read_candidate(tmp_path, notices) is None
    assert notices == []
