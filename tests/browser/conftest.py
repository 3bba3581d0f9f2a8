"""The report in a real browser: the system's Chromium, with every request to a network recorded."""

import importlib.util
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from attnscope import write_report
from attnscope.data.corpus import GrammarSentiment
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.runs.result import Measurement, Plane, Point, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.loop import train_unit
from attnscope.training.trained_unit import demo_folder
from attnscope.training.unit import Training, Unit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WAIT = 60_000  # milliseconds until what never comes is an error; a busy machine is slow
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">'
    '<rect width="9" height="9"/></svg>'
)


def pytest_collection_modifyitems(items):
    if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
        reason = "needs Chromium and playwright: apt-get install chromium, pip install -e '.[dev]'"
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


def row(name, value, dataset="permutations", n=4, found=None, **axes):
    return Measurement(
        name=name, dataset=dataset, value=value, n=n, axes=axes, found=found or {}, seeds=(0,)
    )


def write_result(workspace, recipe, rows, config=None, part="", pictures=()):
    result = Result(
        recipe=recipe,
        part=part,
        scale="quick",
        config=config or {},
        environment={"device": "cpu"},
        seconds=1.5,
        measurements=rows,
        pictures=pictures,
    )
    result.write(workspace / result.place)
    (workspace / result.place / "figures").mkdir(exist_ok=True)
    (workspace / result.place / "figures" / "one.svg").write_text(SVG)


def planes():
    """Return states over time and words in a plane, as aitken's recipes measure them."""
    shared = {"dataset": "escan", "axes": {"model": "aed"}, "x": "PC 1", "y": "PC 2", "n": 1}
    steps = [(side, step) for side in ("encoder", "decoder") for step in range(1, 5)]
    time = tuple(Point(str(step), side, step, 2 * step) for side, step in steps)
    words = tuple(
        Point(word, "state", place + 1, place + 2)
        for place, word in enumerate(("run", "twice", "jump twice", "left"))
    )
    return (
        Plane(name="temporal_path", points=time, joined=True, **shared),
        Plane(name="input_plane", points=words, **shared),
    )


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    shutil.copytree(demo_folder(), folder / "units" / "grammar-translation-seq2seq-seed0-demo")
    training = Training(
        steps=4,
        batch_size=8,
        evaluate_at=(2,),
        examples=8,
        stored=8,
        scores=(Attention(), LexicalProbe()),
    )
    model = ClassifierSpec(embedding=6, encoder=Recurrent(hidden=5), attention=Additive(hidden=4))
    train_unit(Unit(source=GrammarSentiment(), model=model, training=training), folder)
    learned = [
        row(name, value, role, role=role)
        for role in ("permutations", "control", "mixture", "mixture control")
        for name, value in (("accuracy", 0.25), ("steps_to_95", None))
    ]
    counts = [
        row("seeds_learned", value, dataset)
        for dataset, value in (("b", 30.0), ("c", 4.0), ("a", 200.0), ("d", None))
    ]
    write_result(folder, "snell/fig3", [*counts, *learned], {"steps": 200, "seeds": 1})
    write_result(folder, "aitken/fig3", [], pictures=planes())
    return folder


@pytest.fixture(scope="session")
def report(workspace):
    return write_report(workspace, workspace.parent / "report.html", count=3)


@dataclass
class Watched:
    """A page with everything that it said and everywhere that it wanted to go."""

    page: object
    asked: list = field(default_factory=list)
    said: list = field(default_factory=list)
    dialogs: list = field(default_factory=list)

    def open(self, where, tab=None):
        self.page.goto(where if isinstance(where, str) else Path(where).resolve().as_uri())
        self.page.wait_for_selector("#opened[data-seconds]", state="attached")
        if tab:
            self.page.click(f"#tab-{tab}")
        if tab == "attention":  # its scores are unpacked first
            self.page.wait_for_selector("#attention .maps canvas", state="attached")
        return self.page


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT)
    with sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Open a page in a fresh profile; give the size of the window, light or dark, and so on."""
    contexts = []

    def start(width=1280, height=900, **settings):
        context = browser.new_context(viewport={"width": width, "height": height}, **settings)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        watched = Watched(page)

        def note(request):
            if not request.url.startswith(("file:", "blob:", "data:", "http://127.0.0.1:")):
                watched.asked.append(request.url)

        page.on("request", note)
        page.on("pageerror", lambda error: watched.said.append(str(error)))
        page.on("console", lambda message: watched.said.append(f"{message.type}: {message.text}"))
        page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
        return watched

    yield start
    for context in contexts:
        context.close()
