"""What a classifier must beat: the most frequent label, and a regression on word counts.

A model that does not beat both has not learned more than single words say, and its attention is not
worth a question.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from attnscope.data.batch import Example
from attnscope.data.randomness import generator

# Training texts of the regression, drawn, at most: more change its accuracy by little.
MOST_TEXTS = 20_000
_ITERATIONS = 200


@dataclass(frozen=True)
class Baselines:
    """Predictors that know nothing of attention, fitted on training texts alone.

    Attributes
    ----------
    label
        The most frequent label.
    regression
        Logistic regression on word counts with scikit-learn's own penalty, C = 1, which nothing
        chose; None where every training text has the same label.
    types
        How many input words there are.
    """

    label: int
    regression: LogisticRegression | None
    types: int

    @classmethod
    def fit(cls, training: Sequence[Example], types: int) -> Baselines:
        """Fit both to labelled texts."""
        order = torch.randperm(len(training), generator=generator("bag of words"))[:MOST_TEXTS]
        drawn = [training[index] for index in order.tolist()]
        labels = labels_of(drawn)
        label = int(np.bincount(labels_of(training)).argmax())
        if len(set(labels.tolist())) < 2:
            return cls(label, None, types)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=_ITERATIONS)
            return cls(label, model.fit(word_counts(drawn, types), labels), types)

    def majority_right(self, texts: Sequence[Example]) -> Bool[np.ndarray, " text"]:
        """Return which texts have the most frequent label."""
        return labels_of(texts) == self.label

    def regression_right(self, texts: Sequence[Example]) -> Bool[np.ndarray, " text"]:
        """Return which texts the regression gets right."""
        if self.regression is None:
            return self.majority_right(texts)
        return self.regression.predict(word_counts(texts, self.types)) == labels_of(texts)


def labels_of(texts: Sequence[Example]) -> Int[np.ndarray, " text"]:
    """Return the label of each text."""
    return np.array([int(text.targets[0]) for text in texts])


def word_counts(texts: Sequence[Example], types: int) -> csr_matrix:
    """Return how often each word type occurs in each text."""
    lengths = [len(text.inputs) for text in texts]
    words = np.concatenate([np.asarray(text.inputs, np.int64) for text in texts])
    rows = np.repeat(np.arange(len(texts)), lengths)
    # Entries at the same place are summed.
    return csr_matrix((np.ones(len(words)), (rows, words)), (len(texts), types))
