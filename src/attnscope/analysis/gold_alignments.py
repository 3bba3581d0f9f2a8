"""Gold word alignments of sentence pairs, and the words of parallel text to learn aligning from.

Model 1 can learn from any parallel text, and its links be had in Pharaoh's format::

    from attnscope.analysis import ibm_links, open_gold, to_pharaoh, training_words
    from attnscope.data import open_text

    gold = open_gold("gold-en-fr", ("en", "fr"))
    text = training_words(open_text("tatoeba-en-fr"), spelling="expanded")
    print(to_pharaoh(ibm_links(*gold.lowered, text)["union"]))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Bool
from torch import Tensor

from attnscope.analysis.alignment import Link, link_tensor
from attnscope.data import grammar
from attnscope.data.contractions import SPELLINGS, cut
from attnscope.data.corpus import Corpus
from attnscope.data.folder import Aligned
from attnscope.data.known import definition, locate
from attnscope.data.text import ParallelText
from attnscope.data.tokens import BOS, EOS, PAD
from attnscope.data.word_pairs import Words
from attnscope.errors import UsageError

Links = Bool[Tensor, "batch out inp"]
Parallel = tuple[Sequence[Words], Sequence[Words]]

GRAMMAR = "grammar-translation"


@dataclass(frozen=True)
class GoldAlignments:
    """Sentence pairs with their gold links, in one direction, wherever they come from."""

    dataset: str
    split: str
    languages: tuple[str, str]
    sentences: Sequence[Aligned]

    @property
    def lowered(self) -> tuple[list[list[str]], list[list[str]]]:
        """Source and target sentences in lower case."""
        sources = [[word.lower() for word in pair.source] for pair in self.sentences]
        return sources, [[word.lower() for word in pair.target] for pair in self.sentences]

    @property
    def sure(self) -> Links:
        """The sure links."""
        return self._tensor([pair.sure for pair in self.sentences])

    @property
    def possible(self) -> Links:
        """The possible links, sure ones included."""
        return self._tensor([pair.possible for pair in self.sentences])

    def _tensor(self, links: Sequence[Iterable[Link]]) -> Links:
        sources, targets = self.lowered
        return link_tensor(links, max(map(len, targets)), max(map(len, sources)))


def open_gold(name: str, languages: tuple[str, str] | None = None) -> GoldAlignments:
    """Read gold alignments, from one language to the other where a corpus has both.

    They are a known corpus with alignments, a folder of one's own, or ``grammar-translation``,
    whose grammar knows what it translated.
    """
    if name == GRAMMAR:
        pairs = grammar.translation_corpus()["val"]
        return GoldAlignments(name, "val", ("de", "en"), [_aligned(pair) for pair in pairs])
    known = definition(name)
    if known.task != "alignment":
        raise UsageError(
            f"{known.name} is made for {known.task}; gold= needs gold alignments, such as "
            f"gold-en-fr or {GRAMMAR}."
        )
    own = (known.source, known.target)
    direction = languages if languages and set(languages) == set(own) else own
    sentences = locate(known).aligned(known.val, *direction)
    return GoldAlignments(Path(name).name, known.val, direction, sentences)


def _aligned(pair: grammar.SentencePair) -> Aligned:
    links = frozenset((source, target) for target, source in pair.alignment)
    return Aligned(str(pair.id), pair.source, pair.target, links, links)


def training_words(source: Corpus, spelling: str = "plain") -> Parallel:
    """Return the training sentences of a parallel corpus in words, both sides.

    Parameters
    ----------
    spelling
        A key of `attnscope.data.contractions.SPELLINGS`: ``expanded`` writes contractions out.
    """
    if isinstance(source, ParallelText):
        pairs, rules = source.loaded.train_records, SPELLINGS[spelling]
        known = source.definition
        first, second = (rules.get(language, ()) for language in (known.source, known.target))
        return [cut(p.source, first) for p in pairs], [cut(p.target, second) for p in pairs]
    inputs, outputs = [], []
    for example in source.training_examples:
        inputs.append(source.input_words.decode(example.inputs))
        outputs.append(source.output_words.decode(example.targets))
    return _without_boundaries(inputs), _without_boundaries(outputs)


def _without_boundaries(sentences: Iterable[Words]) -> list[Words]:
    return [[word for word in words if word not in (PAD, BOS, EOS)] for words in sentences]
