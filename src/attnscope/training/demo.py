"""The demo model: a tiny translator of the package's own German-English corpus, shipped with it.

``python -m attnscope.training.demo`` trains it again and puts it in its place.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from attnscope.data.corpus import GrammarTranslation
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.loop import train_unit
from attnscope.training.trained_unit import demo_folder
from attnscope.training.unit import Training, Unit, every, merged

DEMO = Unit(
    source=GrammarTranslation(),
    model=Seq2SeqSpec(embedding=64, hidden=64, cell="gru", embeddings="separate"),
    training=Training(
        steps=2000,
        batch_size=32,
        evaluate_at=merged((10, 20, 50), every(100, 1000), every(500, 2000)),
        examples=200,
        stored=8,
        scores=(Attention(), LexicalProbe()),
    ),
    seed=0,
)


def main() -> None:
    """Train the demo and replace the shipped one."""
    with tempfile.TemporaryDirectory() as workspace:
        folder = train_unit(DEMO, Path(workspace))
        shutil.rmtree(demo_folder(), ignore_errors=True)
        shutil.copytree(folder.path, demo_folder(), ignore=shutil.ignore_patterns("lock"))
        print(folder.log[-1])


if __name__ == "__main__":
    main()
