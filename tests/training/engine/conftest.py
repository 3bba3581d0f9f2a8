"""Units that form groups."""

from __future__ import annotations

import pytest

from attnscope.data.corpus import GrammarSentiment
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.scores.attention import Attention
from attnscope.training.engine.groups import train_group
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import Adagrad, AitkenAdam
from attnscope.training.penalties import SquaredNorm

SOURCE = OneToOne(shortest=2, longest=4)
MODEL = EncoderDecoderSpec(hidden=5)
SETTINGS = {
    "steps": 8,
    "evaluate_at": (2, 4, 6),
    "optimizer": AitkenAdam(clip=0.5),
    "objective": (Likelihood(), SquaredNorm(weight=1e-3)),
    "final_scores": (Attention(),),
}
SEEDS = (4, 0, 9)


@pytest.fixture
def seeds(tiny):
    """Make units that differ in their seed alone."""
    return lambda count=SEEDS, model=MODEL, source=SOURCE, **training: [
        tiny(source, model, seed, **SETTINGS | training) for seed in count
    ]


@pytest.fixture
def droppers(seeds, dropping):
    """Make units with dropout, whose batches are of many widths."""
    return seeds(
        model=dropping, source=GrammarSentiment(), optimizer=Adagrad(lr=0.1), dtype="float64"
    )


@pytest.fixture
def scaled(seeds, scales):
    """Make units with dropout at three λ, each with two seeds."""
    settings = {
        "source": GrammarSentiment(),
        "optimizer": Adagrad(lr=0.1),
        "dtype": "float64",
        "scores": (),
        "final_scores": (),
    }
    return [unit for model in scales for unit in seeds((4, 0), model, **settings)]


@pytest.fixture
def units(seeds):
    """Make a group of three."""
    return seeds()


@pytest.fixture
def all_numbers(numbers):
    """Read all that must be the same from run to run out of every unit's folder."""
    return lambda units, workspace: [numbers(unit.folder(workspace).path) for unit in units]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Give the workspace of a group that nothing happened to."""
    return tmp_path_factory.mktemp("undisturbed")


@pytest.fixture
def expected(units, undisturbed, all_numbers):
    """Give the numbers of that group."""
    assert train_group(units, undisturbed) == [None] * 3  # once for all tests
    return all_numbers(units, undisturbed)
