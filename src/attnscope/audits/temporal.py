"""Is attention about positions or about words? The terms of its logits (aitken Eq. 3).

Of the ten terms of a logit (nine products of temporal, input and rest components of query and key,
and the bias) the share of the first product, of positions alone, and of the bias. Rows are centred:
a term that is the same at all inputs cannot change attention. Only words that occur often enough
have a component that is not the word itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from attnscope.analysis.alignment_terms import QueriesAndKeys, Reads
from attnscope.analysis.decomposition import Components, Decomposition, decompose
from attnscope.analysis.term_shares import compute_term_shares, row_centred
from attnscope.audits.subject import Subject
from attnscope.models.trace import Trace
from attnscope.runs.result import Record

OFTEN = 10


def measure(subject: Subject) -> list[Record]:
    """Return the share of positions, where the logits are products and words repeat."""
    place = subject.model.places.named(subject.site)
    if not place.product:
        return []
    own: Reads = "encoder" if place.name.startswith("encoder") or subject.labels else "decoder"
    view = QueriesAndKeys(place.name, own, "encoder")
    if place.queries not in ("source", "target") or place.reads == "none":
        return []

    def traces() -> Iterator[Trace]:
        for _, part in subject.parts:
            yield subject.trace(part, [place.name])

    found = decompose(traces(), view)
    assert found.decoder is not None
    often = Decomposition(_often(found.encoder), _often(found.decoder))
    if not bool(often.encoder.seen.any()):
        return []
    shares = compute_term_shares(traces(), often, view, {"centred": row_centred}, bias=True)[
        "centred"
    ]
    positional = shares.per_example[..., [0, -1]].sum(-1).mean(-1)
    if bool(positional.isnan().all()):
        return []
    return [subject.mean("positional_share", positional.double().numpy(), {"site": place.name})]


def _often(components: Components) -> Components:
    """Return components of words that occur often enough; the others have none."""
    counts = components.word_counts
    return replace(components, word_counts=torch.where(counts >= OFTEN, counts, 0))
