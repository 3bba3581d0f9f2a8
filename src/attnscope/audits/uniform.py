"""Is attention near uniform? Its entropy at the rows that the output reads."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.agreement import attention_entropy
from attnscope.audits.subject import Subject
from attnscope.data.batch import Batch
from attnscope.data.removal import word_positions
from attnscope.models.trace import Site
from attnscope.runs.result import Matrix, Record


def measure(subject: Subject) -> list[Record]:
    """Return the entropy of every site and head, and the share of boundaries."""
    places = subject.model.places

    def read(part: Batch) -> Tensor:
        trace = subject.trace(part)
        found = [site_entropy(trace.sites[name], part) for name in places.names]
        return torch.cat([*found, _boundaries(trace.sites[subject.site], part)[:, None]], 1)

    *columns, boundaries = subject.each(read).T
    records: list[Record] = []
    heads_of: dict[str, list[float]] = {}
    for place in places:
        values, columns = np.array(columns[: place.heads]), columns[place.heads :]
        axes = {"site": place.name, "role": "main" if place.name == subject.site else "other"}
        with np.errstate(invalid="ignore"):
            records.append(subject.mean("entropy", np.nanmean(values, 0), {**axes, "head": "all"}))
        heads_of[place.name] = [float(each) for each in np.nanmean(values, 1)]
    records.append(matrix_of_heads(subject, "entropy_map", heads_of))
    records.append(subject.mean("boundary_share", boundaries))
    return records


def site_entropy(site: Site, batch: Batch) -> Float[Tensor, "batch heads"]:
    """Return each head's mean entropy over the rows that count, in units of log L.

    What a sink takes is left aside: the weights of the inputs are those that sum to 1.
    """
    heads = site.weights.shape[1]
    masks = site.mask.repeat_interleave(heads, 0)
    sums = site.weights.sum(-1, keepdim=True)
    shares = site.weights / sums.clamp(min=torch.finfo(sums.dtype).tiny)
    entropy = attention_entropy(shares.flatten(0, 1), masks)
    entropy = entropy.unflatten(0, (-1, heads))
    rows = _rows(site, batch)[:, None] * ~entropy.isnan()
    return (entropy.nan_to_num(0.0) * rows).sum(-1) / rows.sum(-1).masked_fill(
        rows.sum(-1) == 0, torch.nan
    )


def _rows(site: Site, batch: Batch) -> Float[Tensor, "batch out"]:
    """Return the weight of each row: its share in the output, or 1 at real positions."""
    if site.reads is not None:
        return site.reads.to(site.weights.dtype)
    out = site.weights.shape[2]
    if out == batch.targets.shape[1]:
        return batch.target_mask.to(site.weights.dtype)
    if out == batch.inputs.shape[1]:
        return batch.input_mask.to(site.weights.dtype)
    return site.weights.new_ones(len(batch), out)


def _boundaries(site: Site, part: Batch) -> Float[Tensor, " batch"]:
    """Return the share of a site's attention on pieces that are not words."""
    if site.weights.shape[-1] != part.inputs.shape[1]:
        return site.weights.new_full((len(part),), torch.nan)
    outside = (~word_positions(part)).to(site.weights.dtype)
    share = torch.einsum("bhti,bi->bht", site.weights, outside).mean(1)
    rows = _rows(site, part)
    return (share * rows).sum(-1) / rows.sum(-1)


def matrix_of_heads(subject: Subject, name: str, rows: dict[str, list[float]]) -> Matrix:
    """Return a number of every head as a picture: sites by heads."""
    width = max(len(row) for row in rows.values())
    cells = [[*row, *[None] * (width - len(row))] for row in rows.values()]
    return Matrix.of(
        name,
        subject.texts.name,
        cells,
        rows=list(rows),
        row_axis="site",
        column_axis="head",
        digits=4,
        n=len(subject.batch),
        split=subject.texts.split,
    )
