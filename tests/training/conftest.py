"""A unit that trains in a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnscope.data.tasks import PermutationCopy
from attnscope.models.attentions import Additive, DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Affine, Recurrent, WordStates
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.atomic import read_rows
from attnscope.training.unit import Training, Unit

SOURCE, MODEL = PermutationCopy(length=5), Seq2SeqSpec(embedding=8, hidden=8)
# sunlu's models, at several rates of dropout.
DROPPING = {
    "DP": {"encoder": WordStates(), "attention": DotProduct(scale=3.0), "dropout": 0.5},
    "DP-A": {"encoder": Affine(hidden=4), "attention": DotProduct(), "dropout": 0.3},
    "DP-L": {"encoder": Recurrent(hidden=2), "attention": DotProduct(), "dropout": 0.4},
    "AD": {"encoder": WordStates(), "attention": Additive(hidden=4), "dropout": 0.8},
}


def _tiny(source: Any = SOURCE, model: Any = MODEL, seed: int = 0, **training: Any) -> Unit:
    settings = {"steps": 6, "batch_size": 4, "evaluate_at": (2, 4), "examples": 10, "stored": 3}
    return Unit(source=source, model=model, training=Training(**settings | training), seed=seed)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The log without the one thing that differs from run to run."""
    rows = read_rows(path)
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def _numbers(folder: Path) -> dict[str, Any]:
    """Everything in a unit's folder that training decides, by name."""
    files = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.safetensors")
    }
    return files | {"log": _rows(folder / "log.jsonl")}


@pytest.fixture
def tiny():
    """Make tiny units; settings of training may be given by name."""
    return _tiny


@pytest.fixture(params=DROPPING)
def dropping(request):
    """Give each of the classifiers that have dropout and train as one program, or those named."""
    return ClassifierSpec(embedding=5, **DROPPING[request.param])


@pytest.fixture
def scales(dropping):
    """Give that classifier at several λ: what differs is held in a buffer."""
    attentions = [dropping.attention.model_copy(update={"scale": s}) for s in (0.5, "root", 20.0)]
    return [dropping.model_copy(update={"attention": attention}) for attention in attentions]


@pytest.fixture
def numbers():
    """Read all that must be the same from run to run out of a unit's folder."""
    return _numbers
