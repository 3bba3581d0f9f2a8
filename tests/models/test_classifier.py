"""The classifier against its equations (snell Eq. 7, 8)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.data.batch import Example, collate
from attnscope.data.tasks import KeywordTask, PermutationCopy
from attnscope.errors import UsageError
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.embedding import RandomEmbeddings, VectorEmbeddings

SOURCE = KeywordTask(types=9)
BATCH = collate([Example(0, [3, 1, 4, 1, 5], [0], [1]), Example(1, [2, 7], [0], [0])])


def build(directions=2, seed=0):
    spec = ClassifierSpec(embedding=5, hidden=4, attention_hidden=3, directions=directions)
    return spec.build(SOURCE, seed).double()


@pytest.mark.parametrize("directions", [1, 2])
def test_attention_logits_are_those_of_equation_7(directions):
    model = build(directions)
    trace = model.trace(BATCH)
    hidden, _, out = model.attention
    q = torch.einsum("ji,bli->blj", hidden.weight, trace.encoder_states) + hidden.bias
    expected = q.clamp(min=0) @ out.weight[0] + out.bias
    torch.testing.assert_close(trace.sites["cross"].logits[:, 0, 0], expected)


def test_the_output_is_the_sigmoid_of_equation_8():
    model = build()
    trace = model.trace(BATCH)
    for row, length in enumerate(BATCH.input_lengths):
        powers = trace.sites["cross"].logits[row, 0, 0, :length].exp()
        context = (powers / powers.sum()) @ trace.encoder_states[row, :length]
        z = context @ model.output.weight[0] + model.output.bias[0]
        torch.testing.assert_close(trace.logits[row, 0].softmax(-1)[1], 1 / (1 + (-z).exp()))


@given(st.floats(-30, 30))
def test_a_softmax_of_zero_and_z_is_the_sigmoid_of_z(z):
    model = build()
    torch.nn.init.zeros_(model.output.weight)
    torch.nn.init.constant_(model.output.bias, z)
    logits = model.trace(BATCH).logits
    assert logits.shape == (2, 1, 2)
    torch.testing.assert_close(logits.softmax(-1)[..., 1], torch.sigmoid(logits[..., 1]))
    torch.testing.assert_close(logits[..., 1], torch.full((2, 1), z, dtype=torch.float64))
    assert not logits[..., 0].any()


def test_one_direction_knows_only_what_came_before_and_two_know_the_rest():
    early, late = Example(0, [3, 1, 4], [0], [1]), Example(1, [3, 1, 8], [0], [1])
    batch = collate([early, late])
    one = build(directions=1).trace(batch).encoder_states[:, :2]
    assert one[0].equal(one[1])
    both = build(directions=2).trace(batch).encoder_states[:, :2]
    assert both.shape[-1] == 8  # "dimension 256" is per direction.
    assert both[0, :, :4].equal(both[1, :, :4])
    assert not both[0, :, 4:].isclose(both[1, :, 4:]).any()


def test_more_than_two_labels_are_one_sentence() -> None:
    with pytest.raises(UsageError, match="not two labels"):
        ClassifierSpec().build(PermutationCopy(length=3), seed=0)


def test_a_seed_still_gives_the_model_that_it_always_gave():
    spec = ClassifierSpec(embedding=5, hidden=4, attention_hidden=3)
    state = spec.build(SOURCE, 0).state_dict()
    # Sums of sizes before the start of the embeddings was a choice: stored units rest on them.
    pinned = {
        "embedding.weight": 36.0934357,
        "encoder.layer.weight_ih_l0": 20.3703189,
        "encoder.layer.weight_hh_l0_reverse": 15.0269809,
        "attention.0.weight": 3.2175790,
        "output.weight": 0.9193727,
    }
    for name, size in pinned.items():
        assert state[name].abs().sum().item() == pytest.approx(size, abs=1e-4)


def test_a_configuration_from_before_starts_at_random():
    assert ClassifierSpec.model_validate({"kind": "classifier"}).vectors == RandomEmbeddings()


def test_word_vectors_change_the_embeddings_alone(tmp_path):
    (tmp_path / "vectors.txt").write_text("3 1 2 3 4 5\n7 5 4 3 2 1\n")
    spec = ClassifierSpec(embedding=5, hidden=4, attention_hidden=3)
    chosen = spec.model_copy(
        update={"vectors": VectorEmbeddings(path=str(tmp_path / "vectors.txt"))}
    )
    random, given = (s.build(SOURCE, 0).state_dict() for s in (spec, chosen))
    assert [name for name in random if not random[name].equal(given[name])] == ["embedding.weight"]
    three, seven = (SOURCE.input_words.id(word) for word in "37")
    assert given["embedding.weight"][three].tolist() == [1, 2, 3, 4, 5]
    assert given["embedding.weight"][seven].tolist() == [5, 4, 3, 2, 1]
