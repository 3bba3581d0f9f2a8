"""The trace of one forward pass, and the protocol of a model that can be measured.

A *site* is one place where attention happens, with a head axis (of size 1 if there is one head).
`attend` computes a site from its logits and values, so that every model, the user's own included,
gets masking and interventions from one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.data.batch import Batch, by_row
from attnscope.errors import MissingCapability
from attnscope.models.dropout import Randomness
from attnscope.models.intervention import LEARNED, AttentionRule


@dataclass(frozen=True)
class Site:
    """Attention at one place.

    ``queries`` and ``keys`` are None where the logits are not a product of the two (additive
    attention). The context is Σ_l α_l v_l, per head. The mask has a row for each output position
    where these may attend to different inputs (causal attention), else one row for all of them.
    ``output_map`` is the linear map that the heads' joined context enters, where one follows.
    ``reads`` is the share of each row in a classifier's one output, where the rows are not outputs
    (self-attention); None where row t belongs to output t.
    """

    mask: Bool[Tensor, "batch *row inp"]
    logits: Float[Tensor, "batch heads out inp"]
    weights: Float[Tensor, "batch heads out inp"]
    values: Float[Tensor, "batch heads inp value"]
    queries: Float[Tensor, "batch heads out key"] | None = None
    keys: Float[Tensor, "batch heads inp key"] | None = None
    output_map: Float[Tensor, "stream joined"] | None = None
    reads: Float[Tensor, "batch out"] | None = None

    @property
    def allowed(self) -> Bool[Tensor, "batch _ inp"]:
        """The mask with an output axis, of size 1 where all output positions share one row."""
        return by_row(self.mask)

    @property
    def bias(self) -> Float[Tensor, "batch heads out inp"] | None:
        """The part of the logits that is not q·k (a position bias, say); None without q and k."""
        if self.queries is None or self.keys is None:
            return None
        rest = self.logits - self.queries @ self.keys.mT
        return rest.masked_fill(~self.allowed[:, None], 0.0)

    def __repr__(self) -> str:
        examples, heads, outputs, inputs = self.weights.shape
        return f"Site({examples=}, {heads=}, {outputs=}, {inputs=})"

    @property
    def context(self) -> Float[Tensor, "batch out heads value"]:
        """Σ_l α_l v_l."""
        return (self.weights @ self.values).transpose(1, 2)


@dataclass(frozen=True)
class Trace:
    """Everything a measurement may need of one forward pass.

    ``query`` is what the readout takes next to the context (the decoder's state; of width 0 for a
    classifier whose output depends on the context alone). ``embeddings``, ``encoder_states`` and
    ``query`` are None where a model does not offer them. ``attention`` has the rules under which
    the pass was run, where a model notes them.
    """

    batch: Batch
    embeddings: Float[Tensor, "batch inp embedding"] | None
    encoder_states: Float[Tensor, "batch inp state"] | None
    decoder_states: Float[Tensor, "batch out state2"] | None
    query: Float[Tensor, "batch out query"] | None
    logits: Float[Tensor, "batch out output_type"]
    sites: Mapping[str, Site] = field(default_factory=dict)
    teacher_forced: bool = True
    attention: Mapping[str, AttentionRule] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Trace(examples={len(self.batch)}, sites={list(self.sites)})"


def needed(value: Tensor | None, name: str) -> Tensor:
    """Return a part of a trace, or raise one sentence if the model does not offer it."""
    if value is None:
        raise MissingCapability(
            f"This measurement needs {name} in the model's trace, and the model offers none."
        )
    return value


@runtime_checkable
class AttentionModel(Protocol):
    """What every measurement can ask of a model.

    ``trace`` runs it, with the attention at named sites replaced if ``attention`` says so and with
    dropout drawn from ``generator`` (None: no dropout). ``readout`` is the rest of the network:
    from the context (with its head axis) and the query to the output logits.
    """

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
    ) -> Trace:
        """Run the model on a batch, teacher-forced."""
        ...

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return the output logits for a context."""
        ...


def attend(
    batch: Batch,
    logits: Float[Tensor, "batch heads out inp"],
    values: Float[Tensor, "batch heads inp value"],
    rule: AttentionRule | None = None,
    *,
    mask: Bool[Tensor, "batch *row inp"] | None = None,
    queries: Float[Tensor, "batch heads out key"] | None = None,
    keys: Float[Tensor, "batch heads inp key"] | None = None,
) -> Site:
    """Make a site: the rule (by default the learned softmax) turns logits into weights."""
    mask = batch.input_mask if mask is None else mask
    weights = (rule or LEARNED)(logits, mask, batch.ids)
    return Site(mask, logits, weights, values, queries, keys)
