"""Every module that defines a variant, so that a stored configuration finds its classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attnscope.data.corpus
import attnscope.data.escan
import attnscope.data.parallel_words
import attnscope.data.polarity_texts
import attnscope.data.sequence_tasks
import attnscope.data.tasks
import attnscope.data.text
import attnscope.models.architectures
import attnscope.models.attentions
import attnscope.models.classifier
import attnscope.models.embedding
import attnscope.models.encoder_decoder
import attnscope.models.encoders
import attnscope.models.intervention
import attnscope.models.many_words
import attnscope.models.proxy
import attnscope.models.seq2seq
import attnscope.models.transformer
import attnscope.scores.attention
import attnscope.scores.lexical_probe
import attnscope.scores.saliency
import attnscope.training.bleu
import attnscope.training.gradient_flow
import attnscope.training.imitation
import attnscope.training.masked_lm
import attnscope.training.objective
import attnscope.training.optimizer
import attnscope.training.penalties
import attnscope.training.tying  # noqa: F401
from attnscope.training.unit import Unit


def read_unit(config: Mapping[str, Any]) -> Unit:
    """Return the unit of a stored configuration."""
    return Unit.model_validate(config)
