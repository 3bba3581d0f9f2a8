"""A small workspace: the shipped demo, a classifier trained for a moment, and a made-up result."""

import shutil

import pytest

from attnscope.data.corpus import GrammarSentiment
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.runs.result import Measurement, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.training.loop import train_unit
from attnscope.training.trained_unit import demo_folder
from attnscope.training.unit import Training, Unit

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
    '<rect width="9" height="9"/></svg>'
)


def classifier(seed=0, **training):
    settings = {"steps": 4, "batch_size": 8, "evaluate_at": (2,), "examples": 12, "stored": 12}
    return Unit(
        source=GrammarSentiment(),
        model=ClassifierSpec(
            embedding=6, encoder=Recurrent(hidden=5), attention=Additive(hidden=4)
        ),
        training=Training(**settings | {"scores": (Attention(), LexicalProbe())} | training),
        seed=seed,
    )


def proxy():
    training = Training(steps=2, batch_size=8, evaluate_at=(), scores=(), stored=0, best_by="loss")
    return Unit(source=GrammarSentiment(), model=ProxySpec(embedding=4), training=training)


def row(name="accuracy", dataset="d", value=0.5, **more):
    return Measurement(name=name, dataset=dataset, value=value, n=more.pop("n", 1), **more)


def result(*rows, recipe="snell/fig3", **more):
    settings = {"scale": "quick", "config": {}, "environment": {"device": "cpu"}, "seconds": 1.5}
    return Result(recipe=recipe, measurements=rows, **settings | more)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("trained")
    units = [
        classifier(final_scores=(Saliency(),)),
        classifier(seed=1),
        classifier(seed=2, scores=(LexicalProbe(),), attention={"cross": Uniform()}),
        proxy(),
    ]
    for unit in units:
        train_unit(unit, workspace)
    shutil.copytree(demo_folder(), workspace / "units" / "grammar-translation-seq2seq-seed0-demo")
    made = result(
        row("seeds_learned", "permutations", 3.0, low=1.0, high=4.0, n=4, published=3.0),
        *(
            row(name, role, value, axes={"role": role}, seeds=(seed,))
            for role in ("permutations", "control", "mixture", "mixture control")
            for name, value in (("accuracy", 0.25), ("steps_to_95", None))
            for seed in (0, 1)
        ),
        config={"steps": 200, "seeds": 2},
    )
    made.write(workspace / "snell" / "fig3")
    (workspace / "snell" / "fig3" / "figures").mkdir()
    (workspace / "snell" / "fig3" / "figures" / "fig3.svg").write_text(SVG)
    return workspace


@pytest.fixture
def workspace(trained, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(trained, tmp_path / "ws")
