"""Three ways to a logit: they agree on the package's classifiers, and a wrong one shows."""

from __future__ import annotations

import pytest

from attnscope.analysis.logit_identity import logit_differences


def test_the_ways_agree_to_rounding(classifier, reviews):
    found = logit_differences(classifier(), reviews)
    assert len(found) == 3
    assert max(found.values()) < 1e-12


@pytest.mark.parametrize(
    ("shift", "broken"),
    [
        (lambda logits: logits**3, {"attention-weighted mean of words", "polarity"}),
        (lambda logits: logits + 1, {"attention-weighted mean of words", "polarity"}),
    ],
)
def test_a_readout_that_is_not_the_models_own_shows(
    classifier, reviews, monkeypatch, shift, broken
):
    model = classifier()
    trace, own = model.trace(reviews), model.readout
    monkeypatch.setattr(model, "trace", lambda batch: trace)
    monkeypatch.setattr(model, "readout", lambda context, query: shift(own(context, query)))
    found = logit_differences(model, reviews)
    assert {way for way, off in found.items() if off > 1e-3} == broken
