"""From a user's rows to the page: two, six and fifty classes, parallel text, text without blanks.

Every corpus is generated here and trained on for a moment; what is tested is what is said about it.
"""

from __future__ import annotations

import io
import json
import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

from attnscope import load, run, write_corpus, write_report
from attnscope.claims.verdicts import deciding
from attnscope.claims.wording import plain_setting
from attnscope.clean import CleanStream
from attnscope.cli import app, claims
from attnscope.cli_show import value_text
from attnscope.data.text import open_text
from attnscope.errors import UsageError, WorkspaceError
from attnscope.own_text.corpora import about_corpora, only_own
from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.registry import find
from attnscope.recipes.snell import fig3, table5
from attnscope.recipes.snell.units import TextConfig, train_corpora
from attnscope.recipes.sunlu import scores
from attnscope.recipes.sunlu.corpora import demand_groups
from attnscope.recipes.tutek import table1, table2
from attnscope.report.page import request_of
from attnscope.report.payload import payload
from attnscope.running.naming import naming_of
from attnscope.running.run import read_config
from attnscope.runs.result import Measurement, Result, place_of
from attnscope.runs.spec import Settings
from attnscope.runs.workspace import read_results
from attnscope.terminal import CleanConsole, Lines, headline_table
from attnscope.training.engine.workers import Workers
from attnscope.training.progress import Silent
from cases import for_each

NEUTRAL = ("film", "plot", "scene", "actor", "camera", "music", "story", "town")
SNELL = {
    "seeds": 1,
    "embedding": 8,
    "hidden": 4,
    "steps": 12,
    "batch_size": 8,
    "examples": 40,
    "proxy_dimension": 4,
    "proxy_epochs": 1,
    "translation_hidden": 8,
    "translation_steps": 12,
    "pieces": 60,
}
SUNLU = {
    "seeds": 1,
    "dot_seeds": 1,
    "embedding": 4,
    "hidden": 4,
    "lstm_hidden": 2,
    "epochs": 1,
    "others": ("AD",),
    "penalty": 0.0,
}
TUTEK = {
    "vectors": "",
    "attention": "additive",
    "seeds": 1,
    "hidden": 4,
    "most_steps": 8,
    "deltas": 1,
    "etas": 1,
    "permutations": 2,
}


def labelled(classes: list[str], count: int, telling: int = 1) -> list[tuple[str, str]]:
    """Return texts of eight neutral words and one that tells the class."""
    drawn = random.Random(0)
    rows = []
    for place in range(count):
        label = classes[place % len(classes)]
        words = [drawn.choice(NEUTRAL) for _ in range(8)]
        words.insert(drawn.randrange(9), f"{label}{drawn.randrange(telling)}")
        rows.append((" ".join([*words, f"n{place % 50}"]), label))
    return rows


def without_blanks(count: int) -> list[tuple[str, str]]:
    drawn = random.Random(0)
    words = ("映画", "音楽", "俳優", "物語", "場面", "夜")
    rows = []
    for place in range(count):
        text = [drawn.choice(words) for _ in range(6)]
        text.insert(drawn.randrange(7), ("最低", "素晴")[place % 2])
        rows.append(("".join(text), ("bad", "good")[place % 2]))
    return rows


def parallel(count: int) -> list[tuple[str, str]]:
    drawn = random.Random(0)
    words = {"Haus": "house", "Hund": "dog", "Baum": "tree", "Kind": "child", "Buch": "book"}
    rows = []
    for _ in range(count):
        source = [drawn.choice(list(words)) for _ in range(drawn.randrange(3, 8))]
        rows.append((" ".join(source), " ".join(words[word] for word in reversed(source))))
    return rows


@dataclass(frozen=True)
class Journey:
    """A finished run and everything that was printed or shown of it."""

    folder: Path
    said: list[str]
    page: dict
    warned: list[str]


class Notes(Silent):
    """Progress that keeps its notes."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own")
    write_corpus(place / "two", labelled(["bad", "good"], 120, 3), validation=0.3)
    write_corpus(place / "six", labelled(list("abcdef"), 240, 2), validation=0.3)
    write_corpus(place / "fifty", labelled([f"c{n:02d}" for n in range(50)], 400), validation=0.3)
    write_corpus(place / "joined", without_blanks(120), validation=0.3)
    write_corpus(place / "pairs", parallel(120), languages=("de", "en"), validation=0.3)
    return place


RUNS = {
    "two": ("snell/table5", SNELL),
    "six": ("sunlu/scores", SUNLU | {"group_neutral": 0.9, "group_difference": 1000}),
    "fifty": ("tutek/table1", TUTEK),
    "joined": ("snell/table5", SNELL | {"tokens": "pieces-40"}),
    "pairs": ("snell/table5", SNELL),
}


@pytest.fixture(scope="module")
def journeys(folder: Path) -> dict[str, Journey]:
    made = {}
    for name, (recipe, settings) in RUNS.items():
        out, notes = folder / f"runs-{name}", Notes()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            given = settings | {"corpus": str(folder / name)}
            run(recipe, given, device="cpu", jobs=1, out=out, progress=notes)
            page = payload(request_of(out))
        told = [str(each.message) for each in warned if each.category is RuntimeWarning]
        made[name] = Journey(out, notes.said, page, told)
    return made


SYMBOL = re.compile(r"[αβγδΔξτ]|\b(?:alpha|beta|xi|A_random|f1_|nan|None|inf)\b|\(\)")


@for_each("name", list(RUNS))
def test_a_run_on_own_text_gets_sentences_with_numbers_and_no_raw_symbol(
    journeys: dict[str, Journey], name: str
) -> None:
    blocks = journeys[name].page["about"]
    assert [block["dataset"] for block in blocks] == [name]
    (block,) = blocks
    assert block["found"]
    assert block["means"]
    assert block["next"]
    said = " ".join([*block["warnings"], *block["found"], *block["means"], *block["next"]])
    assert re.search(r"\d+ %", said)
    assert not SYMBOL.search(said), said
    # The papers' claims fold away: nothing here is about their corpora.
    assert all(each["own"] for each in journeys[name].page["runs"])


@for_each("name", list(RUNS))
def test_no_number_is_undefined_and_no_figure_is_empty(
    journeys: dict[str, Journey], name: str
) -> None:
    assert journeys[name].warned == []
    (made,) = journeys[name].page["runs"]
    assert made["headline"] > 0
    assert all(row[3] is not None for row in made["rows"][: made["headline"]])
    drawings = list(journeys[name].folder.glob("*/*/*/figures/*.svg"))
    assert drawings
    for drawing in drawings:
        text = drawing.read_text()
        assert text.count("<path") > 5
        assert "NaN" not in text


@for_each("name", ["two", "joined", "pairs"])
def test_the_page_shows_the_words_of_the_corpus(
    journeys: dict[str, Journey], name: str, tmp_path: Path
) -> None:
    scene = journeys[name].page["scenes"][0]
    words = {word for example in scene["examples"] for word in example["inputs"]}
    telling = {"two": "film", "joined": "映", "pairs": "H"}[name]
    assert any(telling in word for word in words)
    assert "agreement is that of all" in scene["note"]
    page = write_report(journeys[name].folder, tmp_path / "page.html")
    assert page.stat().st_size > 50_000


class _Stops(Workers):
    """Workers that train nothing."""

    def train(self, *_: Any) -> NoReturn:
        raise KeyboardInterrupt


def test_text_without_blanks_is_warned_of_before_training(folder: Path) -> None:
    notes, config = Notes(), TextConfig(corpus=(str(folder / "joined"),))
    lab = Lab(_Stops(folder / "runs-none"), progress=notes)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_corpora(config, lab)
    (sentence,) = notes.said
    assert "100 % of the tokens are unknown, and the median text has 1 of them" in sentence
    assert "tokens=pieces" in sentence


def test_text_without_blanks_is_read_and_shown_in_pieces(journeys: dict[str, Journey]) -> None:
    assert journeys["joined"].said == []
    (block,) = journeys["joined"].page["about"]
    assert not any("tokens=pieces" in warning for warning in block["warnings"])
    (example, *_) = journeys["joined"].page["scenes"][0]["examples"]
    groups = [group for group in example["inputGroups"] if group >= 0]
    assert len(set(groups)) == len(groups) >= 5


def test_unknown_tokens_are_among_the_warnings_of_the_block(journeys: dict[str, Journey]) -> None:
    (result,) = read_results(journeys["two"].folder)
    rows = [
        row.model_copy(update={"value": 35.0}) if row.name == "unknown_share" else row
        for row in result.measurements
    ]
    (about,) = about_corpora(result.model_copy(update={"measurements": tuple(rows)}))
    assert about.warnings[0].startswith("35 % of the tokens are unknown")


def test_an_agreement_over_few_seeds_is_printed_between_0_and_100(
    journeys: dict[str, Journey],
) -> None:
    (result,) = read_results(journeys["two"].folder)
    rows = [
        row.model_copy(update={"low": -11.0, "high": 142.0})
        if row.name == "A(alpha,beta_uf)"
        else row
        for row in result.measurements
    ]
    (about,) = about_corpora(result.model_copy(update={"measurements": tuple(rows)}))
    assert "(0 to 100; chance" in " ".join(about.found)


def test_a_quick_run_says_how_to_train_longer(journeys: dict[str, Journey]) -> None:
    (result,) = read_results(journeys["two"].folder)
    (about,) = about_corpora(result)
    (quick,) = about_corpora(result.model_copy(update={"scale": "quick"}))
    assert "--budget 10m" in quick.next[0]
    assert quick.next[1:] == about.next


def test_words_of_a_quick_run_are_those_of_the_users_corpus(folder: Path) -> None:
    entry = find("aitken/fig4")
    own = read_config(entry, {"corpus": str(folder / "pairs")}, quick=True)
    assert own.asked == ()
    assert set(own.example.title().split()) <= {"Haus", "Hund", "Baum", "Kind", "Buch"}
    quick = read_config(entry, quick=True)
    assert quick.example == quick.sentence
    assert quick.asked == (("teacher", "Lehrer"), ("child", "Kind"), ("has", "hat"))
    given = read_config(entry, {"corpus": str(folder / "pairs"), "sentence": "Haus"}, quick=True)
    assert given.example == "Haus"


def test_a_setting_is_shown_as_the_command_line_takes_it() -> None:
    entry = find("aitken/fig4")
    quick = read_config(entry, quick=True)
    shown = value_text(quick.dictionary)
    assert read_config(entry, {"dictionary": shown}).dictionary == quick.dictionary
    assert plain_setting([["teacher", "Lehrer"], ["has", "hat"]]) == "teacher=Lehrer,has=hat"


def test_pieces_give_a_text_back(folder: Path) -> None:
    source = open_text(folder / "joined", classification={"tokens": "pieces-40"})
    text = without_blanks(1)[0][0]
    words = source.input_words.decode(source.encode(text))
    assert words[0] == "<bos>"
    assert words[-1] == "<eos>"
    assert "".join(words[1:-1]).replace("▁", "") == text
    with pytest.raises(UsageError, match="No tokeniser 'peices'"):
        run("snell/table5", SNELL | {"tokens": "peices"})


@for_each(("name", "group"), [("six", "neutral"), ("fifty", "c00")])
def test_an_empty_group_is_one_sentence_before_anything_is_trained(
    folder: Path, name: str, group: str
) -> None:
    given, out = SUNLU | {"corpus": str(folder / name)}, folder / f"refused-{name}"
    with pytest.raises(UsageError, match=f"no word is in the group '{group}'") as refused:
        run("sunlu/scores", given, device="cpu", jobs=1, out=out)
    assert not (out / "units").exists()
    offered = dict(re.findall(r"(group_\w+)=([\d.e+-]+)", str(refused.value).partition(";")[2]))
    assert offered
    demand_groups(scores.Config(**given, **offered))


def test_a_model_that_learned_nothing_is_said_to_have_learned_nothing(
    journeys: dict[str, Journey],
) -> None:
    """Twelve steps of four units: at the majority, whatever its attention agrees with."""
    (block,) = journeys["two"].page["about"]
    assert "most frequent label" in block["warnings"][0]
    assert "nothing follows" in block["means"][0]
    rows = {row[0]: row[3] for row in journeys["two"].page["runs"][0]["rows"]}
    # Three words tell each label of 120 texts: a regression on counts finds them all.
    assert rows["bag_of_words"] == 100
    assert 40 < rows["majority"] < 62


def test_a_translator_that_learned_nothing_is_compared_with_the_previous_token(
    journeys: dict[str, Journey], folder: Path
) -> None:
    (result,) = read_results(journeys["pairs"].folder)
    (row,) = result.select("previous_token")
    source = open_text(folder / "pairs", translation={"pieces": SNELL["pieces"]})
    counts: Counter[tuple[int, int]] = Counter()
    for example in source.training_examples:
        counts.update(zip(example.decoder_inputs, example.targets, strict=True))
    right = total = 0
    for example in source.validation_examples:
        for before, token in zip(example.decoder_inputs, example.targets, strict=True):
            after = {t: (n, -t) for (b, t), n in counts.items() if b == before}
            right += max(after, key=after.get) == token if after else False
            total += 1
    assert row.n == total
    assert row.value == pytest.approx(100 * right / total)
    (block,) = journeys["pairs"].page["about"]
    assert "each token from the one before it" in block["warnings"][0]
    assert "nothing follows" in block["means"][0]
    rows = [each for each in result.measurements if each.name != "accuracy"]
    better = result.select("accuracy")[0].model_copy(update={"value": row.value + 1})
    (about,) = about_corpora(result.model_copy(update={"measurements": (*rows, better)}))
    assert about.warnings == ()


def test_attention_that_finds_no_more_links_than_the_diagonal_is_warned_of(
    journeys: dict[str, Journey],
) -> None:
    (result,) = read_results(journeys["pairs"].folder)

    def warnings_of(**errors: float) -> tuple[str, ...]:
        rows = tuple(
            Measurement(name="aer", dataset="mine", axes={"method": name}, value=value, n=10)
            for name, value in errors.items()
        )
        given = {"recipe": "snell/alignment", "measurements": rows}
        (about,) = about_corpora(result.model_copy(update=given))
        return about.warnings

    (warning,) = warnings_of(diagonal=0.5, attention=0.6)
    assert "no better than the diagonal" in warning
    assert warnings_of(diagonal=0.5, attention=0.4) == ()


def place(recipe: str, config: Settings, **options: Any) -> str:
    named = naming_of(config, **options)
    return place_of(recipe, named.part, named.variant)


def test_settings_that_are_not_the_defaults_have_a_place_and_a_scale_of_their_own() -> None:
    quick = fig3.Config(**fig3.QUICK)
    assert place("snell/fig3", fig3.Config()) == "snell/fig3"
    assert naming_of(fig3.Config()).scale == "full"
    assert place("snell/fig3", quick, quick=fig3.QUICK) == "snell/fig3/quick"
    assert naming_of(quick, fig3.QUICK).scale == "quick"
    changed = naming_of(fig3.Config(steps=7))
    assert (changed.scale, changed.changed) == ("changed", {"steps": 7})
    places = {
        place("snell/fig3", fig3.Config()),
        place("snell/fig3", fig3.Config(steps=7)),
        place("snell/fig3", fig3.Config(steps=8)),
        place("snell/fig3", fig3.Config(steps=8), name="mine"),
        place("snell/fig3", fig3.Config(seeds=3)),
        place("snell/fig3", quick, quick=fig3.QUICK),
        place("snell/fig3", quick.model_copy(update={"steps": 7}), quick=fig3.QUICK),
        place("snell/fig3", quick),
    }
    assert len(places) == 8
    assert "snell/fig3/mine" in places


def test_what_the_papers_have_keeps_its_place_with_every_corpus() -> None:
    """The folders of the reference results."""
    assert place("snell/table5", table5.Config(corpus="sst")) == "snell/table5/sst"
    assert naming_of(table5.Config(corpus="sst")).scale == "full"
    instance = table1.Config(corpus="tutek-sst", query="instance")
    assert place("tutek/table1", instance) == "tutek/table1/tutek-sst+instance"
    dot = table2.Config(corpus="tutek-sst", attention="dot")
    assert place("tutek/table2", dot) == "tutek/table2/tutek-sst+dot"


def test_two_folders_of_one_name_keep_their_places(folder: Path, tmp_path: Path) -> None:
    other = write_corpus(tmp_path / "two", labelled(["x", "y"], 40), validation=0.3)
    corpora = [str(folder / "two"), str(other), f"{other}/../two"]
    first, second, again = (table5.Config(corpus=name).part for name in corpora)
    assert first != second == again
    assert first.startswith("two-")


def test_a_name_is_never_that_of_other_settings(tmp_path: Path) -> None:
    shared = {"environment": {}, "seconds": 1.0, "measurements": ()}
    there = Result(recipe="snell/fig3", variant="mine", scale="full", config={}, **shared)
    there.write(tmp_path / there.place)
    with pytest.raises(WorkspaceError, match="another --name"):
        run("snell/fig3", out=tmp_path, name="mine")
    for name in ("../x", ".hidden", "a/b", ""):
        with pytest.raises(UsageError, match="--name"):
            run("snell/fig3", out=tmp_path, name=name)


def test_the_run_at_the_defaults_decides_then_the_one_with_the_fewest_changes(
    journeys: dict[str, Journey],
) -> None:
    (one,) = read_results(journeys["two"].folder)
    assert only_own(one)
    default = one.model_copy(update={"changed": {}, "scale": "full"})
    more = one.model_copy(update={"changed": {"steps": 5, "hidden": 2}})
    fewer = one.model_copy(update={"changed": {"steps": 6}})
    seeds = one.model_copy(update={"changed": {"steps": 6, "seeds": 2}})
    assert deciding([default, more, fewer]) == (default,)
    assert deciding([fewer, more]) == (fewer,)
    assert deciding([fewer, more, seeds]) == (fewer, seeds)  # runs of other seeds are pooled
    other = fewer.model_copy(update={"changed": {"steps": 7}})
    assert deciding([fewer, other]) == (other,)  # of as many changes the latest
    elsewhere = more.model_copy(update={"part": "other"})
    assert deciding([default, elsewhere]) == (default, elsewhere)


def test_the_terminal_prints_the_block_and_not_the_papers_claims(
    folder: Path, journeys: dict[str, Journey]
) -> None:
    settings = [f"{key}={value}" for key, value in SNELL.items()]
    command = ["run", "snell/table5", f"corpus={folder / 'two'}", *settings, "--jobs", "1"]
    out = str(journeys["two"].folder)
    printed = CliRunner().invoke(app, [*command, "--device", "cpu", "--out", out]).stdout
    assert "About two" in printed
    assert "The model is right in" in printed
    assert "claims of the papers are about the papers' corpora" in " ".join(printed.split())
    assert "undecided" not in printed
    assert "Scale: changed (seeds=1" in printed
    assert json.loads(next(Path(out).glob("*/*/*/result.json")).read_text())["changed"]["steps"]


def test_claims_without_a_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="There is no result in"):
        claims([tmp_path])


@for_each("sentence", ["", "   ", "..."])
def test_a_sentence_without_words_is_one_sentence(
    journeys: dict[str, Journey], sentence: str
) -> None:
    (unit, *_) = [
        path for path in (journeys["two"].folder / "units").iterdir() if "classifier" in path.name
    ]
    with pytest.raises(UsageError, match="no word in the sentence"):
        load(unit).score("attention", sentence)


def test_a_printed_row_names_its_step_and_its_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    found = {"at": 150, "runs": "3 x 1"}
    row = Measurement(name="A", dataset="mine", value=1.0, n=1, found=found)
    CleanConsole().print(headline_table([row], "a table"))
    assert "step 150, 3 x 1 runs" in capsys.readouterr().out


def test_the_time_left_is_printed_in_words_and_not_after_the_first_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 100.0, 300.0, 500.0])
    monkeypatch.setattr("attnscope.terminal.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    lines = Lines(CleanStream(stream))
    lines.begin("text", 2, 1000, 0)
    for steps in (1, 10, 90):
        lines.advance(steps)
    _, first, second, third = stream.getvalue().splitlines()
    assert first.endswith("1/1000 steps, 0/2 units")
    assert second.endswith(" steps/s")
    assert third.endswith(", about 60 min left")


def test_steps_of_a_resumed_unit_do_not_make_the_rest_look_fast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 40.0, 140.0])
    monkeypatch.setattr("attnscope.terminal.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    lines = Lines(CleanStream(stream))
    lines.begin("text", 2, 1000, 0)
    lines.advance(800)
    lines.advance(100)
    assert stream.getvalue().splitlines()[-1].endswith(" 1.0 steps/s, about 2 min left")


def test_the_page_names_each_measurement_in_words_with_its_symbol(
    journeys: dict[str, Journey],
) -> None:
    page = journeys["two"].page
    names = page["symbols"]["snell/table5"]
    assert names["A(alpha,beta_uf)"][0] == "attention and uniform probe, A(α, βᵘᶠ)"
    bare = [label for label, _ in names.values() if not re.match(r"[a-zA-Z0-9]{2}", label)]
    assert bare == []
    found = {row[0]: row[-1] for row in page["runs"][0]["rows"]}
    assert re.match(r"step \d+, \d x \d runs", found["A(alpha,beta_uf)"])
