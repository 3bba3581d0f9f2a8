"""Logistic weights β^log: a bag-of-words classifier as a lexicon (snell A.10, Eq. 55, 56).

Features are the shares of a text's words (counts / L), the penalty's strength is the one of 19 with
the best validation accuracy, and a word's value is its coefficient, signed by the label.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from attnscope.data.batch import Example
from attnscope.errors import UsageError
from attnscope.scores.lexicon import Lexicon

# 1e-5, 5e-5, 1e-4, …, 5e3, 1e4: scikit-learn's C, the inverse of the penalty.
STRENGTHS = (*(float(f"{m}e{n}") for n in range(-5, 4) for m in (1, 5)), 1e4)
_ITERATIONS = 1000


class LogisticFit(NamedTuple):
    """The lexicon with the validation accuracies that chose its penalty.

    ``accuracies`` are those on the validation part, by C; ``unfinished`` are the C whose fit was
    stopped after the authors' 1000 iterations.
    """

    lexicon: Lexicon
    strength: float
    accuracies: dict[float, float]
    unfinished: tuple[float, ...]


def logistic_lexicon(
    training: Sequence[Example],
    validation: Sequence[Example],
    input_types: int,
    strengths: Sequence[float] = STRENGTHS,
) -> LogisticFit:
    """Fit β^log on the examples of a two-label corpus.

    Parameters
    ----------
    training, validation
        Examples whose one target is their label, 0 or 1, for example
        ``GrammarSentiment().training_examples``.
    input_types
        The number of input words, ``len(source.input_words)``.
    strengths
        The values of C to choose from; among the best the smallest is taken.
    """
    if not strengths:
        raise UsageError("logistic_lexicon needs at least one strength.")
    train, train_labels = _features(training, input_types), _labels(training)
    val, val_labels = _features(validation, input_types), _labels(validation)
    if len(set(train_labels.tolist())) < 2:
        raise UsageError("logistic_lexicon needs training examples of both labels.")
    fits: dict[float, LogisticRegression] = {}
    for strength in sorted(strengths):
        with warnings.catch_warnings():
            # Told by ``unfinished`` instead.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=strength, max_iter=_ITERATIONS)
            fits[strength] = model.fit(train, train_labels)
    accuracies = {c: float(fit.score(val, val_labels)) for c, fit in fits.items()}
    # The first among equals is the smallest: the fits are in order.
    best = max(accuracies, key=accuracies.__getitem__)
    weights = torch.from_numpy(fits[best].coef_[0]).float()
    unfinished = tuple(c for c, fit in fits.items() if fit.n_iter_.max() >= _ITERATIONS)
    table = torch.stack([-weights, weights], 1)
    return LogisticFit(Lexicon("logistic", table), best, accuracies, unfinished)


def _features(examples: Sequence[Example], input_types: int) -> csr_matrix:
    lengths = np.array([len(example.inputs) for example in examples])
    if not len(lengths) or not lengths.all():
        raise UsageError("logistic_lexicon needs examples with at least one word each.")
    words = np.concatenate([np.asarray(example.inputs) for example in examples])
    rows = np.repeat(np.arange(len(examples)), lengths)
    # Entries at the same place are summed.
    return csr_matrix((1.0 / lengths[rows], (rows, words)), (len(examples), input_types))


def _labels(examples: Sequence[Example]) -> np.ndarray:
    labels = [tuple(map(int, example.targets)) for example in examples]
    for example, label in zip(examples, labels, strict=True):
        if label not in {(0,), (1,)}:
            raise UsageError(
                f"logistic_lexicon needs labels 0 and 1: example {example.id} has {list(label)}."
            )
    return np.array(labels)[:, 0]
