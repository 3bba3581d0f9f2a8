"""Names, labels and folders of others never reach the terminal as control characters or markup."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope.clean import CleanStream, clean
from attnscope.runs.result import Measurement
from attnscope.terminal import CleanConsole, headline_table
from command import Done, attnscope, python

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m[red]x[/red][/nope] :smile: \u202edlrow\r\ud800"


def test_every_control_character_is_an_escape():
    shown = clean("".join(map(chr, range(0x20))) + "\x7f\x80\x9b\x9f\u202e\u2066\ufeff\ud800")
    assert all(char.isprintable() or char in "\t\n" for char in shown)
    assert clean("β → ü ﷽ \u200d") == "β → ü ﷽ \u200d"


def test_tables_print_hostile_names_as_they_are(monkeypatch, capsys):
    row = Measurement(name=HOSTILE, dataset=HOSTILE, axes={HOSTILE: HOSTILE}, value=1.0, n=1)
    CleanConsole().print(headline_table([row], HOSTILE))
    printed = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert "[red]" in printed
    assert ":smile:" in printed


def test_stream_prints_what_its_encoding_lacks_as_question_marks():
    raw = io.BytesIO()
    stream = CleanStream(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("β \x1b[31m\n")
    stream.flush()
    assert raw.getvalue() == b"? \\x1b[31m\n"


@pytest.fixture
def workspace(tmp_path) -> Path:
    row = {"name": HOSTILE, "dataset": HOSTILE, "value": 1.0, "n": 1}
    result = {
        "schema": 1, "recipe": f"snell/{HOSTILE}", "scale": "full", "config": {HOSTILE: HOSTILE},
        "environment": {}, "seconds": 1, "measurements": [row],
    }  # fmt: skip
    place = tmp_path / "runs" / "snell" / "fig3"
    place.mkdir(parents=True)
    (place / "result.json").write_text(json.dumps(result))
    return tmp_path / "runs"


@pytest.mark.parametrize("encoding", ["utf8", "ascii"])
def test_commands_print_nothing_that_moves_a_cursor(workspace, tmp_path, encoding):
    folder = tmp_path / "evil\x1b[31m\udcff"
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"labels": [HOSTILE, HOSTILE]}))
    for words in (
        ["claims", str(workspace)],
        ["data", "check", os.fsdecode(os.fsencode(folder))],
        ["data", "check", HOSTILE.replace("\ud800", "")],
        ["report", str(folder / "nothing")],
    ):
        assert_clean(attnscope(*words, encoding=encoding))
    if encoding == "ascii":
        environment = {"PYTHONIOENCODING": encoding}
        assert_clean(python("-m", "attnscope", "claims", str(workspace), **environment))


def assert_clean(done: Done) -> None:
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert all(char.isprintable() or char == "\n" for char in printed), done.args
    assert printed.strip()


def test_output_that_nobody_reads_ends_quietly():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "attnscope", "list"], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
