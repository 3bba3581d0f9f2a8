"""Masked words: which are chosen, what stands in their places, and what is learned from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import pad

from attnscope.data.batch import Example, collate
from attnscope.data.corpus import GrammarSentiment
from attnscope.data.tokens import SPECIALS
from attnscope.errors import MissingCapability
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Concat, Recurrent, Residual, WordStates
from attnscope.training.loop import build_model, load_model, train_unit
from attnscope.training.masked_lm import MaskedWords, choose_words
from attnscope.training.objective import Likelihood, Term, total
from attnscope.training.tying import Tying
from attnscope.training.unit import Training, Unit

TYPES, SOURCE = 1000, GrammarSentiment()
BASE = ClassifierSpec(embedding=8, encoder=Recurrent(hidden=4))


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def texts(count=400, longest=30):
    """Words from 4 on between the boundaries 1 and 2, in texts of unequal lengths."""
    random = np.random.default_rng(0)
    examples = []
    for number in range(count):
        words = random.integers(len(SPECIALS), TYPES, random.integers(1, longest))
        examples.append(Example(3 * number, [1, *words.tolist(), 2], [0], [number % 2]))
    return collate(examples)


TEXTS = texts()


def chosen_cells(chosen):
    """Return where words were chosen, as a mask of the batch."""
    mask = torch.zeros(chosen.inputs.numel(), dtype=torch.bool)
    mask[chosen.cells[chosen.counted]] = True
    return mask.view_as(chosen.inputs)


def test_the_share_of_every_text_is_chosen_rounded_and_at_least_one():
    chosen = chosen_cells(choose_words(MaskedWords(), TEXTS, TYPES, stream()))
    for row, length in zip(chosen, TEXTS.input_lengths.tolist(), strict=True):
        assert int(row.sum()) == max(1, round(0.15 * length))


def test_eight_of_ten_are_hidden_one_is_replaced_and_one_stays():
    found = choose_words(MaskedWords(share=0.5), TEXTS, TYPES, stream())
    where = chosen_cells(found)
    before, after = TEXTS.inputs[where], found.inputs[where]
    hidden, kept = (after == 0).sum(), (after == before).sum()
    counts = np.array([hidden, len(before) - hidden - kept, kept], dtype=float)
    assert stats.chisquare(counts, counts.sum() * np.array([0.8, 0.1, 0.1])).pvalue > 0.01
    replaced = after[(after != 0) & (after != before)].numpy()
    assert replaced.min() >= len(SPECIALS)
    assert stats.kstest(replaced, stats.uniform(4, TYPES - 4).cdf).pvalue > 0.01


def test_no_word_is_replaced_by_a_special_one():
    examples = [Example(n, [1, *[5] * 20, 2], [0], [0]) for n in range(300)]
    found = choose_words(MaskedWords(mask=7), collate(examples), 8, stream())
    assert set(found.inputs[:, 1:-1].unique().tolist()) == {4, 5, 6, 7}


def test_words_that_were_not_chosen_stay_as_they_are():
    found = choose_words(MaskedWords(), TEXTS, TYPES, stream())
    where = chosen_cells(found)
    assert found.inputs[~where].equal(TEXTS.inputs[~where])


def test_specials_and_padding_are_never_chosen():
    # Words 1, 2, 3 of 4 and padding are special; the text of specials alone has nothing to choose.
    examples = [Example(0, [1, 3, 5, 3, 2], [0], [1]), Example(1, [1, 3, 3, 3, 3, 2], [0], [0])]
    batch = collate(examples)
    for seed in range(20):
        found = choose_words(MaskedWords(share=0.6), batch, TYPES, stream(seed))
        assert chosen_cells(found).nonzero().tolist() == [[0, 2]]
        assert found.inputs[1].equal(batch.inputs[1])


def test_every_position_of_a_text_is_as_likely_to_be_chosen():
    examples = [Example(n, [1, *range(4, 24), 2], [0], [0]) for n in range(3000)]
    where = chosen_cells(choose_words(MaskedWords(), collate(examples), TYPES, stream()))
    counts = where.sum(0)[1:-1].numpy()
    assert stats.chisquare(counts).pvalue > 0.01


def test_the_choice_depends_on_the_generator_and_the_example_and_not_on_padding_or_neighbours():
    one = choose_words(MaskedWords(), TEXTS, TYPES, stream(1)).inputs
    assert choose_words(MaskedWords(), TEXTS, TYPES, stream(1)).inputs.equal(one)
    assert not choose_words(MaskedWords(), TEXTS, TYPES, stream(2)).inputs.equal(one)
    rows = torch.tensor([7, 3, 399])
    some = TEXTS.rows(rows)
    wide = replace(some, inputs=pad(some.inputs, (0, 5)))
    apart = choose_words(MaskedWords(), wide, TYPES, stream(1)).inputs
    assert apart[:, :-5].equal(one[rows])


def built(spec=BASE):
    return spec.build(SOURCE, 0).double()


def loss_by_hand(model, batch, term, seed):
    """Return the sum over chosen words of -log softmax(E h)[word], and how many there are."""
    stream_ = stream(seed)
    found = choose_words(term, batch, len(SOURCE.input_words), stream_)
    losses = []
    for row, column in chosen_cells(found).nonzero().tolist():
        length = int(batch.input_lengths[row])
        alone = collate([Example(0, found.inputs[row, :length].tolist(), [0], [0])])
        state = model.trace(alone).encoder_states[0, column]
        logits = model.embedding.weight @ state
        losses.append(float(logits.logsumexp(0) - logits[batch.inputs[row, column]]))
    return sum(losses), len(losses)


@pytest.mark.parametrize("spec", [BASE, ClassifierSpec(embedding=8, encoder=WordStates())])
def test_the_loss_is_the_cross_entropy_of_the_chosen_words_under_the_embedding_table(spec):
    model, batch = built(spec).requires_grad_(False), SOURCE.training_batch(0, 0, 9)
    trace = model.trace(batch)
    total_loss, count = loss_by_hand(model, batch, MaskedWords(), 5)
    summed, mean = (
        float(MaskedWords(reduction=reduction)(model, batch, trace, stream(5)))
        for reduction in ("sum", "mean")
    )
    assert summed == pytest.approx(total_loss / 9, rel=1e-12)
    assert mean == pytest.approx(total_loss / count, rel=1e-12)


def test_a_batch_with_nothing_to_choose_has_no_loss():
    model, batch = built(), collate([Example(0, [1, 3, 2], [0], [0])])
    for reduction in ("sum", "mean"):
        term = MaskedWords(reduction=reduction)
        assert float(term(model, batch, model.trace(batch), stream()).detach()) == 0


@pytest.mark.parametrize("encoder", [Recurrent(hidden=4), Residual(encoder=Recurrent(hidden=4))])
def test_its_gradient_reaches_the_encoder_and_the_table_and_nothing_else(encoder):
    model = built(ClassifierSpec(embedding=8, encoder=encoder))
    batch = SOURCE.training_batch(0, 0, 9)
    MaskedWords()(model, batch, model.trace(batch), stream()).backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    expected = {n for n, _ in model.named_parameters() if n.startswith(("encoder", "embedding"))}
    assert moved == expected


def test_the_second_pass_drops_anew_from_the_same_generator():
    spec = ClassifierSpec(embedding=8, encoder=Recurrent(hidden=4), dropout=0.5)
    model, batch = built(spec), SOURCE.training_batch(0, 0, 9)

    def value(seed):
        own = stream(seed)
        trace = model.trace(batch, None, own)
        return float(total((Likelihood(), MaskedWords()), model, trace, own).detach())

    assert value(1) == value(1) != value(2)


def test_states_of_another_width_than_the_table_are_one_sentence():
    model = built(ClassifierSpec(embedding=8, encoder=Concat(encoder=Recurrent(hidden=4))))
    batch = SOURCE.training_batch(0, 0, 4)
    with pytest.raises(MissingCapability, match=r"table of width 8, and .* have 16"):
        MaskedWords()(model, batch, model.trace(batch), stream())


def test_a_model_that_cannot_be_run_again_on_other_words_says_so():
    model, batch = built(), SOURCE.training_batch(0, 0, 4)

    class Wrapped:
        trace, readout = model.trace, model.readout

    with pytest.raises(MissingCapability, match=r"need a model with encode"):
        MaskedWords()(Wrapped(), batch, model.trace(batch), stream())


def test_it_is_read_back_from_its_configuration():
    term = MaskedWords(weight=0.3, share=0.2, reduction="mean", mask=7, specials=2)
    assert Term.model_validate(term.model_dump(mode="json")) == term


def test_a_unit_trains_on_masked_words_with_a_frozen_table_and_repeats_its_bytes(tmp_path, numbers):
    training = Training(
        steps=4,
        batch_size=8,
        evaluate_at=(2,),
        examples=10,
        objective=(Likelihood(), MaskedWords(weight=0.3), Tying(weight=10)),
        frozen=("embedding",),
    )
    unit = Unit(source=SOURCE, model=BASE, training=training)
    one, other = (train_unit(unit, tmp_path / name) for name in ("one", "other"))
    assert numbers(one.path) == numbers(other.path)
    start, end = build_model(unit), load_model(unit, one)
    changed = {
        name
        for name, parameter in end.named_parameters()
        if not parameter.equal(start.get_parameter(name))
    }
    assert changed == {name for name, _ in end.named_parameters()} - {"embedding.weight"}
