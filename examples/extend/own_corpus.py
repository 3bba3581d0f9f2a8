"""Your own corpus reader: lines of label, tab and text, every fifth held out."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Literal

from attnscope.data import Corpus, Example, Vocabulary
from attnscope.models import ClassifierSpec
from attnscope.training import Training, Unit, train_units


class TsvReviews(Corpus):
    kind: Literal["my-tsv-reviews"] = "my-tsv-reviews"  # how stored units name it
    path: str
    digest: str  # of the file: with other contents it is another unit

    @property
    def dataset(self):
        return Path(self.path).stem  # how measurements name it

    @property
    def output_words(self):
        return Vocabulary(("bad", "good"))

    @property
    def boundaries(self):
        return None  # a label is not a sequence: nothing starts or ends it

    @cached_property
    def input_words(self):
        return Vocabulary.build((words for n, _, words in self._rows if n % 5), ["<unk>"], "<unk>")

    @cached_property
    def training_examples(self):
        return [self._example(*row) for row in self._rows if row[0] % 5]

    @cached_property
    def validation_examples(self):
        return [self._example(*row) for row in self._rows if row[0] % 5 == 0]

    @cached_property
    def _rows(self):
        lines = enumerate(Path(self.path).read_text("utf8").splitlines())
        return [(n, line.partition("\t")[0], line.partition("\t")[2].split()) for n, line in lines]

    def _example(self, number, label, words):  # a classifier ignores its decoder inputs, [0]
        return Example(number, self.input_words.encode(words), [0], [self.output_words.id(label)])


if __name__ == "__main__":
    Path("films.tsv").write_text("good\ta fine film\nbad\ta dull film\n" * 40)
    digest = hashlib.sha256(Path("films.tsv").read_bytes()).hexdigest()
    films = TsvReviews(path="films.tsv", digest=digest)
    training = Training(steps=40, batch_size=16, evaluate_at=())
    units = [Unit(source=films, model=ClassifierSpec(), training=training, seed=s) for s in (0, 1)]
    for unit in train_units(units, Path("runs")):
        print(unit, unit.log[-1]["accuracy"])
