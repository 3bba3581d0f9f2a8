"""aitken's GRU over few words against its own steps, stacked: states and all gradients."""

from __future__ import annotations

import torch
from torch.func import functional_call, vmap

from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.architectures import AED, VED, RecurrentReader
from attnscope.models.cells import GRU
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training.engine.gru_words import GRUWords
from attnscope.training.engine.recurrent_cells import ELEMENTWISE
from attnscope.training.engine.vmappable import vmappable
from cases import for_each

MODELS, TEXTS, WORDS, HIDDEN, TYPES = 3, 4, 6, 5, 3
LENGTHS = torch.tensor([[6, 3, 1, 4], [6, 6, 6, 6], [1, 1, 2, 1]])  # no third text is as long
MASK = torch.arange(WORDS) < LENGTHS[..., None]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs():
    draw = torch.Generator().manual_seed(3)
    words = torch.randint(0, TYPES, (MODELS, TEXTS, WORDS), generator=draw)
    numbers = (
        drawn(MODELS, TYPES, 3 * HIDDEN, seed=1),
        drawn(MODELS, 3 * HIDDEN, HIDDEN, seed=2),
        drawn(MODELS, TEXTS, HIDDEN, seed=4),
    )
    return [part.requires_grad_() for part in numbers], words


READER = RecurrentReader(GRU(TYPES, HIDDEN).double())


def step_by_step(drives, weight, start, words, mask):
    one_hot = (words[..., None] == torch.arange(TYPES)).double()
    cells = {"cell.recurrent_map": weight}
    return functional_call(READER, cells, (one_hot @ drives, start, mask))[0]


def written_out(*parts):
    return GRUWords.apply(*(part[None] for part in parts))[0].squeeze(0)


def with_gradients(states, parts):
    weights = drawn(*states.shape, seed=5)
    return states.detach(), *torch.autograd.grad((states * weights).sum(), parts)


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_states_and_gradients_are_those_of_the_cells_steps():
    numbers, words = inputs()
    expected = with_gradients(vmap(step_by_step)(*numbers, words, MASK), numbers)
    assert_equal(with_gradients(vmap(written_out)(*numbers, words, MASK), numbers), expected)
    together = GRUWords.apply(*numbers, words, MASK)[0]
    assert_equal(with_gradients(together, numbers), expected)


def test_models_may_share_what_has_no_axis_over_them():
    (drives, weight, start), words = inputs()
    shared, axes = (start[0], words[0], MASK[0]), (0, 0, None, None, None)
    parts = [drives, weight, start]
    states = vmap(step_by_step, axes)(drives, weight, *shared)
    expected = with_gradients(states, parts)
    found = with_gradients(vmap(written_out, axes)(drives, weight, *shared), parts)
    assert_equal(found, expected)


@for_each("architecture", [AED(), VED()])
def test_a_copy_for_vmap_reads_a_batch_as_the_model_does(architecture):
    task = OneToOne(shortest=3, longest=6)
    batch = task.evaluation_batch(TYPES + 9)
    model = EncoderDecoderSpec(architecture=architecture, hidden=HIDDEN).build(task, 0).double()
    copy = vmappable(model, ELEMENTWISE)
    for forced in ("on", "off"):
        expected = model.with_teacher_forcing(forced).trace(batch)
        with torch.no_grad():  # else words are inputs of the graph, and positions are run by steps
            found = copy.with_teacher_forcing(forced).trace(batch)
        assert_equal(
            [found.encoder_states, found.decoder_states, found.logits],
            [expected.encoder_states, expected.decoder_states, expected.logits],
        )
