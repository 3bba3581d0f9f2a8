"""BLEU of what a model writes: sacrebleu's, of the whole corpus, on text as people write it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.decoding import Attention, beam_search
from attnscope.models.trace import AttentionModel
from attnscope.training.metric import Metric

# Positions of all inputs that are read at once, times the beam's width: bounds the memory.
_POSITIONS = 2**17


class Bleu(Metric):
    """BLEU, in percent; a beam of width 1 is greedy decoding.

    The defaults are those of snell's code: beam 5, at most 100 words, no length normalisation.
    """

    kind: Literal["bleu"] = "bleu"
    width: int = Field(5, ge=1, description="of the beam")
    limit: int = Field(100, ge=1, description="most words of an output")

    @property
    def name(self) -> str:
        """``bleu``, with the beam's width and the limit where they are not the paper's."""
        changed = self.model_dump(exclude_defaults=True, exclude={"kind"})
        return "-".join(["bleu", *(f"{key}{value}" for key, value in changed.items())])

    def demand(self) -> None:
        """Raise `UsageError` if sacrebleu is not installed."""
        _sacrebleu()

    def __call__(
        self,
        model: AttentionModel,
        batch: Batch,
        source: Source,
        split: str,
        attention: Attention | None = None,
    ) -> float:
        """Decode the batch and compare it with the split's references."""
        texts = self.translate(model, batch, source, attention)
        references = source.references(split, len(batch))
        return float(_sacrebleu().corpus_score(texts, [references]).score)

    def translate(
        self,
        model: AttentionModel,
        batch: Batch,
        source: Source,
        attention: Attention | None = None,
    ) -> list[str]:
        """Return what the model writes for each example, as text."""
        if source.boundaries is None:
            raise UsageError(f"{source.dataset} has labels, not sentences: it has no BLEU.")
        texts = [""] * len(batch)
        for rows, part in batch.by_length(lambda inp, out: _POSITIONS // (inp * self.width)):
            written = beam_search(model, part, source.boundaries, self.width, self.limit, attention)
            for row, words in zip(rows.tolist(), written.words, strict=True):
                texts[row] = source.sentence(words)
        return texts

    def signature(self) -> str:
        """Return sacrebleu's signature: how the numbers of other people compare with these."""
        metric = _sacrebleu()
        metric.corpus_score(["a"], [["a"]])  # It knows the number of references only then.
        return str(metric.get_signature())


def _sacrebleu() -> Any:
    try:  # Here: its import takes longer than the command line's help.
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise UsageError("BLEU needs sacrebleu: pip install 'attnscope[bleu]'.") from error

    # Without the warning about text that looks tokenised: some corpora are.
    return BLEU(force=True)
