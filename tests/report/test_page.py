import base64
import hashlib
import json
import re
from importlib.resources import files

import pytest
from hypothesis import given, strategies as st

from attnscope import write_report
from attnscope.figures import palette
from attnscope.report.page import MODULES, as_data, bundle, html, policy

VALUE = {"attnscope": "0", "word": "</script><script>alert(1)</script><!--"}


def blocks(page, tag):
    return re.findall(rf"<{tag}([^>]*)>(.*?)</{tag}>", page, re.DOTALL)


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_data_comes_back_and_cannot_end_its_block(value):
    text = as_data(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029\x00")
    assert text.isascii()


def test_a_lone_surrogate_can_be_written():
    assert json.loads(as_data("\ud800")) == "\ud800"
    as_data("\ud800").encode()


def test_a_hostile_word_leaves_the_number_of_scripts_as_it_is():
    assert len(blocks(html(VALUE), "script")) == len(blocks(html({}), "script")) == 3


def test_the_policy_names_the_scripts_and_the_style_and_no_others():
    page = html(VALUE)
    (_, style), scripts = blocks(page, "style")[0], blocks(page, "script")
    data, vega, own = (text for _, text in scripts)
    assert json.loads(data) == VALUE
    allowed = policy()
    assert f"script-src {digest(own)} {digest(vega)};" in allowed
    assert f"style-src {digest(style)};" in allowed
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed


def test_a_file_may_not_connect_anywhere_and_a_served_page_only_to_its_server():
    assert "connect-src 'none'" in policy()
    assert "connect-src 'self'" in policy(live=True)
    assert "data-live" in html({}, live=True)
    assert '<html lang="en" data-live>' not in html({})


def test_nothing_in_the_page_asks_for_another_file():
    page = re.sub(r"<script.*?</script>", "", html({}), flags=re.DOTALL)
    assert not re.search(r"\b(src|href)\s*=\s*[\"'](?!#)", page)
    assert "url(" not in page
    assert "@import" not in page


def test_every_module_is_in_the_bundle_and_nothing_else_lies_there():
    static = files("attnscope.report").joinpath("static")
    names = sorted(entry.name for entry in static.iterdir() if entry.name.endswith(".js"))
    assert sorted({*names} - {"vega.js"}) == sorted(MODULES)  # which a build writes
    assert not re.search(r"^(import|export)\b", bundle(), re.MULTILINE)


def test_modules_import_only_earlier_ones_and_share_no_name():
    static, seen, declared = files("attnscope.report").joinpath("static"), set(), []
    for name in MODULES:
        text = static.joinpath(name).read_text()
        assert set(re.findall(r'from "\./([\w.]+)"', text)) <= seen
        for imported, origin in re.findall(r'import \{([^}]*)\} from "\./([\w.]+)"', text):
            exports = re.findall(
                r"^export (?:async )?(?:function|const|class) (\w+)",
                static.joinpath(origin).read_text(),
                re.MULTILINE,
            )
            assert {each.strip() for each in imported.split(",")} <= set(exports), name
        seen.add(name)
        declared += re.findall(
            r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE
        )
    assert len(declared) == len(set(declared))


def test_no_module_makes_markup_or_code_from_text():
    text = bundle()
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in text


@pytest.mark.parametrize("folders", ["one", "several"])
def test_a_report_is_one_file(trained, tmp_path, folders):
    given = trained if folders == "one" else [trained, trained / "snell" / "fig3"]
    path = write_report(given, tmp_path / "deep" / "report.html")
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]
    assert path.stat().st_size < 10_000_000


def test_the_colours_that_the_scripts_know_are_those_of_the_palette():
    script = bundle()
    assert f'const AGAINST = ["{palette.AGAINST}", "{palette.ON_DARK["against"]}"];' in script
    assert f'const GOLD = "{palette.SCORES["gold"]}";' in script
    assert palette.ON_DARK["gold"] == palette.SCORES["gold"]
