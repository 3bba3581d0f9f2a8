"""What a reader does with a report: look, sort, move through training, search, print."""

import re

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

TABS = ("overview", "attention", "trajectories")
MARK = [179, 55, 10]


def marked_pixels(page):
    """Return how many pixels of each map have the colour of the mark."""
    return page.evaluate(
        """(mark) => [...document.querySelectorAll(".maps canvas")].map((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 0; i < data.length; i += 4)
            count += mark.every((value, channel) => data[i + channel] === value);
          return count;
        })""",
        MARK,
    )


def pictures(page):
    return page.evaluate(
        '[...document.querySelectorAll(".maps canvas")].map((canvas) => canvas.toDataURL())'
    )


def show_translation(page):
    page.select_option("#scene", label="grammar-translation")
    expect(page.locator(".maps canvas")).to_have_count(3)  # attention, probe, IBM Model 1


def test_a_report_asks_no_network_and_says_nothing(opened, report):
    watched = opened()
    watched.page.context.set_offline(True)
    page = watched.open(report)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        expect(page.locator(f"#{tab}")).to_be_visible()
    expect(page.locator("#trajectories canvas").first).to_be_visible()
    assert watched.asked == []
    assert watched.said == []


def test_the_time_to_the_first_view_is_measured_and_printed(opened, report):
    page = opened().open(report)
    expect(page.locator("#footer")).to_contain_text(re.compile(r"First view after [\d.]+ s"))
    print(f"{page.inner_text('#footer')} {report.stat().st_size / 1e6:.2f} MB on disk")


def test_the_overview_says_what_was_asked_and_found(opened, report):
    page = opened().open(report)
    article = page.locator("#recipe-snell-fig3")
    expect(article).to_contain_text("Copying permutations fails for some seeds")
    expect(article.locator(".claim").first).to_contain_text("snell.permutation-copy")
    expect(article.locator(".claim .chip").first).to_contain_text("quick, would say:")


def test_a_figure_is_shown_and_downloaded(opened, report):
    page = opened().open(report)
    image = page.locator("#recipe-snell-fig3 figure img")
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("naturalWidth", 90)
    with page.expect_download() as download:
        page.locator("#recipe-snell-fig3 figure a").click()
    assert download.value.suggested_filename == "one.svg"
    assert download.value.path().read_text().startswith("<svg")


def test_a_table_sorts_by_pointer_and_by_keyboard(opened, report):
    page = opened().open(report)
    table = page.locator("#recipe-snell-fig3 table").first
    values = table.locator("tbody tr td:nth-child(4)")
    head = table.locator("th", has_text="value")
    expect(values).to_have_text(["30", "4", "200", "–"])
    head.get_by_role("button").click()
    expect(values).to_have_text(["4", "30", "200", "–"])
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(values).to_have_text(["200", "30", "4", "–"])
    table.locator("th", has_text="data set").get_by_role("button").click()
    expect(table.locator("tbody tr td:nth-child(2)")).to_have_text(["a", "b", "c", "d"])


def test_a_table_is_copied_as_csv(opened, report):
    page = opened(permissions=["clipboard-read", "clipboard-write"]).open(report)
    page.locator("#recipe-snell-fig3 .copy").first.click()
    expect(page.locator("#recipe-snell-fig3 .said").first).to_have_text("4 rows copied.")
    lines = page.evaluate("navigator.clipboard.readText()").split("\n")
    assert lines[0] == "measured,data set,of,value,95 % interval,paper,n,seeds"
    assert lines[1] == "seeds_learned,b,,30,,,4,1"


def test_the_slider_moves_through_training(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    expect(page.locator(".step")).to_have_text("step 2,000 of 2,000")
    last = pictures(page)
    page.locator("#step").fill("0")
    expect(page.locator(".step")).to_have_text("step 0 of 2,000")
    expect(page.locator(".maps figcaption").first).to_contain_text("step 0")
    first = pictures(page)
    assert [a == b for a, b in zip(first, last, strict=True)] == [False, False, True]


def test_the_slider_moves_by_keyboard(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    page.focus("#step")
    for key, step in (("Home", "0"), ("ArrowRight", "10"), ("ArrowRight", "20"), ("End", "2,000")):
        page.keyboard.press(key)
        expect(page.locator(".step")).to_have_text(f"step {step} of 2,000")
    expect(page.locator("#step")).to_have_attribute("aria-valuetext", "step 2,000")


def test_play_runs_through_the_steps_and_stops_at_the_end(opened, report):
    watched = opened()
    watched.page.clock.install(time=0)
    page = watched.open(report, "attention")
    show_translation(page)
    # An hour after the start, far beyond this test's own time; it stands still from here on.
    page.clock.pause_at(3_600_000)
    page.click("#play")
    expect(page.locator(".step")).to_have_text("step 0 of 2,000")
    expect(page.locator("#play")).to_have_text("⏸ Pause")
    page.clock.run_for(1300)
    expect(page.locator(".step")).to_have_text("step 20 of 2,000")
    page.clock.run_for(20_000)
    expect(page.locator(".step")).to_have_text("step 2,000 of 2,000")
    expect(page.locator("#play")).to_have_text("▶ Play")


def test_pointing_at_a_cell_marks_it_in_all_maps_and_tells_every_score(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    assert marked_pixels(page) == [0, 0, 0]
    box = page.locator(".maps canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert all(count > 0 for count in marked_pixels(page))
    for place in ("#tip", ".readout"):
        told = page.locator(place)
        expect(told.locator(".pair")).to_contain_text("←")
        for score in ("α attention", "β lexical probe", "IBM Model 1"):
            expect(told).to_contain_text(score)


def test_the_marked_cell_is_the_pair_of_words_that_is_told(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    inputs = page.locator(".sentences p").first.locator("bdi").all_inner_texts()
    outputs = page.locator(".sentences p").nth(1).locator("bdi").all_inner_texts()
    page.focus(".maps")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".readout .pair")).to_have_text(f"{outputs[0]} ← {inputs[0]}")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".readout .pair")).to_have_text(f"{outputs[1]} ← {inputs[1]}")
    assert all(count > 0 for count in marked_pixels(page))
    page.keyboard.press(",")
    expect(page.locator(".step")).to_have_text("step 1,500 of 2,000")


def test_the_curves_follow_the_slider(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    chart = page.locator(".curves canvas")
    expect(chart).to_be_visible()
    before = chart.evaluate("(canvas) => canvas.toDataURL()")
    page.locator("#step").fill("3")
    expect(page.locator(".step")).to_have_text("step 50 of 2,000")
    assert _eventually_other(page, chart, before)


def _eventually_other(page, chart, before):
    return chart.evaluate(
        """(canvas, before) => new Promise((resolve) => {
          let left = 100;
          const look = () => {
            if (canvas.toDataURL() !== before) resolve(true);
            else if (left-- > 0) requestAnimationFrame(look);
            else resolve(false);
          };
          look();
        })""",
        before,
    )


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_every_map_fits_its_column(opened, report, width):
    page = opened(width=width).open(report, "attention")
    show_translation(page)
    for index in range(page.locator("#example option").count()):
        page.select_option("#example", str(index))
        rooms = page.evaluate(
            """() => [...document.querySelectorAll(".maps canvas")].map((canvas) =>
              [canvas.clientWidth, canvas.parentElement.clientWidth])"""
        )
        assert all(drawn <= room for drawn, room in rooms), (index, rooms)


def test_classification_has_one_row_a_score_and_a_line(opened, report):
    page = opened().open(report, "attention")
    page.select_option("#scene", label="grammar-sentiment")
    expect(page.locator(".maps canvas")).to_have_count(1)
    expect(page.locator(".maps figcaption")).to_contain_text("The line above the words is β")
    page.locator(".maps canvas").hover()
    expect(page.locator(".readout")).to_contain_text("β lexical probe")


def test_another_example_shows_other_words(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    first = page.inner_text(".sentences")
    page.select_option("#example", "1")
    expect(page.locator(".sentences")).not_to_have_text(first)


def test_a_word_is_found_among_the_points(opened, report):
    page = opened().open(report, "trajectories")
    page.select_option("#plane-name", "input components")
    chart = page.locator("#trajectories canvas")
    expect(chart).to_have_count(1)
    page.wait_for_load_state()
    page.fill("#search", "TWICE")
    expect(page.locator("#trajectories .said")).to_have_text("2 points found")
    before = chart.evaluate("(canvas) => canvas.toDataURL()")
    page.fill("#search", "left")
    expect(page.locator("#trajectories .said")).to_have_text("1 point found")
    assert _eventually_other(page, chart, before)


def test_light_and_dark_follow_the_system_and_the_button(opened, report):
    paper = "getComputedStyle(document.body).backgroundColor"
    page = opened(color_scheme="dark").open(report, "attention")
    show_translation(page)
    dark, maps = page.evaluate(paper), pictures(page)
    page.click("#theme")
    light = page.evaluate(paper)
    assert (dark, light) == ("rgb(19, 20, 24)", "rgb(255, 255, 255)")
    assert all(a != b for a, b in zip(maps, pictures(page), strict=True))
    page.click("#theme")
    assert page.evaluate(paper) == dark


def test_every_view_is_reached_by_keyboard(opened, report):
    page = opened().open(report)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Tab")
    for tab in ("attention", "trajectories"):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#tab-{tab}")).to_be_focused()
        expect(page.locator(f"#{tab}")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.locator("#overview")).to_be_visible()


def test_symbols_are_explained_where_they_are_pointed_at_or_reached(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    page.locator(".maps .term", has_text="lexical probe").hover()
    expect(page.locator("#tip")).to_contain_text("if the model looked at this one input word only")
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    page.locator(".maps .term", has_text="attention").focus()
    expect(page.locator("#tip")).to_contain_text("How much the model looks")


@pytest.mark.parametrize("tab", TABS)
def test_a_phone_needs_no_sideways_scrolling(opened, report, tab):
    page = opened(width=390, height=800).open(report, tab)
    expect(page.locator(f"#{tab} > *").first).to_be_visible()
    room = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    wide, shown = page.evaluate(room)
    assert wide <= shown


def test_paper_has_no_controls(opened, report):
    page = opened().open(report, "attention")
    show_translation(page)
    page.emulate_media(media="print")
    for hidden in (".top", ".controls", ".slider"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator(".maps canvas").first).to_be_visible()


def test_recipes_are_searched_and_filtered(opened, report):
    page = opened().open(report)
    shown = page.locator("article.recipe:visible")
    expect(shown).to_have_count(2)
    page.fill("#find", "no such words anywhere")
    expect(shown).to_have_count(0)
    expect(page.locator(".filters")).to_contain_text("0 of 2 recipes shown")
    # A measured name is found although its table is closed.
    page.fill("#find", "seeds_learned")
    expect(page.locator("#recipe-snell-fig3")).to_be_visible()
    expect(page.locator("#recipe-aitken-fig3")).to_be_hidden()
    page.fill("#find", "")
    for choice, value in (("paper", "aitken"), ("recipe", "aitken/fig3")):
        page.select_option(f"#of-{choice}", value)
        expect(shown).to_have_count(1)
        expect(shown).to_contain_text("aitken/fig3")
        page.select_option(f"#of-{choice}", "")
    page.select_option("#of-corpus", "b")
    expect(shown).to_contain_text("snell/fig3")
    page.select_option("#of-verdict", "holds")
    expect(shown).to_have_count(0)


def test_an_example_shows_what_the_model_says_with_its_probability(opened, report):
    page = opened().open(report, "attention")
    page.select_option("#scene", label="grammar-sentiment")
    expect(page.locator(".sentences")).to_contain_text(
        re.compile(r"model (nega|posi)tive \(\d+ %\)")
    )
    show_translation(page)
    expect(page.locator(".sentences")).to_contain_text(re.compile(r"model \w+ "))
