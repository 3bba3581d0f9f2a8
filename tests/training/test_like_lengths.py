"""Batches of unlike texts are read in parts of like length, with the gradients of the batch."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

import attnscope
from attnscope.data.corpus import GrammarSentiment, GrammarTranslation
from attnscope.data.text import open_text
from attnscope.models.attentions import DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent, WordStates
from attnscope.models.intervention import Uniform
from attnscope.training import like_lengths, loop
from attnscope.training.engine.grouping import groups
from attnscope.training.like_lengths import parts, reads_parts
from attnscope.training.loop import train_unit
from attnscope.training.objective import Likelihood
from attnscope.training.penalties import SquaredNorm
from attnscope.training.tying import Tying
from cases import for_each

READ = {"min_count": 1, "max_length": None, "bucket_size": 1}
WORDS = ["good", "bad", "film", "the", "a"]
DP = ClassifierSpec(embedding=5, encoder=WordStates(), attention=DotProduct())
DP_L = DP.model_copy(update={"encoder": Recurrent(hidden=3)})
PENALISED = {"objective": (Likelihood(), SquaredNorm(weight=0.01)), "batch_size": 20, "steps": 12}


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Give a corpus in which one text of seven is a thousand times as long as the others."""
    stream, folder = np.random.default_rng(0), tmp_path_factory.mktemp("unlike") / "corpus"
    lengths = [int(stream.integers(2, 6)) * (1000 if i % 7 == 0 else 1) for i in range(200)]
    texts = [" ".join(stream.choice(WORDS, length)) for length in lengths]
    labels = ["yes" if text.count("good") > text.count("bad") else "no" for text in texts]
    attnscope.write_corpus(folder, zip(texts, labels, strict=True))
    return open_text(folder, classification=READ)


@for_each("lengths", [[5000], [9000, 9000, 8, 7, 3], [20_000, 9000, 4100, 4000, 30, 2], [7, 7, 7]])
def test_parts_cost_as_little_as_any(lengths):
    def cost(bounds):
        return sum(1024 + (stop - start) * lengths[start] for start, stop in pairwise(bounds))

    every = [
        (0, *inner, len(lengths))
        for count in range(len(lengths))
        for inner in combinations(range(1, len(lengths)), count)
    ]
    least, sizes = like_lengths._cheapest(np.array(lengths))
    assert least == min(map(cost, every)) == cost([0, *np.cumsum(sizes)])


def test_parts_have_every_text_once_and_no_padding_that_all_share(unlike):
    batch = unlike.training_batch(0, 0, 40)
    found = parts(batch)
    assert len(found) > 1
    assert sorted(torch.cat([part.ids for _, part in found]).tolist()) == sorted(batch.ids.tolist())
    assert [share for share, _ in found] == [len(part) / 40 for _, part in found]
    for _, part in found:
        assert part.inputs.shape[1] == part.input_lengths.max()


@for_each("model", [DP, DP_L])
def test_weights_and_losses_are_those_of_whole_batches(unlike, tiny, tmp_path, monkeypatch, model):
    unit = tiny(unlike, model, **PENALISED)
    read = []
    monkeypatch.setattr(loop, "parts", lambda batch: read.append(parts(batch)) or read[-1])
    in_parts = train_unit(unit, tmp_path / "parts")
    assert len(read) == 12
    assert max(map(len, read)) > 1
    monkeypatch.setattr(loop, "reads_parts", lambda unit: False)
    whole = train_unit(unit, tmp_path / "whole")
    for name, array in whole.load_weights("last")[1].items():
        np.testing.assert_allclose(in_parts.load_weights("last")[1][name], array, atol=2e-6)
    losses = [[row["training_loss"] for row in folder.log[1:]] for folder in (in_parts, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_only_means_over_labelled_texts_of_unlike_length_on_a_cpu_are_read_in_parts(unlike, tiny):
    assert reads_parts(tiny(unlike, DP, **PENALISED))
    assert not reads_parts(tiny(unlike, DP, **PENALISED).model_copy(update={"device": "cuda"}))
    assert not reads_parts(tiny(unlike, DP, objective=(Likelihood(), Tying()), batch_size=20))
    assert not reads_parts(tiny(unlike, DP, attention={"cross": Uniform()}, batch_size=20))
    assert not reads_parts(tiny(GrammarSentiment(), DP, batch_size=20))
    assert not reads_parts(tiny(GrammarTranslation(), batch_size=20))


def test_units_that_read_parts_train_one_by_one(unlike, tiny):
    units = [tiny(unlike, DP, seed=seed, **PENALISED) for seed in range(3)]
    assert [len(group) for group in groups(units)] == [1, 1, 1]
    alike = [tiny(GrammarSentiment(), DP, seed=seed, **PENALISED) for seed in range(3)]
    assert [len(group) for group in groups(alike)] == [3]
