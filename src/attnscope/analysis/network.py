"""A network that reads its own words, with its components on some sequences (aitken §2).

Everything goes through what any model offers, a trace, so that nothing here depends on an
architecture. Measures loop over `Network.heads`; a network with one head does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS, logit_scale, temporal_alignment
from attnscope.analysis.decomposition import (
    Components,
    Decomposition,
    View,
    decompose_views,
    states_of,
)
from attnscope.analysis.streaming import Key, Measure, Ratio, collect, mean_of
from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.models.encoder_decoder import EncoderDecoder
from attnscope.models.trace import AttentionModel, Site, Trace
from attnscope.training.trained_unit import TrainedUnit

SIDES = ("encoder", "decoder")
_ROWS = 100  # sequences of a forward pass
# A time step that fewer sequences reach has no mean state to speak of.
COMMON = 0.1

N = TypeVar("N", bound="Network")


@dataclass(frozen=True)
class Network:
    """A network, the sequences it is analysed on, and its components on them.

    Attributes
    ----------
    model
        Any model with a trace; the paper's networks read their own words.
    trimmed
        Whether each forward pass is without the padding that its sequences share.
    """

    model: Any
    source: Source
    sequences: Batch
    seed: int = 0
    trimmed: bool = False

    @classmethod
    def of(cls: type[N], unit: TrainedUnit, samples: int) -> N:
        """Return a unit's network with its last weights, on fresh sequences and its own words."""
        return cls(analysed(unit), unit.unit.source, fresh(unit, samples), unit.unit.seed)

    def only(self: N, chosen: Bool[Tensor, " sequence"]) -> N:
        """Return the network with some of its sequences, and with their components."""
        return replace(self, sequences=self.sequences.rows(chosen))

    @property
    def samples(self) -> int:
        """The number of sequences."""
        return len(self.sequences)

    @property
    def batches(self) -> list[Batch]:
        """The sequences of each forward pass."""
        starts = range(0, self.samples, _ROWS)
        parts = [self.sequences.rows(slice(start, start + _ROWS)) for start in starts]
        return [part.trimmed() for part in parts] if self.trimmed else parts

    def passes(self) -> Iterator[Trace]:
        """Return a pass over the sequences, a few at a time; output masks are the references'.

        Words of its own are written once, one after another, and read again by later passes.
        """
        own = getattr(self.model, "teacher_forcing", "on") == "off"
        model = self.model.with_teacher_forcing("on") if own else self.model
        for batch in self._written if own else self.batches:
            # Not a `with` around the yield: the reader would run without gradients as well.
            trace = without_gradients(model, batch)
            yield replace(trace, teacher_forced=False) if own else trace

    @cached_property
    def _written(self) -> list[Batch]:
        return [without_gradients(self.model, batch).batch for batch in self.batches]

    def traces(self) -> Iterator[Trace]:
        """Return a pass as it is analysed: outputs are real up to the end word that was written.

        A network that reads its own words may end earlier or later than its reference, and states
        after its end are not those of a sequence. Within the width of the references.
        """
        for trace in self.passes():
            yield trace if trace.teacher_forced else self._as_written(trace)

    def _as_written(self, trace: Trace) -> Trace:
        assert self.source.boundaries is not None
        ended = trace.logits.argmax(-1) == self.source.boundaries[1]
        last = ended.int().argmax(1).where(ended.any(1), ended.shape[1] - 1)
        batch = replace(trace.batch, target_lengths=last.cpu() + 1)
        gold = batch.gold.masked_fill(~batch.target_mask, -1)
        return replace(trace, batch=replace(batch, gold=gold))

    def collected(self, measures: Mapping[Key, Measure]) -> dict[Key, float]:
        """Return several measures over all sequences, from one pass."""
        found = collect(self.traces(), measures)
        return {name: ratio.value for name, ratio in found.items()}

    @cached_property
    def accuracy(self) -> float:
        """The share of its words that are right, up to and with the reference's end word."""
        return collect(self.passes(), {"": words_right})[""].value

    @cached_property
    def first_word_accuracy(self) -> float:
        """The share of sequences whose first word is right."""
        return collect(self.passes(), {"": first_word_right})[""].value

    @cached_property
    def padded_accuracy(self) -> float:
        """The share of right words as the authors count it: padding counts as right."""
        return collect(self.passes(), {"": words_right_with_padding})[""].value

    @cached_property
    def attends(self) -> bool:
        """Whether there is attention."""
        return CROSS.site in next(self.traces()).sites

    @cached_property
    def heads(self) -> dict[int, dict[str, int]]:
        """The heads in the order of their measurements, each with the axes that name it."""
        return {0: {}}

    @property
    def views(self) -> dict[str, View]:
        """The views that are decomposed."""
        found: dict[str, View] = {"states": states_of}
        return found | ({"cross": CROSS} if self.attends else {})

    @cached_property
    def decompositions(self) -> dict[str, Decomposition]:
        """The components of all views, from one pass."""
        return decompose_views(self.traces(), self.views)

    @property
    def states(self) -> Decomposition:
        """Components of states."""
        return self.decompositions["states"]

    @property
    def cross(self) -> Decomposition:
        """Components of queries (the decoder's side) and keys, heads side by side."""
        return self.decompositions["cross"]

    @cached_property
    def scale(self) -> float:
        """The factor of q·k in the logits."""
        return logit_scale(next(self.traces()))

    @property
    def words(self) -> tuple[str, ...]:
        """The input words."""
        return self.source.input_words.words

    def temporal_logits(self, head: int = 0, common: float = 0.0) -> Float[Tensor, "out inp"]:
        """Return μ^D_s·μ^E_t at the steps that at least this share of sequences reach."""
        least = max(1.0, common * self.samples)
        inp, out = (int((side.time_counts >= least).sum()) for side in sides(self.cross))
        return temporal_alignment(self.cross, len(self.heads))[head, :out, :inp]

    def temporal_attention(self, head: int = 0) -> Float[Tensor, "out inp"]:
        """Return softmax(μ^D·μ^E) at the steps that enough sequences reach."""
        return self.temporal_logits(head, COMMON).softmax(-1)

    @property
    def paths(self) -> dict[str, Float[Tensor, "step state"]]:
        """The temporal components of encoder and decoder states, at steps that some reach."""
        return dict(zip(SIDES, map(reached, sides(self.states)), strict=True))


@torch.no_grad()
def without_gradients(model: AttentionModel, batch: Batch) -> Trace:
    """Return a model's forward pass."""
    return model.trace(batch)


def analysed(unit: TrainedUnit) -> EncoderDecoder:
    """Return the network with its last weights, reading its own words."""
    return cast(EncoderDecoder, unit.model).with_teacher_forcing("off")


def fresh(unit: TrainedUnit, count: int) -> Batch:
    """Return held-out sequences other than those that were evaluated during training."""
    seen = unit.unit.training.examples
    return unit.unit.source.evaluation_batch(seen + count).rows(slice(seen, None))


def words_right(trace: Trace) -> Ratio:
    """Return the share of output words that are right, up to and with EOS."""
    right = (trace.logits.argmax(-1) == trace.batch.targets).double()
    return mean_of(right.masked_fill(~trace.batch.target_mask, torch.nan))


def first_word_right(trace: Trace) -> Ratio:
    """Return the share of sequences whose first output word is right."""
    return mean_of((trace.logits[:, :1].argmax(-1) == trace.batch.targets[:, :1]).double())


def words_right_with_padding(trace: Trace) -> Ratio:
    """Return the share of output positions that are right or padding."""
    right = trace.logits.argmax(-1) == trace.batch.targets
    return mean_of((right | ~trace.batch.target_mask).double())


def sides(components: Decomposition) -> tuple[Components, Components]:
    """Return the components of the encoder and of the decoder."""
    assert components.decoder is not None
    return components.encoder, components.decoder


def reached(components: Components) -> Float[Tensor, "step state"]:
    """Return the temporal components of the steps that some sample reaches."""
    return components.temporal[components.time_counts > 0]


def site_of(trace: Trace, head: int) -> Site:
    """Return one head of the attention."""
    site, one = trace.sites[CROSS.site], slice(head, head + 1)
    return Site(site.mask, site.logits[:, one], site.weights[:, one], site.values[:, one])
