import pytest
from typer.testing import CliRunner

from attnscope.cli import app
from attnscope.cli_report import read_examples
from attnscope.errors import UsageError, WorkspaceError
from cases import for_each


def attnscope(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_writes_a_page_and_says_where(trained, tmp_path):
    done = attnscope("report", trained, "--out", tmp_path / "r.html", "--examples", "first:2")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith(f"Report: {tmp_path / 'r.html'} (")
    assert "</html>" in (tmp_path / "r.html").read_text(encoding="utf8")


def test_a_missing_folder_is_an_error_in_one_sentence(tmp_path):
    done = attnscope("report", tmp_path / "nowhere")
    assert isinstance(done.exception, WorkspaceError)
    assert "\n" not in str(done.exception)


@for_each(("text", "read"), [("", ([], None)), ("3,17", ([3, 17], None)), ("first:8", ([], 8))])
def test_examples_are_ids_or_a_number_of_them(text, read):
    assert read_examples(text) == read


@for_each("text", ["x", "first:0", "first:", "3,", "last:2"])
def test_other_examples_are_refused(text):
    with pytest.raises(UsageError, match="give ids, as in 3,17"):
        read_examples(text)
