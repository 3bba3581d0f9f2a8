"""The guide's code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "your-own-model.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs")
def test_the_guide_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = GUIDE.read_text(encoding="utf8")
    blocks = re.findall(r"(?<!-->\n)```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4
    names = {"__name__": "guide"}
    exec("\n".join(blocks), names)
    printed = capsys.readouterr().out
    assert "cross" in printed
    assert names["done"].sentence in printed
    assert (tmp_path / "runs" / "recorded" / "scores").is_dir()
