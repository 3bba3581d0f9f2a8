"""The package's classifier as `Parameters` of gradient flow, and its terms over a corpus."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.attentions import AdditiveAttention, DotProductAttention, states_as_keys
from attnscope.models.classifier import Classifier
from attnscope.models.encoders import AffineEncoder, WordsEncoder
from attnscope.theory.gradient_flow.parts import (
    RELU,
    TANH,
    AdditiveFlow,
    AffineFlow,
    AttentionFlow,
    DotFlow,
    EncoderFlow,
    WordFlow,
)
from attnscope.theory.gradient_flow.pulls import Pulls, corpus_pulls
from attnscope.theory.gradient_flow.terms import Parameters, Terms, flow_terms


def parameters_of(model: nn.Module, dtype: torch.dtype = torch.float64) -> Parameters:
    """Return a classifier's parameters, apart from its graph.

    Parameters
    ----------
    model
        A `Classifier` whose states are the words or an affine map of them, with dot-product or
        additive attention and one query for all texts: a word's scores must not depend on the
        words around it.
    dtype
        The precision of all results.
    """
    if not isinstance(model, Classifier):
        raise MissingCapability(
            f"Gradient-flow terms need the package's classifier: {type(model).__name__} is none."
        )
    encoder, attention = _encoder(model.encoder), _attention(model.attention)
    output, bias = _linear(model.output)
    return Parameters(model.embedding.weight.detach(), output, attention, encoder, bias).to(dtype)


def classifier_flow(
    model: nn.Module, batches: Iterable[Batch], dtype: torch.dtype = torch.float64
) -> tuple[Parameters, Pulls, Terms]:
    """Return a classifier's parameters, and π, ρ and all terms over a corpus, in one pass.

    Parameters
    ----------
    model, dtype
        As in `parameters_of`.
    batches
        The corpus, in batches on any device.
    """
    parameters = parameters_of(model, dtype)
    device = parameters.embeddings.device
    tables = parameters.polarity, parameters.attention_scores
    pulls = corpus_pulls(*tables, (batch.to(device) for batch in batches))
    return parameters, pulls, flow_terms(parameters, pulls)


def _encoder(encoder: nn.Module) -> EncoderFlow:
    if isinstance(encoder, WordsEncoder):
        return WordFlow()
    if isinstance(encoder, AffineEncoder):
        return AffineFlow(*_linear(encoder.map))
    raise MissingCapability(
        "Gradient-flow terms need states without context: use the encoder 'words' or 'affine'."
    )


def _attention(attention: nn.Module) -> AttentionFlow:
    if isinstance(attention, DotProductAttention) and attention.keys is states_as_keys:
        return DotFlow(attention.query.direction.detach(), attention.divisor.item())
    if isinstance(attention, AdditiveAttention):
        weight, bias = _linear(attention.hidden)
        activation = next(f for f in (TANH, RELU) if f.value is attention.activation)
        query = attention.query.direction.detach()
        return AdditiveFlow(weight, query, bias, attention.divisor.item(), activation)
    raise MissingCapability(
        "Gradient-flow terms need dot-product attention over the states, or additive attention."
    )


def _linear(layer: nn.Linear) -> tuple[torch.Tensor, torch.Tensor | None]:
    return layer.weight.detach(), None if layer.bias is None else layer.bias.detach()
