"""An installation without extras: what works without them, and what is said where it does not."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from attnscope import __version__
from attnscope.cli import app
from attnscope.errors import UsageError
from attnscope.report import page
from attnscope.training import Bleu


@pytest.fixture
def scripts(monkeypatch):
    """Scripts as a built package has them, and no vl-convert."""
    real = page._static
    monkeypatch.setattr(
        page, "_static", lambda name: "// vega" if name == "vega.js" else real(name)
    )
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    page._vega.cache_clear()
    yield
    page._vega.cache_clear()


@pytest.mark.usefixtures("scripts")
def test_demo_writes_a_report_of_the_shipped_translator_without_vl_convert(tmp_path):
    out = tmp_path / "demo.html"
    done = CliRunner().invoke(app, ["demo", "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.output.startswith(f"Report: {out}")
    content = out.read_text(encoding="utf-8")
    assert "// vega" in content
    assert "Kind" in content  # a word of the second sentence


def test_bleu_without_sacrebleu_names_the_extra_before_anything_is_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(UsageError, match=r"pip install 'attnscope\[bleu\]'"):
        Bleu().demand()


def test_version_is_printed():
    done = CliRunner().invoke(app, ["--version"], catch_exceptions=False)
    assert done.output == f"attnscope {__version__}\n"
