"""Any PyTorch model as one that can be measured: `adapt`.

The model's own forward pass is watched (`attnscope.models.watching`); nothing of the model is
rewritten, and it is left as it was, also after an error. Traces have sites by name, interventions
go by name, pattern and head, and the watched pass is checked against the model's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.removal import writes_its_input
from attnscope.data.tokenised import Task, Tokenised, TokenisedBatch, Tokeniser, tokenise
from attnscope.errors import MissingCapability, UsageError
from attnscope.models.discovery import discover, shorter, shorter_rows
from attnscope.models.dropout import Randomness
from attnscope.models.intervention import AttentionRule
from attnscope.models.layout import one_row
from attnscope.models.lineage import factors_of
from attnscope.models.places import Place, Sites
from attnscope.models.resuming import TOLERANCE, Resumable, Resumption, off
from attnscope.models.trace import Site, Trace
from attnscope.models.watching import Seen, Watch

Call = Callable[[nn.Module, Batch], Tensor]


@dataclass(frozen=True)
class Facts:
    """What a model's configuration says and a pass cannot show.

    Attributes
    ----------
    task
        Labels, translation or next words.
    longest
        The most positions that it takes; None where there is no limit.
    start
        The id from which a decoder starts.
    """

    task: Task = "labels"
    longest: int | None = None
    start: int = 0


class Adapted(nn.Module):
    """A model under watch; made by `attnscope.adapt`.

    Attributes
    ----------
    module
        The model itself.
    places
        Its attention sites; ``places.left_out`` names what cannot be seen.
    padding_matters
        Whether padding changes its output: then `outputs` and audits run only examples of equal
        length together, and `trace` warns of others.
    sees_ahead
        Whether an output depends on later words of a text that it would have to continue.
    off
        How far the watched pass was from the model's own, in parts of the largest logit.
    """

    def __init__(
        self,
        module: nn.Module,
        call: Call,
        example: Batch,
        tokeniser: Tokeniser | None = None,
        facts: Facts | None = None,
    ) -> None:
        super().__init__()
        self.module, self.call, self.tokeniser = module, call, tokeniser
        self.facts = facts or Facts()
        example = example.to(self.device)
        with _undisturbed(module):
            with torch.no_grad():
                native = self._logits(example)
            found = discover(module, self._logits, example)
            self.places = found.places
            self._calls = {place.call: place for place in self.places}
            self.off = off(found.logits, native)
            _demand_same(self.off, TOLERANCE.get(native.dtype, 1e-5))
            self.padding_matters = self._padding_matters(example, native)
            self.sees_ahead = writes_its_input(example) and self._sees_ahead(example, native)
        self.outputs_count = native.shape[-1]
        self._resumable = Resumable()
        self._resumption: Resumption | None = None

    @property
    def filler(self) -> int:
        """The id that stands in for a word that is taken out of a language model's input."""
        cut = None if self.tokeniser is None else self.tokeniser.cut
        names = ("mask_token_id", "unk_token_id", "eos_token_id", "pad_token_id")
        found = (getattr(cut, name, None) for name in names)
        return next((each for each in found if each is not None), 0)

    @property
    def pad(self) -> int:
        """The id that fills rows."""
        return 0 if self.tokeniser is None else self.tokeniser.pad

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        parameter = next(self.module.parameters(), None)
        return torch.device("cpu") if parameter is None else parameter.device

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
        *,
        keep: Sequence[str] | None = None,
    ) -> Trace:
        """Run the model on a batch, with the attention at some sites replaced.

        Parameters
        ----------
        batch
            From `batch`, or made by hand.
        attention
            Rules by site, alias or pattern, for example ``{"cross.*": Uniform()}``.
        generator
            Not used: a watched model runs without dropout.
        keep
            The sites (or patterns) to keep in the trace, by default all of them.
        """
        if generator is not None:
            raise MissingCapability("A watched model runs without dropout: give no generator.")
        if self.padding_matters and batch.padded:
            warnings.warn(
                "Padding changes this model's output: trace texts of equal length.", stacklevel=2
            )
        watch = self.watch(batch, attention)
        logits = self.run(watch)
        kept = (
            {name for pattern in keep for name in self.places.matching(pattern)}
            if (keep is not None)
            else set(self.places.names)
        )
        sites: dict[str, list[Seen]] = {}
        for seen in watch.seen:
            if seen.place is not None and seen.place.name in kept:
                sites.setdefault(seen.place.name, []).append(seen)
        made = {name: _site(parts, batch) for name, parts in sites.items()}
        return Trace(
            batch=batch,
            embeddings=watch.embeddings,
            encoder_states=None,
            decoder_states=None,
            query=None,
            logits=logits,
            sites=Sites(made, self.places.aliases),
            attention=attention or {},
        )

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Raise: the rest of a watched model is not known apart, and measurements run it again."""
        raise MissingCapability("A watched model has no readout: run it again under Given weights.")

    def outputs(
        self, batch: Batch, attention: Mapping[str, AttentionRule] | None = None
    ) -> Float[Tensor, "batch out output_type"]:
        """Return the output logits alone, with the attention at some sites replaced.

        Without a rule it is the model's own pass; inside `resuming` it starts at the site.
        """
        if not attention:
            with _undisturbed(self.module):
                return self._unpadded(batch) if self.padding_matters else self._logits(batch)
        resumption = self._resumption
        if resumption is not None and resumption.takes(batch, attention):
            return resumption.outputs(attention)
        return self.run(self.watch(batch, attention))

    @contextmanager
    def resuming(self, batch: Batch, site: str) -> Iterator[None]:
        """Let `outputs` of this batch run only what comes after a site's attention has begun.

        At each site one resumed pass is compared with a whole one: a model whose modules do more
        than return their outputs is run as a whole. Gradients reach the rules and nothing before
        the site.

        Parameters
        ----------
        batch
            The same object as in the calls of `outputs`.
        site
            A name, an alias or a pattern; of several sites the first one.
        """
        outer = self._resumption
        self._resumption = Resumption(self, self._resumable, batch, site)
        try:
            yield
        finally:
            self._resumption = outer

    def batch(
        self, texts: Sequence[str], wanted: Sequence[int] | Sequence[str] | None = None
    ) -> TokenisedBatch:
        """Cut texts into a batch; warns of texts that are too long and left out.

        Parameters
        ----------
        texts
            Texts or source sentences.
        wanted
            Their labels, or their translations; a language model needs none.
        """
        read = self.read(texts, wanted)
        if read.left_out:
            warnings.warn(f"Texts were left out: {read.left_out}.", stacklevel=2)
        return read.batch

    def read(
        self,
        texts: Sequence[str],
        wanted: Sequence[int] | Sequence[str] | None = None,
        ids: Sequence[int] | None = None,
    ) -> Tokenised:
        """Cut texts into a batch, and count what is left out."""
        if self.tokeniser is None:
            raise UsageError(
                "The model has no tokeniser: give adapt one (a Hugging Face tokeniser, or any "
                "function from a text to ids)."
            )
        facts, limits = self.facts, (self.facts.longest, self.tokeniser.longest)
        longest = min((each for each in limits if each is not None), default=None)
        if facts.task == "labels":
            self._demand_labels(wanted)
        if facts.task == "next word" and self.sees_ahead:
            raise MissingCapability(
                f"{type(self.module).__name__} reads the words that it would have to predict: it "
                "is neither a classifier, a translator nor a language model that writes from left "
                "to right."
            )
        return tokenise(
            self.tokeniser, facts.task, texts, wanted, longest=longest, start=facts.start, ids=ids
        )

    def _demand_labels(self, labels: Sequence[Any] | None) -> None:
        if self.outputs_count < 2:
            raise MissingCapability(
                "The model has a single output and no labels: give adapt a call(module, batch) "
                "that returns a logit for each label."
            )
        wrong = [each for each in labels or () if not 0 <= int(each) < self.outputs_count]
        if wrong:
            raise UsageError(
                f"Label {wrong[0]} is out of range: the model has {self.outputs_count} labels, "
                f"0 to {self.outputs_count - 1}."
            )

    def watch(self, batch: Batch, attention: Mapping[str, AttentionRule] | None) -> Watch:
        """Return a watch over a pass that is still to come."""
        return Watch(self.module, batch, self._calls, self.places.rules(attention))

    def run(self, watch: Watch) -> Float[Tensor, "batch out output_type"]:
        """Run the model under a watch."""
        with _undisturbed(self.module), watch:
            return self._logits(watch.batch)

    @torch.no_grad()
    def demand_own_pass(self, batch: Batch) -> None:
        """Raise where the pass under watch is not the model's own on a batch.

        Ten times the tolerance of the first pass: many texts have more rounding than three.
        """
        native, watched = self.outputs(batch), self.run(self.watch(batch, None))
        real = batch.target_mask
        _demand_same(off(watched[real], native[real]), 10 * TOLERANCE.get(native.dtype, 1e-5))

    def _logits(self, batch: Batch) -> Float[Tensor, "batch out output_type"]:
        logits = self.call(self.module, batch)
        if not isinstance(logits, Tensor):
            raise UsageError(
                f"The call returned {type(logits).__name__}: call(module, batch) returns logits."
            )
        logits = logits[:, None] if logits.ndim == 2 else logits
        if logits.shape[:2] != batch.targets.shape:
            raise UsageError(
                f"The call returned logits of shape {list(logits.shape)} for targets of shape "
                f"{list(batch.targets.shape)}: they are [batch, out, types], or [batch, labels]."
            )
        return logits

    def _unpadded(self, batch: Batch) -> Float[Tensor, "batch out output_type"]:
        """Run examples of equal length together, and join their logits."""
        if not batch.padded:
            return self._logits(batch)
        parts = [
            (rows, self._logits(part))
            for rows, part in batch.by_length(lambda *_: len(batch), equal=True)
        ]
        first = parts[0][1]
        joined = first.new_zeros(*batch.targets.shape, first.shape[-1])
        for rows, logits in parts:
            joined[rows.to(joined.device), : logits.shape[1]] = logits
        return joined

    @torch.no_grad()
    def _sees_ahead(self, example: Batch, native: Tensor) -> bool:
        inputs = example.inputs.clone()
        last = example.input_lengths.to(inputs.device) - 1
        rows = torch.arange(len(inputs), device=inputs.device)
        inputs[rows, last] = inputs[rows, 0]
        changed = self._logits(replace(example, inputs=inputs, decoder_inputs=inputs))
        before = torch.arange(inputs.shape[1], device=inputs.device) < last[:, None]
        return off(changed[before], native[before]) > 10 * TOLERANCE.get(native.dtype, 1e-5)

    def _padding_matters(self, example: Batch, native: Tensor) -> bool:
        part = shorter(example)
        with torch.no_grad():
            alone = self._logits(part)
        rows = shorter_rows(example).to(native.device)
        real = part.target_mask
        beside = native[rows][:, : alone.shape[1]]
        return off(alone[real], beside[real]) > 10 * TOLERANCE.get(native.dtype, 1e-5)


def _demand_same(distance: float, tolerance: float) -> None:
    if not distance <= tolerance:
        raise MissingCapability(
            f"The pass under watch is not the model's own (off by {distance:.1e} of its largest "
            "logit): its attention cannot be measured."
        )


def _site(parts: Sequence[Seen], batch: Batch) -> Site:
    """Return what was seen of a place as a site; the steps of a loop are joined."""
    first, place = parts[0], parts[0].place
    assert place is not None
    inp = first.inp
    joined = [torch.cat([getattr(p, name) for p in parts], 2) for name in ("logits", "weights")]
    logits, weights = (each[..., :inp] for each in joined)
    allowed = torch.cat([part.allowed for part in parts], 1)[..., :inp]
    logits = logits.masked_fill(~allowed[:, None], 0.0)
    pairs = [_factors(part) for part in parts]
    queries = keys = None
    if all(pair is not None for pair in pairs):
        queries = torch.cat([pair[0] for pair in pairs if pair], 2).to(logits.dtype)
        keys = pairs[0][1].to(logits.dtype) if pairs[0] else None
    if first.values is None:
        raise MissingCapability(f"The values of {place.name} were not seen in this pass.")
    return Site(
        one_row(allowed),
        logits,
        weights,
        first.values.to(weights.dtype),
        queries,
        keys,
        output_map=first.output_map,
        reads=_reads(place, batch, weights),
    )


def _factors(seen: Seen) -> tuple[Tensor, Tensor] | None:
    size, heads, out, _ = seen.logits.shape
    return seen.factors or factors_of(seen.origin, size, heads, out, seen.inp)


def _reads(place: Place, batch: Batch, weights: Tensor) -> Float[Tensor, "batch out"] | None:
    """Return the share of each row in a single output; None where each output has its own row."""
    out = weights.shape[2]
    if batch.targets.shape[1] != 1 or out == 1:
        return None
    rows = torch.arange(out, device=weights.device)
    lengths = batch.input_lengths.to(weights.device)[:, None]
    real = rows < lengths if out == batch.inputs.shape[1] else rows < out
    chosen = {
        "first": (rows == 0).expand(len(batch), out),
        "last": rows == lengths - 1,
        "own": real.expand(len(batch), out),
        "all": real.expand(len(batch), out),
        "none": torch.zeros(len(batch), out, dtype=torch.bool, device=weights.device),
    }[place.reads].to(weights.dtype)
    return chosen / chosen.sum(1, keepdim=True).clamp(min=1)


@contextmanager
def _undisturbed(module: nn.Module) -> Iterator[None]:
    """Run a model without dropout and with visible attention, and leave it as it was."""
    training = [part for part in module.modules() if part.training]
    config = getattr(module, "config", None)
    kernel = getattr(config, "_attn_implementation", None)
    hidden = kernel not in (None, "eager", "sdpa") and hasattr(module, "set_attn_implementation")
    for part in training:
        part.training = False
    try:
        if hidden:
            module.set_attn_implementation("sdpa")  # type: ignore[operator]
        yield
    finally:
        for part in training:
            part.training = True
        if hidden:
            module.set_attn_implementation(kernel)  # type: ignore[operator]
