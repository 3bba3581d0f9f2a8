"""Corpora, generated tasks, vocabularies and padded batches."""

from typing import TYPE_CHECKING

from attnscope.lazy import exports

if TYPE_CHECKING:
    from attnscope.data.batch import Batch as Batch, Example as Example, collate as collate
    from attnscope.data.corpus import (
        Corpus as Corpus,
        GrammarSentiment as GrammarSentiment,
        GrammarTranslation as GrammarTranslation,
    )
    from attnscope.data.corpus_writer import write_corpus as write_corpus
    from attnscope.data.escan import ExtendedScan as ExtendedScan
    from attnscope.data.known import fetch as fetch, listing as listing
    from attnscope.data.parallel_words import ParallelWords as ParallelWords
    from attnscope.data.polarity_texts import PolarityTexts as PolarityTexts
    from attnscope.data.randomness import generator as generator, seeded as seeded
    from attnscope.data.selection import check as check
    from attnscope.data.sequence_tasks import (
        OneToOne as OneToOne,
        Reversed as Reversed,
        SequenceTask as SequenceTask,
        Sorting as Sorting,
    )
    from attnscope.data.source import Source as Source
    from attnscope.data.tasks import (
        CopyTask as CopyTask,
        GeneratedTask as GeneratedTask,
        KeywordTask as KeywordTask,
        MixtureCopy as MixtureCopy,
        PermutationCopy as PermutationCopy,
        ReorderedCopy as ReorderedCopy,
        SampledCopy as SampledCopy,
    )
    from attnscope.data.text import (
        LabelledText as LabelledText,
        ParallelText as ParallelText,
        open_text as open_text,
    )
    from attnscope.data.vectors import read_vectors as read_vectors
    from attnscope.data.vocabulary import Vocabulary as Vocabulary
else:
    __all__, __getattr__, __dir__ = exports(__name__)
