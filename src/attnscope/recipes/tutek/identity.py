"""Eq. 9 on every classifier of the package: three ways to the same logit.

A model's logit is the attention-weighted mean of the logits of its single states, since the output
is affine and attention sums to 1; the logit of a single state is sunlu's polarity W·h + b and
snell's lexical probe. It holds for any weights, so the models are not trained.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnscope.data.corpus import Corpus
from attnscope.models.attentions import Additive, AttentionSpec, DotProduct, LearnedQuery
from attnscope.models.classifier import Classifier, ClassifierSpec, Output
from attnscope.models.embedding import UniformEmbeddings
from attnscope.models.encoders import Affine, EncoderSpec, Recurrent, WordStates
from attnscope.models.trace import needed
from attnscope.recipes.tutek.evaluation import held_out, part_of, sheet_of
from attnscope.recipes.tutek.units import ATTENTIONS, MODELS, ModelVariant, TutekConfig, model_of
from attnscope.runs.result import Measurement
from attnscope.scores.lexical_probe import LexicalProbe

EXACT = 1e-12
_EXAMPLES = 64


def classifiers(config: TutekConfig) -> dict[str, ClassifierSpec]:
    """Return all classifiers of the three papers, by name."""
    width = config.hidden
    specs = {
        f"tutek {name}, {attention}": model_of(config, ModelVariant(name, attention))
        for name in MODELS
        for attention in ATTENTIONS
    }
    specs["snell"] = ClassifierSpec(embedding=2 * width, encoder=Recurrent(hidden=width))
    normal = LearnedQuery(initial="normal")
    dot = DotProduct(scale=10.0, query=normal)
    additive = Additive(hidden=width, activation="tanh", output_bias="off", query=normal)
    sunlu: dict[str, tuple[EncoderSpec, AttentionSpec]] = {
        "DP": (WordStates(), dot),
        "DP-A": (Affine(hidden=width), dot),
        "DP-L": (Recurrent(hidden=width, initial="orthogonal"), dot),
        "AD": (WordStates(), additive),
    }
    for name, (encoder, attention) in sunlu.items():
        specs[f"sunlu {name}"] = ClassifierSpec(
            embedding=2 * width,
            vectors=UniformEmbeddings(),
            encoder=encoder,
            attention=attention,
            output=Output(bias="off"),
        )
    return specs


def identity_rows(config: TutekConfig, source: Corpus) -> list[Measurement]:
    """Return how far the three ways are apart, in parts of the largest logit, in float64."""
    sheet = sheet_of(source, (0,))
    rows = []
    for name, spec in classifiers(config).items():
        for way, off in _apart(spec.build(source, 0).double(), source).items():
            rows.append(sheet.point("identity", off, {"classifier": name, "way": way}, _EXAMPLES))
    return rows


@torch.no_grad()
def _apart(model: Classifier, source: Corpus) -> dict[str, float]:
    batch = part_of(held_out(source).batch, _EXAMPLES)
    trace = model.trace(batch)
    site, states = trace.sites["cross"], needed(trace.encoder_states, "encoder states")
    single = model.readout(states[:, :, None], states.new_zeros(*states.shape[:2], 0))
    mean = (site.weights[:, 0, 0, :, None] * single).sum(1)
    # sunlu's polarity, from the parameters themselves.
    polarity = nn.functional.linear(states, model.output.weight, model.output.bias)
    probe = LexicalProbe().read(model, trace)
    own = batch.targets[:, :1, None].expand(-1, states.shape[1], 1)
    log_odds = torch.logit(single.softmax(-1).gather(-1, own)[..., 0])
    return {
        "attention-weighted mean of words": _off(mean, trace.logits[:, 0]),
        "polarity": _off(single[..., -polarity.shape[-1] :], polarity, site.mask),
        "lexical probe": _off(probe.values[:, 0], log_odds, site.mask),
    }


def _off(one: Tensor, other: Tensor, mask: Tensor | None = None) -> float:
    """Return the largest difference of two readings, in parts of the largest logit."""
    if mask is not None:
        one, other = one[mask], other[mask]
    return float((one - other).abs().max() / (1 + other.abs().max()))
